// Package fullsize records an engine on a device as large as real ones, compiles it, and restores it in both address modes.
//
// In: sizes, and the output of make. Out: peak memory of each process, and an error if a restored start leaves other words in memory
// than a native one. The simulated GPU holds memory only once it is touched, so 141 GB of device cost the host little.
// Recordings run with kernels off, starts with kernels on. It makes no check-native and check-restored: they hash all memory.
package fullsize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/internal/spill"
	"medusa/interpose"
	"medusa/interpose/trace"
	"medusa/kvprofile"
	"medusa/materialize/compile"
	"medusa/materialize/recording"
	"medusa/restore/status"
)

// Sizes are the numbers of graphs and nodes, and the bytes of memory.
type Sizes struct {
	Device, KV    uint64 // bytes
	Graphs, Nodes int    // nodes of each graph
}

// Process is the peak memory of a process.
type Process struct {
	Name string
	Peak uint64 // bytes of host memory
}

// Run makes the runs. Build is make's output folder, dir one for files.
func Run(ctx context.Context, build, dir string, s Sizes) ([]Process, error) {
	r := &runner{ctx: ctx, build: build, dir: dir, sizes: s}
	native, err := r.serve("native", nil)
	if err != nil {
		return r.done, err
	}
	if err := r.materialize(); err != nil {
		return r.done, err
	}
	for _, addresses := range []string{status.Exact, status.Relocated} {
		if err := r.restored(addresses, native); err != nil {
			return r.done, err
		}
	}
	return r.done, nil
}

type runner struct {
	ctx        context.Context
	build, dir string
	sizes      Sizes
	done       []Process
}

func (r *runner) path(elements ...string) string {
	return filepath.Join(append([]string{r.build}, elements...)...)
}
func (r *runner) artifact() string { return filepath.Join(r.dir, "x.medusa") }

func (r *runner) engine() []string {
	return []string{r.path("fullsize-engine"), "-graphs", fmt.Sprint(r.sizes.Graphs), "-nodes", fmt.Sprint(r.sizes.Nodes), "-kv", fmt.Sprint(r.sizes.KV)}
}

func (r *runner) run(name string, cmd *exec.Cmd, variables ...string) (string, error) {
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(append(cmd.Env, "LD_LIBRARY_PATH="+r.path("simulated"), fmt.Sprintf("SIMGPU_MEMORY=%d", r.sizes.Device)), variables...)
	err := cmd.Run()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.done = append(r.done, Process{name, uint64(usage.Maxrss) << 10})
	}
	if err != nil {
		return "", fmt.Errorf("run %s: %w\n%s", name, err, errs.String())
	}
	return out.String(), nil
}

// serve runs the engine behind other arguments, with a KV cache of the given size if it decides that itself.
func (r *runner) serve(name string, before []string) (string, error) {
	argv := append(before, r.engine()...)
	return r.run(name, exec.CommandContext(r.ctx, argv[0], argv[1:]...))
}

// record makes record-a or record-b.
func (r *runner) record(name string, region interpose.Region, seed uint64) (string, error) {
	path := filepath.Join(r.dir, name+".trace")
	cmd, err := interpose.Command(r.ctx, interpose.Config{Library: r.path("lib", interpose.LibraryName), Mode: interpose.Record, TracePath: path,
		Exact: region, GapSeed: seed, ExitAtReady: true}, r.engine())
	if err != nil {
		return "", err
	}
	told := contract.Start{Run: contract.RunRecord, KVBytes: []uint64{r.sizes.KV}, WorkspaceBytes: []uint64{0}}
	cmd.Env = append(cmd.Env, told.Environ()...)
	_, err = r.run(name, cmd, "SIMGPU_COMPUTE=off")
	return path, err
}

func (r *runner) materialize() error {
	var runs [2]*recording.Recording
	for i, at := range []struct {
		name   string
		region interpose.Region
		seed   uint64
	}{{"record-a", interpose.DefaultRegion, 0}, {"record-b", interpose.StretchedRegion, 7}} {
		path, err := r.record(at.name, at.region, at.seed)
		if err != nil {
			return err
		}
		if runs[i], err = recording.Read(path); err != nil {
			return err
		}
	}
	spec, pads, err := compile.Compile(runs[0], runs[1], &spill.File{Dir: r.dir})
	if err == nil {
		err = pads.Unproven()
	}
	if err != nil {
		return err
	}
	identity, err := identity(filepath.Join(r.dir, "record-a.trace"))
	if err != nil {
		return err
	}
	kv := kvprofile.Profile{KVBytes: r.sizes.KV, TotalMemory: r.sizes.Device, FreeBefore: r.sizes.KV, FreeAfter: r.sizes.KV, Utilization: 0.9, ProfileTokens: 1}
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return err
	}
	r.done = append(r.done, Process{"compile", uint64(self.Maxrss) << 10})
	return artifacts.Write(r.artifact(), &artifacts.Artifact{Identity: identity, KV: kv, Spec: spec})
}

// identity reads the identity of the recorded process.
func identity(path string) (artifacts.Identity, error) {
	f, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var id artifacts.Identity
	for {
		rec, err := f.Next()
		if errors.Is(err, io.EOF) {
			return id, nil
		}
		if err != nil {
			return nil, err
		}
		if v, ok := rec.(*trace.Identity); ok {
			id = append(id, artifacts.Factor{Key: v.Key, Value: v.Value})
		}
	}
}

// restored starts the engine with the artifact, and compares the memory after it with a native start's.
func (r *runner) restored(addresses, native string) error {
	file := filepath.Join(r.dir, addresses+".json")
	before := []string{r.path("medusa"), "restore", "--strict", "--status", file}
	if addresses == status.Relocated {
		before = append(before, "--addresses=relocate")
	}
	out, err := r.serve(addresses, append(before, r.artifact(), "--"))
	if err != nil {
		return err
	}
	st, err := status.Read(file)
	if err != nil {
		return err
	}
	if st.Status != status.Restored || st.Addresses != addresses {
		return fmt.Errorf("start %s: %s, addresses %s (%s)", addresses, st.Status, st.Addresses, st.Relocated)
	}
	if want := strings.Replace(native, "restored=false", "restored=true", 1); out != want {
		return fmt.Errorf("start %s: it left %q, a native start %q", addresses, out, want)
	}
	return nil
}
