package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"medusa/artifacts"
)

// Artifacts that are made on one GPU, one rank after another, beside those that all ranks made together.

// aloneRanks are the numbers of ranks. The last one is named in the verdict.
var aloneRanks = []int{2, 8}

// onlyAlone makes each engine's artifact in both ways, and restores all ranks from the one that was made alone.
func onlyAlone() error {
	dir, err := os.MkdirTemp("", "ranks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var seen compared
	for _, n := range aloneRanks {
		for _, kinds := range []bool{false, true} {
			t := test{ranks: n, kinds: kinds, artifact: filepath.Join(dir, fmt.Sprintf("%d-%v.medusa", n, kinds)), seen: &seen}
			if err := t.runAlone(); err != nil {
				return fmt.Errorf("%d ranks, each alone (all kinds of calls: %v): %w", n, kinds, err)
			}
		}
	}
	verdict, err := "PASS", seen.judge()
	if err != nil {
		verdict = "FAIL"
	}
	fmt.Printf("test-ranks: %s device=simulated alone=%d graphs=%d collectives=%d nodes=%d edges=%d pointers=%d tokens=%d differences=%d\n", verdict,
		aloneRanks[len(aloneRanks)-1], seen.graphs, seen.collectives, seen.truth.nodes, seen.truth.edges, seen.truth.pointers, seen.tokens, seen.differences)
	return err
}

func (t *test) runAlone() error {
	if err := t.make(); err != nil {
		return err
	}
	alone := *t
	alone.noAddresses = true // materialize/region.go
	alone.artifact = strings.TrimSuffix(t.artifact, ".medusa") + "-alone.medusa"
	if made := alone.makeAlone("0"); made.err != nil {
		return fmt.Errorf("materialize: %v", made)
	}
	if err := compareParts(t.artifact, alone.artifact); err != nil {
		return err
	}
	for _, addresses := range []string{"exact", "relocate"} {
		if err := alone.restore(addresses); err != nil {
			return err
		}
	}
	if t.ranks > 2 || t.kinds { // the controls are about the other shape, and each takes a native start
		return nil
	}
	for _, c := range aloneControls {
		if err := c.run(&alone); err != nil {
			return fmt.Errorf("control %s: %w", c.name, err)
		}
	}
	return nil
}

// makeAlone makes the artifact with one device.
func (t *test) makeAlone(communicator string, env ...string) outcome {
	return t.start(append(env, "SIMGPU_DEVICES=1"), "build/medusa", "materialize", "--ranks-alone", fmt.Sprint(t.ranks), "--communicator-memory", communicator,
		"-o", t.artifact, "--", "build/ranks")
}

// aloneControls are mistakes that only such an artifact could have, or that have to be noticed although no rank has replayed a graph with calls before
// ready, and starts that have to be restored nevertheless. Each has a name.
var aloneControls = []struct {
	name string
	run  func(t *test) error
}{
	{"parts", ofTogether("parts")},
	{"contents", ofTogether("contents")},
	{"memory", ofTogether("memory")},
	{"error", ofTogether("error")},
	{"no-call", func(t *test) error {
		return t.refused("no-call", "rank 1: record medusa_mark_collective: the call added no node to the capture")
	}},
	{"no-mark", func(t *test) error {
		return t.refused("no-mark", "compare ranks: collective calls of graph \"decode-1\": rank 0 has call ")
	}},
	{"kept", func(t *test) error {
		return t.refused("kept", "verify graph \"decode-1\": input \"tokens\" alloc#2+0 differs between two native replays", "RANKS_KINDS=1", "RANKS_KEPT=1")
	}},
	{"received", (*test).received},
	{"crowded", (*test).crowded},
	{"together", (*test).verifyTogether},
}

// ofTogether is a control of artifacts that all ranks made.
func ofTogether(how string) func(t *test) error {
	i := slices.IndexFunc(controls, func(c control) bool { return c.how == how })
	return func(t *test) error { return t.control(controls[i]) }
}

// received restores ranks that hold data of another rank in memory without a name. It is not among the memory that stays unchanged.
func (t *test) received() error {
	own := *t
	own.artifact = t.artifact + ".received"
	const engine = "RANKS_RECEIVED=1"
	if made := own.makeAlone("0", engine); made.err != nil {
		return fmt.Errorf("materialize: %v", made)
	}
	got := own.start([]string{engine}, "build/medusa", "restore", "--strict", "--check=full", own.artifact, "--", "build/ranks")
	if _, differences := got.compare(t.native); got.err != nil || got.all("restored") != t.ranks || differences != 0 {
		return fmt.Errorf("%d tokens differ: %v", differences, got)
	}
	fmt.Printf("%d ranks, memory with data of another rank: all restored\n", t.ranks)
	return nil
}

// refused makes an artifact of an engine that must get none alone, and one of the same engine with all ranks, which has to succeed.
func (t *test) refused(how, says string, env ...string) error {
	own := *t
	own.artifact = t.artifact + "." + how
	env = append(env, "RANKS_BREAK="+how)
	if made := own.makeAlone("0", env...); made.err == nil || !strings.Contains(made.stderr, says) {
		return fmt.Errorf("want %q: %v", says, made)
	}
	if _, err := os.Stat(own.artifact); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is an artifact: %v", err)
	}
	if made := own.start(env, "build/medusa", "materialize", "-o", own.artifact, "--", "build/ranks"); made.err != nil {
		return fmt.Errorf("with all ranks: %v", made)
	}
	fmt.Printf("%d ranks, %s: not made alone: %s\n", t.ranks, how, says)
	return nil
}

// verifyTogether repeats the verification on a machine that has all devices: graphs with calls are compared with peers.
func (t *test) verifyTogether() error {
	verified := t.start(nil, "build/medusa", "verify", t.artifact, "--", "build/ranks")
	if verified.err != nil {
		return errors.New(verified.String())
	}
	fmt.Printf("%d ranks: verified together\n", t.ranks)
	return nil
}

// crowded starts the ranks with less memory than they need with a communicator, and with enough.
func (t *test) crowded() error {
	const communicator, page = 8 << 20, 2 << 20
	own := *t
	own.artifact = t.artifact + ".room"
	if made := own.makeAlone(fmt.Sprint(communicator)); made.err != nil {
		return fmt.Errorf("materialize: %v", made)
	}
	a, err := artifacts.Read(own.artifact)
	if err != nil {
		return err
	}
	needed := int(a.KV.KVBytes + communicator)
	c := control{how: "crowded", env: []string{fmt.Sprintf("RANKS_FREE=%d", needed-page)},
		says: []string{"native start: memory: rank 1 starts natively: check KV profile: ", fmt.Sprintf("at least %d needed", needed)}}
	if err := own.control(c); err != nil {
		return fmt.Errorf("control %s: %w", c.how, err)
	}
	got := own.start([]string{"RANKS_BREAK=crowded", fmt.Sprintf("RANKS_FREE=%d", needed+page)}, "build/medusa", "restore", "--strict", "--check=full", own.artifact, "--", "build/ranks")
	if _, differences := got.compare(t.native); got.err != nil || got.all("restored") != t.ranks || differences != 0 {
		return fmt.Errorf("with enough memory, %d tokens differ: %v", differences, got)
	}
	fmt.Printf("%d ranks, room for a communicator: all restored\n", t.ranks)
	return nil
}
