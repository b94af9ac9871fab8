package supervisor

import (
	"context"
	"os/exec"

	"medusa/internal/contract"
	"medusa/internal/printable"
	"medusa/pool"
)

// begin runs the engine in a process of the pool, or else starts one, and says why.
func (o *Options) begin(ctx context.Context, cmd *exec.Cmd) (int, error) {
	if o.Pool == "" {
		return o.wait(cmd)
	}
	like := &exec.Cmd{Path: cmd.Path, Args: cmd.Args, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr,
		Env: append(cmd.Environ(), contract.EnvPooled+"="+pool.Yes)}
	started, err := pool.Ask(o.Pool, like)
	if err == nil {
		o.pooled = pool.Yes
		return started.Wait(ctx)
	}
	o.pooled = err.Error()
	// mutant: a start that differs from the pool's processes
	printable.Fprintf(o.Stderr, "medusa: cold start: %v\n", err)
	cmd.Env = append(cmd.Environ(), contract.EnvPooled+"="+printable.Line(o.pooled))
	return o.wait(cmd)
}
