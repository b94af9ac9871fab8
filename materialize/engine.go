package materialize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/internal/scratch"
	"medusa/interpose"
	"medusa/kvprofile"
	"medusa/materialize/recording"
)

// engine starts the user's engine command for one run of the series.
type engine struct {
	argv    []string
	library string // the interposer
	dir     string // folder for traces and digests of this series
	env     []string
	relax   artifacts.Relaxed // of verifying runs
	log     io.Writer         // receives the engine's own output; nil: only the file does
	caches  string            // folder of JIT compilers' caches
	kept    *series           // of an earlier series; nil: none is resumed
	// contents is what the recordings do with weights (weights.go), and tied why their contents count.
	contents contract.Contents
	tied     string
	alone    int // ranks that are run one after another; 0: the command starts all of its ranks
}

// placement is the place of a recorded run's device memory: a region, or the driver's choice, with gaps or without.
type placement struct {
	region  interpose.Region
	gapSeed uint64
}

// record runs the engine up to `ready` under the recorder and reads the traces that it leaves, one a rank. profiles
// are the results of the run profile, by rank.
func (e *engine) record(ctx context.Context, name string, run contract.Run, at placement, profiles []kvprofile.Profile) ([]*recording.Recording, error) {
	path := filepath.Join(e.dir, name+traceSuffix)
	if err := removeTraces(path); err != nil {
		return nil, fmt.Errorf("record %s: %w", name, err)
	}
	told := contract.Start{Run: run}
	if run != contract.RunProfile {
		told.KVBytes, told.WorkspaceBytes = sizes(profiles)
	}
	// mutant: other weights in record-b
	if e.contents == contract.ContentsCount || name == runRecordB {
		told.Weights = e.contents
	}
	told.Peers = e.peers(name)
	cfg := interpose.Config{Library: e.library, Mode: interpose.Record, TracePath: path, GapSeed: at.gapSeed, Exact: at.region, ExitAtReady: true, ExtraEnv: told.Environ()}
	return after(e.run(ctx, name, cfg), func() ([]*recording.Recording, error) { return readRanks(name, path, e.ready) })
}

// after reads the files of a run, whose end counts more than the command's exit code: if a command starts the engine in a
// process of its own (a server with an engine process), that process ends at ready, and the command takes this for a failure.
func after[T any](ran error, read func() (T, error)) (T, error) {
	var failed *EngineError
	if ran != nil && !errors.As(ran, &failed) {
		var none T
		return none, ran
	}
	left, err := read()
	// mutant: exit code of a recorded server
	if err != nil && ran != nil {
		err = ran
	}
	return left, err
}

// ready reads a trace that a run should have left at ready.
func (e *engine) ready(path string) (*recording.Recording, error) {
	r, err := e.recording(path)
	if err == nil && r.ReadyOrder == recording.NoOrder {
		return nil, unready(r, e.argv[0])
	}
	return r, err
}

// recording reads a trace that a run should have left.
func (e *engine) recording(path string) (*recording.Recording, error) {
	r, err := recording.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("record %q: it used no CUDA driver that the interposer saw", e.argv[0])
	}
	return r, err
}

// sizes are the numbers for an engine which makes no profile forward, by rank.
func sizes(profiles []kvprofile.Profile) (kv, workspace []uint64) {
	for _, p := range profiles {
		kv, workspace = append(kv, p.KVBytes), append(workspace, p.Workspace)
	}
	return kv, workspace
}

// run starts the engine for one run of the series, once or for each rank.
func (e *engine) run(ctx context.Context, name string, cfg interpose.Config) error {
	cfg.ExtraEnv = slices.Concat(cfg.ExtraEnv, e.env)
	if e.alone == 0 {
		return e.start(ctx, name, logSuffix, cfg)
	}
	return e.runAlone(ctx, name, cfg)
}

// start starts the engine's command once. Its output goes to a file with the suffix.
func (e *engine) start(ctx context.Context, name, suffix string, cfg interpose.Config) error {
	cmd, err := interpose.Command(ctx, cfg, e.argv)
	if err != nil {
		return err
	}
	kept := newOutput(filepath.Join(e.dir, name+suffix))
	out := io.Writer(kept)
	if e.log != nil {
		out = io.MultiWriter(e.log, kept)
	}
	cmd.Stdout, cmd.Stderr = out, out
	err = interpose.Run(cmd, interpose.Kill)
	kept.err = kept.close()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return kept.failed(name, err)
}

// runFolder makes the folder for a series' traces, outside of the user's folders.
func runFolder() (dir string, remove func(), err error) {
	f, err := scratch.ForRun()
	if err != nil {
		return "", nil, err
	}
	return f.Path, func() { _ = f.Close() }, nil
}
