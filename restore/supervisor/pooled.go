package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"medusa/internal/contract"
	"medusa/internal/printable"
	"medusa/restore/pool"
)

// begin runs the engine in a process of the pool. If there is none, it starts one, and says why.
func (o *Options) begin(ctx context.Context, cmd *exec.Cmd) (int, error) {
	if o.Pool == "" {
		return o.wait(cmd)
	}
	like := &exec.Cmd{Path: cmd.Path, Args: cmd.Args, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr,
		Env: append(cmd.Environ(), contract.EnvPooled+"="+pool.Yes)}
	err := o.noPool
	if err == nil {
		var started *pool.Started
		if started, err = pool.Ask(o.Pool, like, o.ownsPool); err == nil {
			o.pooled = pool.Yes
			return started.Wait(ctx)
		}
	}
	o.pooled = err.Error()
	// mutant: a start that differs from the pool's processes
	printable.Fprintf(o.Stderr, "medusa: cold start: %v\n", err)
	cmd.Env = append(cmd.Environ(), contract.EnvPooled+"="+printable.Line(o.pooled))
	return o.wait(cmd)
}

// ownPool serves a pool for this start alone if Pool names a file. Its processes begin before the artifact is looked at. The function that
// it returns ends the unused ones. If there can be no such pool, the start is cold.
func (o *Options) ownPool(d *desk) (end func()) {
	info, err := os.Stat(o.Pool)
	if err != nil || !info.Mode().IsRegular() { // a socket, or a path whose error the request to the pool reports
		return func() {}
	}
	file := o.Pool
	p, err := o.openPool(d)
	if err != nil {
		o.noPool = fmt.Errorf("make pool of %s: %w", file, err)
		return func() {}
	}
	l, err := pool.Listen(o.Pool)
	if err != nil {
		o.noPool = err
		return func() {}
	}
	o.ownsPool = true
	// Not the start's context: the engine may go on for a while after that has ended.
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, l) }()
	return func() {
		stop()
		<-done
	}
}

func (o *Options) openPool(d *desk) (*pool.Pool, error) {
	if d.folder == nil {
		return nil, errors.New("this start has no folder for the socket")
	}
	file := o.Pool
	o.Pool = filepath.Join(d.folder.Path, "pool", "socket")
	folder, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return pool.Single(file, o.Library, o.Argv, o.Pool, folder, o.Stderr)
}
