package cluster

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/typed/coordination/v1/fake"
	clienttesting "k8s.io/client-go/testing"
)

// leases is an API server that keeps one lease. Like a real one, it refuses an update of an object that has
// changed meanwhile.
type leases struct {
	mu      sync.Mutex
	lease   *coordination.Lease
	version int
}

// candidate is a picker that has its own connection to the server.
type candidate struct {
	cut      bool // guarded by the server's lock
	stop     context.CancelFunc
	began    time.Time // when it began to lead; the zero time: not yet
	ended    time.Time
	returned chan error
}

// client returns a candidate's client.
func (l *leases) client(c *candidate) *fake.FakeCoordinationV1 {
	f := &clienttesting.Fake{}
	f.AddReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if c.cut {
			return true, nil, errors.New("no route to the API server")
		}
		name := action.GetResource().GroupResource()
		switch a := action.(type) {
		case clienttesting.GetAction:
			if l.lease == nil {
				return true, nil, apierrors.NewNotFound(name, a.GetName())
			}
			return true, l.lease.DeepCopy(), nil
		case clienttesting.UpdateAction: // a CreateAction has the same methods
			next := a.GetObject().(*coordination.Lease).DeepCopy()
			if l.lease != nil && (a.GetVerb() == "create" || next.ResourceVersion != l.lease.ResourceVersion) {
				return true, nil, apierrors.NewConflict(name, next.Name, errors.New("it has changed"))
			}
			l.version++
			next.ResourceVersion = strconv.Itoa(l.version)
			l.lease = next
			return true, next.DeepCopy(), nil
		}
		return true, nil, errors.New("unexpected " + action.GetVerb())
	})
	return &fake.FakeCoordinationV1{Fake: f}
}

func (l *leases) candidate(t *testing.T, identity string) *candidate {
	ctx, stop := context.WithCancel(t.Context())
	c := &candidate{stop: stop, returned: make(chan error, 1)}
	go func() {
		c.returned <- Lead(ctx, l.client(c), "ai", "gpus-picker", identity, func(ctx context.Context) {
			c.began = time.Now()
			<-ctx.Done()
			c.ended = time.Now()
		})
	}()
	return c
}

func (l *leases) cut(c *candidate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.cut = true
}

// One of several pickers leads. Time is virtual.
func TestLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leases{}
		first := l.candidate(t, "first")
		time.Sleep(3 * time.Second)
		second := l.candidate(t, "second")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if first.began.IsZero() || !first.ended.IsZero() || !second.began.IsZero() {
			t.Fatalf("first leads since %v until %v, second since %v", first.began, first.ended, second.began)
		}
		// Without the API server the first one gives up. The second one begins only after that.
		l.cut(first)
		cut := time.Now()
		if err := <-first.returned; !errors.Is(err, ErrLost) {
			t.Errorf("a picker that has lost its lease: %v", err)
		}
		time.Sleep(leaseTime + 3*tryTime)
		synctest.Wait()
		switch {
		case first.ended.Sub(cut) > renewTime+2*tryTime:
			t.Errorf("it leads for %v after its last renewal", first.ended.Sub(cut))
		case second.began.IsZero():
			t.Fatal("nobody takes over")
		case !second.began.After(first.ended):
			t.Errorf("two lead at once for %v", first.ended.Sub(second.began))
		}
		// A picker that ends in order leaves the lease at once.
		third := l.candidate(t, "third")
		time.Sleep(time.Minute)
		second.stop()
		if err := <-second.returned; err != nil {
			t.Errorf("a picker that ends: %v", err)
		}
		left := time.Now()
		time.Sleep(3 * tryTime)
		synctest.Wait()
		if third.began.IsZero() || third.began.Sub(left) > 2*tryTime+200*time.Millisecond {
			t.Errorf("the next one leads since %v, the lease was left at %v", third.began, left)
		}
		third.stop()
		if err := <-third.returned; err != nil {
			t.Error(err)
		}
	})
}
