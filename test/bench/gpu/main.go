// Command gpu reads the output of scripts/gpu-bench in a folder, and prints one line for each aim that needs a GPU.
//
// In: the folder. Out: the lines, with the device. Fails: if a file is missing or has another form.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"medusa/internal/measure"
	"medusa/restore/starts"
	"medusa/restore/status"
	"medusa/test/bench"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gpu DIR")
		os.Exit(2)
	}
	if err := report(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gpu:", err)
		os.Exit(1)
	}
}

func report(dir string) error {
	var measured starts.Report
	if err := read(filepath.Join(dir, "starts.json"), &measured); err != nil {
		return err
	}
	fmt.Printf("device %s; %s; %d starts each\n", measured.Device, measured.Machine, measured.Rounds)
	if strings.Contains(strings.ToLower(measured.Device), "simulated") {
		fmt.Println("simulated: what follows shows that everything runs, and is no time on a GPU")
	}
	floors, err := floors(filepath.Join(dir, "floor.txt"))
	if err != nil {
		return err
	}
	native, restored := captureOf(measured, starts.Native), captureOf(measured, starts.Restored)
	fmt.Printf("aim restore of 35 graphs: %.1f times faster than native capture, the floor %.1f times (goal 10) %s\n", native/restored,
		native/floors[sevenB].milliseconds, verdict(native/restored >= 10))
	for _, set := range []string{sevenB, foundry} {
		f := floors[set]
		fmt.Printf("aim build over floor, %s: %.3f ± %.3f (goal 1.05) %s, floor %.1f ms\n", set, f.ratio, f.spread, verdict(f.ratio <= 1.05), f.milliseconds)
	}

	plain, err := captures(filepath.Join(dir, "plain-*.json"))
	if err != nil {
		return err
	}
	recorded, err := captures(filepath.Join(dir, "record-*.json"))
	if err != nil {
		return err
	}
	slowdown, spread := measure.Ratios(recorded, plain)
	fmt.Printf("aim record-mode slowdown of a capture: %.3f ± %.3f (goal 1.05) %s\n", slowdown, spread, verdict(slowdown <= 1.05))

	batches, ours, theirs, err := replays(dir)
	if err != nil {
		return err
	}
	for i, batch := range batches {
		ratio, spread := measure.Ratios(ours[i], theirs[i])
		fmt.Printf("aim replay of batch %d: %.4f ± %.4f of native (goal 1.005) %s\n", batch, ratio, spread, verdict(ratio <= 1.005))
	}
	return nil
}

// The sets of graphs that are built against the floor: one like that of the engine which is started, and one of 1,000 nodes each.
const sevenB, foundry = "llama2-7b", "foundry-128"

// floor is the cheapest sequence of driver calls for a set, and the time of restoring beyond it.
type floor struct{ milliseconds, ratio, spread float64 }

func floors(path string) (map[string]floor, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	defer file.Close()
	results, _, err := bench.ReadResults(file, io.Discard)
	if err != nil {
		return nil, fmt.Errorf("read result %s: %w", path, err)
	}
	out := map[string]floor{}
	for _, set := range []string{sevenB, foundry} {
		ns, ok1 := bench.Find(results, "Floor/"+set, "floor-ns")
		ratio, ok2 := bench.Find(results, "Floor/"+set, "over-floor")
		spread, ok3 := bench.Find(results, "Floor/"+set, "over-floor-spread")
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("read result %s: nothing of the floor of %s", path, set)
		}
		out[set] = floor{ns / 1e6, ratio, spread}
	}
	return out, nil
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "short"
}

func read(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read result: %w", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read result %s: %w", path, err)
	}
	return nil
}

// captureOf is the median time in which a mode's start got its graphs.
func captureOf(r starts.Report, mode string) float64 {
	for _, s := range r.Starts {
		for _, x := range s.Stages {
			if s.Mode == mode && x.Name == "capture" {
				return x.Milliseconds
			}
		}
	}
	return 0
}

// captures reads the time of the capture phase from one status a round.
func captures(pattern string) (measure.Times, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("read result: no %s (%v)", pattern, err)
	}
	var out measure.Times
	for _, path := range paths {
		st, err := status.Read(path)
		if err != nil {
			return nil, err
		}
		for i, p := range st.Phases[:max(0, len(st.Phases)-1)] {
			if p.Name == "capture" {
				out = append(out, time.Duration((st.Phases[i+1].Began-p.Began)*1e9))
			}
		}
	}
	return out, nil
}

// replays reads the decode steps' times by batch size, round by round.
func replays(dir string) (batches []int, restored, native []measure.Times, err error) {
	for round := 1; ; round++ {
		var pair [2]struct {
			Runs []struct {
				Batch int `json:"batch"`
			} `json:"runs"`
			StepMS []float64 `json:"step_ms"` // by run
		}
		for k, name := range []string{"restored", "native"} {
			path := filepath.Join(dir, fmt.Sprintf("replay-%s-%d.json", name, round))
			if _, err := os.Stat(path); err != nil && round > 1 {
				return batches, restored, native, nil
			}
			if err := read(path, &pair[k]); err != nil {
				return nil, nil, nil, err
			}
		}
		for i, r := range pair[0].Runs {
			if round == 1 {
				batches, restored, native = append(batches, r.Batch), append(restored, nil), append(native, nil)
			}
			if i >= len(batches) || i >= len(pair[1].Runs) || batches[i] != r.Batch || pair[1].Runs[i].Batch != r.Batch ||
				i >= len(pair[0].StepMS) || i >= len(pair[1].StepMS) {
				return nil, nil, nil, fmt.Errorf("compare replays: round %d has other batch sizes", round)
			}
			restored[i] = append(restored[i], time.Duration(pair[0].StepMS[i]*1e6))
			native[i] = append(native[i], time.Duration(pair[1].StepMS[i]*1e6))
		}
	}
}
