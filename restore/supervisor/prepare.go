package supervisor

import (
	"context"
	"fmt"
	"os"
	"slices"

	"medusa/artifacts/trust"
	"medusa/internal/contract"
	"medusa/internal/printable"
	"medusa/interpose"
	"medusa/restore/status"
)

// obstacle is why a start is native before the engine begins.
type obstacle struct {
	reason string // for the status
	cause  error
}

func (o *obstacle) Error() string { return o.cause.Error() }

// prepare makes all ready that a restored start needs besides the engine: an artifact that may be used, its directories, and the environment of the
// engine's processes. They may use it until release. An *obstacle makes the start native. off: why all starts are.
func (o *Options) prepare(ctx context.Context, d *desk, off error) (artifact string, cfg interpose.Config, release func(), err error) {
	release = func() {}
	// mutant: the operators' switch
	if off != nil { // --strict does not count: the switch is for all starts
		return "", cfg, release, &obstacle{status.SwitchedOff, off}
	}
	if len(o.Argv) > 0 {
		err = interpose.PluginsFor(o.Argv, o.Library)
	}
	// An artifact that the policy refuses never reaches the engine's process.
	reason := status.NoSession
	if err == nil {
		if artifact, release, err = o.trusted(); err != nil {
			reason = reasonOf(err)
		}
	}
	if err != nil && o.Strict {
		return "", cfg, release, err
	}
	if err != nil {
		// mutant: what is refused does not reach the engine
		return "", cfg, release, &obstacle{reason, err}
	}
	var caches []string
	if !o.Artifact.Auto { // or the engine chooses the artifact
		o.Relax = slices.Concat(o.Relax, CheckedDrivers(artifact, o.Stderr))
		unpin, unplace := release, func() {}
		caches, unplace, err = placeDirs(artifact, o.Dirs, fitsHere(ctx, o.Relax), o.Stderr)
		release = func() { unplace(); unpin() }
	}
	if err != nil {
		if o.Strict {
			return "", cfg, release, err
		}
		// The engine's process reports the consequence: it starts natively if it has no artifact.
		printable.Fprintf(o.Stderr, "medusa: %v\n", err)
	}
	env := slices.Concat(o.told(artifact, d).Environ(), contract.Interposer{Unmarked: d.pipe}.Environ(), caches, o.Env)
	return artifact, interpose.Config{Library: o.Library, Mode: interpose.Replay, Exact: o.region(artifact), ExtraEnv: env}, release, nil
}

// told is the engine's part of the environment: the options, and the files to write.
func (o *Options) told(artifact string, d *desk) contract.Start {
	told := contract.Start{Run: contract.RunRestore, Artifact: artifact, Relax: o.Relax.String(), Strict: o.Strict, Check: o.Check, Lazy: o.Lazy,
		Status: d.status}
	if os.Getenv(contract.EnvRendezvous) == "" {
		told.Rendezvous = d.meeting
	}
	return told
}

// trusted returns the artifact that is to be restored, if the policy lets it pass. A policy that cannot be read refuses all. From a folder, the engine's
// process chooses.
func (o *Options) trusted() (artifact string, release func(), err error) {
	policy, err := trust.FromEnv(o.Verify)
	if err != nil {
		return "", func() {}, fmt.Errorf("%w: %w", trust.ErrUntrusted, err)
	}
	artifact, release, err = o.Artifact.resolve(policy, o.Stderr)
	if err == nil && isFolder(artifact) {
		o.Artifact.Auto = true
	}
	return artifact, release, err
}
