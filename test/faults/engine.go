package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"medusa/artifacts"
	"medusa/restore/status"
	"medusa/runners/reference/marks"
	"medusa/test/calllog"
)

// engine is an engine command with its artifact, and its behaviour without a fault.
type engine struct {
	name string
	variant
	argv     []string
	build    string // directory with the binaries
	dir      string // for this engine's files
	artifact []byte
	cache    uint64 // bytes of KV cache, natively as restored: their contents are compared
	outputs  string // of a native start
	log      *calllog.Log

	// The counts when a native or a restored start has served. inRegion is that of a native start whose memory lies at exact addresses,
	// as it does in a start that gave up a restore.
	live, inRegion, liveRestored string
}

// variant is how the engine is restored.
type variant struct {
	exact bool   // memory at exact addresses
	check string // before ready
	late  string // ZOO_LATE: "warmed" is an engine whose module variables change in warm-up
}

// served is the mark at which the driver's counts are compared: the engine has started and served, and has not freed anything yet.
const served = "served"

// environment is the caller's, with the simulated GPU as the driver.
func (e *engine) environment(variables ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MEDUSA_") && !strings.HasPrefix(v, "SIMGPU_") && !strings.HasPrefix(v, "LD_") {
			env = append(env, v)
		}
	}
	return append(append(env, "LD_LIBRARY_PATH="+filepath.Join(e.build, "simulated"), "SIMGPU_SEED=1", "SIMGPU_LEAKS=1", "ZOO_LATE="+e.late, fmt.Sprintf("ZOO_CACHE=%d", e.cache)), variables...)
}

