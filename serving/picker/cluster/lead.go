package cluster

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Times of the lease: how long it holds, how long its holder tries to renew it, and how often. A picker that cannot renew the lease has stopped
// before another one begins.
const (
	leaseTime = 8 * time.Second
	renewTime = 5 * time.Second
	tryTime   = time.Second
)

// ErrLost means that another picker may be active.
var ErrLost = errors.New("lead pickers: the lease is lost")

// Lead waits until the picker with this identity is the active one, and calls lead. It returns when ctx ends, or [ErrLost].
func Lead(ctx context.Context, leases coordination.LeasesGetter, namespace, name, identity string, lead func(ctx context.Context)) error {
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: leases, LockConfig: resourcelock.ResourceLockConfig{Identity: identity}}
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseTime, RenewDeadline: renewTime, RetryPeriod: tryTime, ReleaseOnCancel: true, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { lead(ctx) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	e.Run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return ErrLost
}
