package main

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"

	"medusa/restore/status"
	"medusa/test/testenv"
)

// A sample of make faults: each function of the zoo's restore fails once, at its last call, with one error that leaves
// the device usable and one that does not.
func TestSampleOfFaults(t *testing.T) {
	sampleOfFaults(t, variant{check: "full"})
}

// A native start after a fault finds the variables of the engine's modules as the engine left them.
func TestSampleOfFaultsWithVariables(t *testing.T) {
	sampleOfFaults(t, variant{check: "full", late: "warmed"})
}

// In a region the driver's pages and the blocks in them are both counted.
func TestSampleOfFaultsAtExactAddresses(t *testing.T) {
	sampleOfFaults(t, variant{exact: true, check: "full"})
}

func sampleOfFaults(t *testing.T, how variant) {
	testenv.Build(t, "lib", "bin", "zoo")
	e, err := newEngine(context.Background(), testenv.Path(t, "build"), "zoo", how, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	list, err := e.faults(documented())
	if err != nil {
		t.Fatal(err)
	}
	type kind struct {
		symbol string
		lost   bool
	}
	tried := map[kind]bool{}
	var sample []fault
	for _, f := range slices.Backward(list) {
		if k := (kind{f.symbol, losesContext(f.result)}); !tried[k] {
			tried[k] = true
			sample = append(sample, f)
		}
	}
	var sum tally
	var counting sync.Mutex
	err = e.each(context.Background(), sample, func(f fault, o *outcome) {
		v := e.judge(f, o)
		counting.Lock()
		defer counting.Unlock()
		sum.add(v)
		if v.wrong != "" || v.leaked != "" {
			t.Errorf("%s: %s", f, v)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum.faults < 20 || !tried[kind{"cuGraphLaunch", true}] || !tried[kind{"cuGraphInstantiateWithFlags", false}] {
		t.Errorf("only %v was tried", tried)
	}
	t.Log(&sum)
}

// The leftovers that a fault may have, and those that it may not have.
func TestJudge(t *testing.T) {
	e := &engine{outputs: "right", live: "allocations=2 graphs=0", inRegion: "allocations=2 graphs=0", liveRestored: "allocations=3 graphs=0"}
	good := outcome{status: &status.Status{Status: status.Native}, outputs: "right", live: e.live}
	with := func(change func(*outcome)) *outcome {
		o := good
		st := *good.status
		o.status = &st
		change(&o)
		return &o
	}
	restored := func(o *outcome) { o.status.Status, o.live = status.Restored, e.liveRestored }
	plain := fault{symbol: "cuMemAlloc_v2", result: "CUDA_ERROR_OUT_OF_MEMORY"}
	for name, row := range map[string]struct {
		fault         fault
		outcome       *outcome
		wrong, leaked bool
	}{
		"native":                           {plain, &good, false, false},
		"died":                             {plain, with(func(o *outcome) { o.err = os.ErrInvalid }), true, false},
		"no status":                        {plain, with(func(o *outcome) { o.status = nil }), true, false},
		"other outputs":                    {plain, with(func(o *outcome) { o.outputs = "other" }), true, false},
		"restored all the same":            {plain, with(restored), true, true},
		"restored without the answer":      {fault{optional: true}, with(restored), false, false},
		"restored with hashes of the host": {plain, with(func(o *outcome) { restored(o); o.status.Hashing = status.OnHost }), false, false},
		"an allocation left":               {plain, with(func(o *outcome) { o.live = "allocations=3 graphs=0" }), false, true},
		"a free refused":                   {fault{symbol: "cuMemFree_v2"}, with(func(o *outcome) { o.live = "allocations=3 graphs=0" }), false, false},
		"a free refused, two left":         {fault{symbol: "cuMemFree_v2"}, with(func(o *outcome) { o.live = "allocations=4 graphs=0" }), false, true},
		"context lost":                     {fault{symbol: "cuGraphLaunch", result: contextLost}, with(func(o *outcome) { o.status.Status = status.Sticky }), false, false},
		"memory lost, same process":        {plain, with(func(o *outcome) { o.status.Detail = spoilt }), true, false},
		"context lost, same process":       {fault{symbol: "cuGraphLaunch", result: contextLost}, &good, true, false},
	} {
		v := e.judge(row.fault, row.outcome)
		if (v.wrong != "") != row.wrong || (v.leaked != "") != row.leaked {
			t.Errorf("%s: %s", name, v)
		}
	}
}
