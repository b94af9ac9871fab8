package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"medusa/restore/status"
)

// nccl asks for the devices, and for the version of the NCCL that torch has loaded.
const nccl = "import torch; print(torch.cuda.device_count(), *torch.cuda.nccl.version())"

const rankCount = 2

// ranked is a rank's report.
type ranked struct {
	start
	Rank int `json:"rank"`
}

func (k *Kit) tensorParallel() []string {
	engine := []string{k.Python, k.path("engine", "parallel.py"), fmt.Sprint(rankCount), k.Python, k.path("engine", "engine.py"),
		"--preset", "llama2-7b", "--batch-sizes", "1,8,32", "--tokens", "4"}
	return append(engine, sized(k, []string{"--layers", "4", "--max-length", "64"}, small)...)
}

// torchRanks starts the torch engine with two ranks, whose layers are added up by the machine's own NCCL: natively, materialized, and restored
// at the recorded addresses and at others, with every graph checked. NCCL needs a device for each rank. On a machine with one device, an artifact is made with one
// rank after another, and not restored.
func torchRanks(a *Attempt) error {
	env, err := a.torchEnv()
	if err != nil {
		return err
	}
	if a.simulated() {
		env = append(env, fmt.Sprintf("SIMGPU_DEVICES=%d", rankCount))
	}
	out, err := a.run(env, a.Python, "-c", nccl)
	if err != nil {
		return err
	}
	var devices int
	if _, err := fmt.Sscan(out, &devices); err != nil {
		return fmt.Errorf("count devices: %w", err)
	}
	a.row("devices, version of NCCL", "%s", strings.TrimSpace(out))
	if devices < rankCount {
		a.row("restored ranks", "not run: %d devices, and NCCL needs %d", devices, rankCount)
		return a.ranksAlone(env)
	}
	native, err := a.startRanks(env, "native", nil)
	if err != nil {
		return err
	}
	if err := a.materialize(env, "ranks", a.tensorParallel()...); err != nil {
		return err
	}
	for _, addresses := range []string{"exact", "relocate"} {
		told := filepath.Join(a.Work, "ranks-"+addresses+".json")
		restored, err := a.startRanks(env, "restored", []string{a.path("medusa"), "restore", "--strict", "--check=full", "--addresses=" + addresses, "--status", told, a.artifact("ranks"), "--"})
		if err != nil {
			return fmt.Errorf("addresses %s: %w", addresses, err)
		}
		said, err := status.Read(told)
		if err != nil {
			return err
		}
		a.row("restored, "+addresses, "%d graphs a rank, addresses %s %s; %s", restored[0].Graphs, said.Addresses, said.Relocated, spans(said))
		for r := range restored {
			if a.simulated() { // torch's kernels are no-ops there
				break
			}
			if err := sameOutputs(restored[r].start, native[r].start); err != nil {
				return fmt.Errorf("addresses %s: rank %d: %w", addresses, r, err)
			}
		}
	}
	return nil
}

// startRanks returns the ranks' reports, in their order.
func (a *Attempt) startRanks(env []string, how string, before []string) ([]ranked, error) {
	out, err := a.run(env, append(slices.Clip(before), a.tensorParallel()...)...)
	if err != nil {
		return nil, err
	}
	found, err := parseRanks(out)
	if err != nil {
		return nil, err
	}
	for i, r := range found {
		if r.Rank != i || r.Start != how || r.Graphs == 0 {
			return nil, fmt.Errorf("rank %d started %s with %d graphs, in place of rank %d %s", r.Rank, r.Start, r.Graphs, i, how)
		}
	}
	a.row(how, "%d ranks of %d graphs", len(found), found[0].Graphs)
	return found, nil
}

func parseRanks(out string) (found []ranked, err error) {
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var r ranked
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("read a rank's report: %w", err)
		}
		found = append(found, r)
	}
	if len(found) != rankCount {
		return nil, fmt.Errorf("%d ranks have reported, not %d", len(found), rankCount)
	}
	slices.SortFunc(found, func(x, y ranked) int { return x.Rank - y.Rank })
	return found, nil
}

// ranksAlone makes the artifact on one device.
func (a *Attempt) ranksAlone(env []string) error {
	out, err := a.run(env, append([]string{a.path("medusa"), "materialize", "--ranks-alone", fmt.Sprint(rankCount), "-o", a.artifact("ranks"), "--"}, a.tensorParallel()...)...)
	a.row("made with one rank after another", "%v: %s", err == nil, lineOf(out, "graphs "))
	return err
}