func (e *engine) run(ctx context.Context, variables []string, argv ...string) (stdout, stderr string, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = e.environment(variables...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// prepare materializes the engine, and starts it natively and restored.
func (e *engine) prepare(ctx context.Context) error {
	medusa, path := filepath.Join(e.build, "medusa"), filepath.Join(e.dir, "good.medusa")
	if _, text, err := e.run(ctx, nil, append([]string{medusa, "materialize", "-o", path, "--"}, e.argv...)...); err != nil {
		return fmt.Errorf("materialize %s: %w\n%s", e.name, err, text)
	}
	var err error
	if e.artifact, err = os.ReadFile(path); err != nil {
		return err
	}
	art, err := artifacts.Read(path)
	if err != nil {
		return err
	}
	e.cache = art.KV.KVBytes
	log := filepath.Join(e.dir, "log")
	out, text, err := e.run(ctx, []string{"SIMGPU_LOG=" + log}, e.argv...)
	if err != nil {
		return fmt.Errorf("start %s natively: %w\n%s", e.name, err, text)
	}
	if e.outputs, _, err = resultOf(out); err != nil {
		return err
	}
	if e.live = e.liveAt(log); e.live == "" {
		return fmt.Errorf("start %s natively: the driver counted nothing at %q", e.name, served)
	}
	if e.inRegion, err = e.untried(ctx); err != nil {
		return err
	}
	calls := filepath.Join(e.dir, "calls")
	var o *outcome
	for range baseAttempts {
		if o, err = e.restore(ctx, "SIMGPU_CALL_LOG="+calls); err != nil {
			return err
		}
		if !e.exact || o.status == nil || o.status.Addresses == status.Exact {
			break
		}
	}
	if o.status == nil || o.status.Status != status.Restored || o.outputs != e.outputs {
		return fmt.Errorf("restore %s with no fault: %+v\n%s", e.name, o.status, o.stderr)
	}
	e.liveRestored = o.live
	e.log, err = calllog.Read(calls)
	return err
}

// untried returns the counts of an engine that does not match the artifact. It notices that before it makes any object for a restore. It
// starts natively, with its memory at the recorded addresses: no counted object comes from giving up.
func (e *engine) untried(ctx context.Context) (string, error) {
	if !e.exact {
		return e.live, nil
	}
	for range baseAttempts {
		o, err := e.restore(ctx, "ZOO_MODEL=another")
		if err != nil {
			return "", err
		}
		if o.err != nil || o.status == nil || o.status.Status != status.Native || o.status.Reason != "incompatible" {
			return "", fmt.Errorf("start %s as another model: %+v\n%s", e.name, o.status, o.stderr)
		}
		if o.atBase && strings.HasPrefix(o.live, "allocations=") {
			return o.live, nil
		}
	}
	return "", fmt.Errorf("start %s as another model: nothing was counted in the recorded region, %d times", e.name, baseAttempts)
}

// outcome is the result of one start from the artifact.
type outcome struct {
	status  *status.Status
	outputs string
	live    string
	stderr  string
	err     error // of the process

	// Whether device memory lies at the recorded addresses, of a start at exact addresses that has the interposer in it.
	atBase, elsewhere bool
}

// restore starts the engine from a copy of the artifact, which a lost context sets aside.
func (e *engine) restore(ctx context.Context, variables ...string) (*outcome, error) {
	file := func(name string) string { return filepath.Join(e.dir, name) }
	for _, name := range []string{"log", "status", "artifact.medusa.aside"} {
		if err := os.Remove(file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	if err := os.WriteFile(file("artifact.medusa"), e.artifact, 0o644); err != nil {
		return nil, err
	}
	addresses := "relocate"
	if e.exact {
		addresses = "exact"
	}
	argv := append([]string{filepath.Join(e.build, "medusa"), "restore", "--addresses", addresses, "--check", e.check, "--status", file("status"), file("artifact.medusa"), "--"}, e.argv...)
	out, text, err := e.run(ctx, append(variables, "SIMGPU_LOG="+file("log")), argv...)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	o := &outcome{stderr: text, err: err, live: e.liveAt(file("log"))}
	if err == nil {
		var held string
		if o.outputs, held, err = resultOf(out); err != nil {
			o.err = err
		}
		if e.exact && held != "" { // no process of its own after a lost context, which the interposer is not in
			o.live, o.atBase = o.live+" "+held, strings.HasSuffix(held, inRegion)
			o.elsewhere = !o.atBase
		}
	}
	if o.status, err = status.Read(file("status")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return o, nil
}

// inRegion ends the account of a process whose device memory lies at the recorded addresses.
const inRegion = "region=1"

// resultOf returns the part of an engine's result that must not depend on how it started, and its account of memory.
func resultOf(stdout string) (outputs, held string, err error) {
	var result struct {
		Output, Held string
		Runs         json.RawMessage
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil || result.Output == "" && result.Runs == nil {
		return "", "", fmt.Errorf("read engine's result %q: %w", stdout, err)
	}
	return result.Output + string(result.Runs), result.Held, nil
}

var liveLine = regexp.MustCompile(`live at ` + served + `: (.*)`)

func (e *engine) liveAt(path string) string {
	log, _ := os.ReadFile(path)
	m := liveLine.FindSubmatch(log)
	if m == nil {
		return ""
	}
	return string(m[1])
}

// fault is one call of a restored start that is to fail.
type fault struct {
	symbol string
	nth    int // among the calls of the engine's thread
	result string
	// optional: the restore may do without the call.
	optional bool
}

func (f fault) String() string { return fmt.Sprintf("%s:%d:%s", f.symbol, f.nth, f.result) }

// engineThread is the thread that entered the driver first; the fault is counted by its calls.
const engineThread = 0

// faults lists the calls that are made to fail: each call between Medusa's marks, triggering layers included, with each documented error;
// and, once graphs run, the first and the last call of each function with the loss of the context, which is the only
// error that a restored graph brings about.
func (e *engine) faults(table map[string][]string) ([]fault, error) {
	var list []fault
	counts, last := map[string]int{}, map[string]fault{}
	inside, ready := false, false
	for _, entry := range e.log.Entries {
		switch entry.Mark {
		case "":
		case marks.MedusaBegin, marks.MedusaEnd:
			inside = entry.Mark == marks.MedusaBegin
			continue
		case "ready":
			ready = true
			continue
		case served:
			ready = false
			continue
		default:
			continue
		}
		if entry.Thread != engineThread {
			continue
		}
		counts[entry.Name]++
		n := counts[entry.Name]
		if !inside && !ready {
			continue
		}
		results, err := errorsOf(table, entry.Name)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			f := fault{entry.Name, n, r, optional(entry, r, e.exact)}
			switch {
			case inside && r != entry.Result:
				list = append(list, f)
			case ready && r == contextLost:
				if _, again := last[entry.Name]; !again {
					list = append(list, f)
				}
				last[entry.Name] = f
			}
		}
	}
	for _, f := range last {
		list = append(list, f)
	}
	return list, nil
}
