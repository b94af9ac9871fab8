package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"medusa/restore/status"
)

func (a *Attempt) special(name string) []string {
	return []string{a.Python, a.path("engine", "special.py"), name}
}

// hard materializes graphs whose native replays may differ, or that read memory that the engine rewrites. Each is restored and checked, or
// refused by its name; one that reads stale metadata is refused.
func (a *Attempt) hard(env []string) error {
	var failed []error
	for _, name := range []string{"moe", "atomics", "stale"} {
		refused, err := a.refusedOrRestored(env, name)
		if err == nil && name == "stale" && !refused && !a.simulated() { // the simulated kernels are no-ops: stale metadata has no effect
			err = errors.New("a graph with metadata that the engine rewrites was restored")
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	return joined(failed)
}

func (a *Attempt) refusedOrRestored(env []string, name string) (refused bool, err error) {
	if err := os.RemoveAll(a.artifact(name)); err != nil {
		return false, err
	}
	said := filepath.Join(a.Work, "logs", name+".txt")
	command := strings.Join(append([]string{a.path("medusa"), "materialize", "-o", a.artifact(name), "--"}, a.special(name)...), " ")
	_, code, err := a.exit(env, "sh", "-c", command+" 2>"+said)
	text, readErr := os.ReadFile(said)
	if err := errors.Join(err, readErr); err != nil {
		return false, err
	}
	if code != 0 {
		reason := refusal(string(text))
		a.row(name, "refused: %s", reason)
		if !strings.Contains(reason, name) {
			return true, fmt.Errorf("exit code %d, and no line names the graph: %s", code, reason)
		}
		return true, nil
	}
	_, err = a.run(env, append([]string{a.path("medusa"), "restore", "--strict", "--check=full", a.artifact(name), "--"}, a.special(name)...)...)
	a.row(name, "materialized; restored, and checked: %v", err == nil)
	return false, err
}

// refusal is the line in which medusa says why it ends.
func refusal(text string) string {
	reason := lastLine(text)
	for line := range strings.Lines(text) {
		if after, ours := strings.CutPrefix(strings.TrimSpace(line), "medusa: "); ours {
			reason = after
		}
	}
	return reason
}

// floor measures the time that the driver alone takes for a node.
func (a *Attempt) floor() error {
	nodes, graphs := 1000, sized(a.Kit, 21, 3)
	out, err := a.run(nil, a.path("floor"), fmt.Sprint(nodes), fmt.Sprint(graphs))
	got := named(out)
	launched := got["launched"]
	delete(got, "launched")
	for _, step := range slices.Sorted(maps.Keys(got)) {
		a.row("driver alone, "+step, "%s ns a node", got[step])
	}
	if want := fmt.Sprint(2 * nodes * graphs); err == nil && launched != want {
		err = fmt.Errorf("floor: %s nodes ran, want %s", launched, want)
	}
	return err
}

// freed restores an engine that frees memory of its graph, and one that loses its device's context.
func (a *Attempt) freed(env []string) error {
	if err := a.materialize(env, "freed", a.special("freed")...); err != nil {
		return err
	}
	out, err := a.run(env, append([]string{a.path("medusa"), "restore", "--strict", a.artifact("freed"), "--"}, a.special("freed")...)...)
	var said struct{ Start, Invalid string }
	if err == nil {
		err = json.Unmarshal([]byte(lastLine(out)), &said)
	}
	if err != nil {
		return fmt.Errorf("freed memory: %w", err)
	}
	a.row("memory of a restored graph freed", "start %s, graph: %s", said.Start, said.Invalid)
	if said.Start != "restored" || said.Invalid == "" {
		return errors.New("freed memory: the restored graph may still be launched")
	}
	if err := a.materialize(env, "lost", a.special("lost")...); err != nil {
		return err
	}
	return a.lost(env)
}

// lost: the engine's process ends, the next one starts natively, and the artifact is set aside. No kernel of torch's touches memory
// on the simulated GPU: there the launch is made to fail.
func (a *Attempt) lost(env []string) error {
	path, once := filepath.Join(a.Work, "lost-status.json"), filepath.Join(a.Work, "lost-once")
	if err := errors.Join(os.RemoveAll(path), os.RemoveAll(once), os.RemoveAll(a.artifact("lost")+".aside")); err != nil {
		return err
	}
	env = append(env, sized(a.Kit, nil, []string{"SIMGPU_FAIL=cuGraphLaunch:2:CUDA_ERROR_ILLEGAL_ADDRESS", "SIMGPU_FAIL_ONCE=" + once})...)
	out, err := a.run(env, append([]string{a.path("medusa"), "restore", "--status", path, a.artifact("lost"), "--"}, a.special("lost")...)...)
	var said struct{ Start string }
	if err == nil {
		err = json.Unmarshal([]byte(lastLine(out)), &said)
	}
	var st *status.Status
	if err == nil {
		st, err = status.Read(path)
	}
	if err != nil {
		return fmt.Errorf("context lost: %w", err)
	}
	_, aside := os.Stat(a.artifact("lost") + ".aside")
	a.row("context lost after ready", "status %s: %s; then started %s, artifact set aside: %v", st.Status, st.Detail, said.Start, aside == nil)
	if st.Status != status.Sticky || said.Start != "native" || aside != nil {
		return fmt.Errorf("context lost: status %s, then a %s start, artifact set aside: %v", st.Status, said.Start, aside == nil)
	}
	return nil
}
