package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"medusa/serving/picker/cluster"
	"medusa/serving/picker/server"
	"medusa/serving/picker/settings"
)

// source is the source of endpoints: a file, or a pool of the cluster.
type source struct{ file, pool string }

// follow gives the endpoints to a picker, and then each change of them, until ctx ends.
func (s source) follow(ctx context.Context, p *server.Server) error {
	if s.pool != "" {
		return s.followPool(ctx, p)
	}
	return s.followFile(ctx, p)
}

// lookAgain is the time between two reads of the file of endpoints.
const lookAgain = 500 * time.Millisecond

// followFile reads the file again when it changes. If a later file has a mistake, the endpoints
// stay as they are.
func (s source) followFile(ctx context.Context, p *server.Server) error {
	now, err := settings.Endpoints(s.file)
	if err == nil {
		err = p.Use(ctx, now)
	}
	if err != nil {
		return err
	}
	said := ""
	for {
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil
		}
		list, err := settings.Endpoints(s.file)
		if err == nil && slices.Equal(list, now) {
			continue
		}
		if err == nil {
			err = p.Use(ctx, list)
		}
		if err != nil {
			if err.Error() != said {
				warn("the endpoints stay as they are: %v", err)
				said = err.Error()
			}
			continue
		}
		now, said = list, ""
	}
}

// followPool waits until this picker is the active one, and watches the pool.
func (s source) followPool(ctx context.Context, p *server.Server) error {
	namespace, pool, ok := strings.Cut(s.pool, "/")
	if !ok {
		return fmt.Errorf("watch pool %q: it is no NAMESPACE/NAME", s.pool)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("watch pool %s: %w", s.pool, err)
	}
	watcher, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("watch pool %s: %w", s.pool, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("watch pool %s: %w", s.pool, err)
	}
	identity, err := os.Hostname() // the pod's name
	if err != nil {
		return err
	}
	var watched error
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err = cluster.Lead(ctx, client.CoordinationV1(), namespace, pool+"-picker", identity, func(ctx context.Context) {
		warn("active: the lease of %s is mine", s.pool)
		watched = cluster.Watch(ctx, watcher, namespace, pool, func(list []string) error { return p.Use(ctx, list) }, warn)
		stop()
	})
	if watched != nil {
		return watched
	}
	return err
}

func warn(format string, args ...any) { fmt.Fprintf(os.Stderr, "medusa-picker: "+format+"\n", args...) }
