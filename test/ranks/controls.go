package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"medusa/artifacts"
)

// control is a restored start in which rank 1 misbehaves, or all ranks are asked for something impossible. It ends in a native start of all
// ranks, with native's tokens.
type control struct {
	how   string // RANKS_BREAK, or the name of spoil's change
	env   []string
	spoil func(a *artifacts.Artifact) error
	plain bool     // without checks before ready
	lazy  bool     // graphs are to be built at their first use
	says  []string // each is on standard error
}

var leftOut = control{how: "leave-out", says: []string{"check graph decode-1: cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED", "native start: restored graphs left a sticky device error"}}

var controls = []control{
	// All ranks wait in vain, and the first that gives up ends the others.
	{how: "peer", says: []string{": cuStreamSynchronize(stream): 719", "native start: engine_ended: "}},
	leftOut,
	{how: "exchange", says: []string{"check graph decode-1: cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED", "native start: restored graphs left a sticky device error"}},
	// No rank waits alone in a call: each waits for the others, who would trap after the communicator's deadline.
	{how: "add", says: []string{"native start: check_failed: rank 1 starts natively: check graph decode-1: a replay on verification's data gives hash"}},
	{how: "memory", says: []string{"native start: check_failed: rank 1 starts natively: check memory that stays unchanged"}},
	{how: "level", says: []string{"native start: incompatible: ranks ", "or check different graphs"}},
	{how: "error", says: []string{"native start: driver_error: rank 1 starts natively: build graph decode-1: node 1 (collective): make a collective call: the engine's function returned 1"}},
	{how: "error-connect", plain: true, says: []string{"native start: driver_error: rank 1 starts natively: connect the calls of graphs: the engine's function returned 1"}},
	{how: "leave-out-all", spoil: leaveOut, says: []string{"native start: check_failed: ", "check graph decode-1: "}},
	{how: "exchange-all", spoil: exchangeHoles, says: []string{"native start: check_failed: ", "check graph decode-1: "}},
	{how: "parts", spoil: exchangeParts, says: []string{"native start: incompatible: ", "rank.index"}},
	{how: "contents", spoil: exchangeContents, says: []string{"native start: check_failed: ", "check memory that stays unchanged"}},
	{how: "lazy", lazy: true, says: []string{"native start: engine: build graphs at their first use: they have collective calls"}},
	{how: "error-early", says: []string{"native start: engine_ended: the engine ended with exit status 1 before its "}},
	{how: "death", says: []string{"native start: engine_ended: the engine ended with exit status 9 before its "}},
	{how: "death-early", says: []string{"native start: engine_ended: the engine ended with exit status 9 before its "}},
	{how: "death-late", says: []string{"native start: engine_ended: the engine ended with exit status 9 before its "}},
}

func (t *test) control(c control) error {
	// A failed start sets its artifact aside.
	own := t.artifact + "." + c.how
	a, err := artifacts.Read(t.artifact)
	if err == nil && c.spoil != nil {
		err = c.spoil(a)
	}
	if err == nil {
		err = artifacts.Write(own, a)
	}
	if err != nil {
		return err
	}
	how := []string{"--check=full"}
	switch {
	case c.lazy:
		how = []string{"--check=none", "--lazy"}
	case c.plain:
		how = []string{"--check=none"}
	}
	command := slices.Concat([]string{"build/medusa", "restore"}, how, []string{own, "--", "build/ranks"})
	began := time.Now()
	got := t.start(append([]string{"RANKS_BREAK=" + c.how, "NCCL_STANDIN_SECONDS=5"}, c.env...), command...)
	took := time.Since(began).Seconds()
	for _, text := range c.says {
		if !strings.Contains(got.stderr, text) {
			return fmt.Errorf("%q is not on standard error: %v", text, got)
		}
	}
	tokens, differences := got.compare(t.native)
	if got.err != nil || got.all("captured") != t.ranks || differences != 0 || strings.Contains(got.stderr, "artifact_missing") {
		return fmt.Errorf("want a native start of all ranks, %d of %d tokens differ: %v", differences, tokens, got)
	}
	fmt.Printf("%d ranks, %s: all native, %d of %d tokens differ, after %.1f s\n", t.ranks, c.how, differences, tokens, took)
	return nil
}
