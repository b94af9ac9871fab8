package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

// The processor time of a rank of many, beside that of one alone.
const (
	manyRanks = 8
	costLimit = 1.15
	// A model of 28 layers with graphs for 35 batch sizes.
	costLayers = 28
	costGraphs = 35
)

var costLine = regexp.MustCompile(`(?m)^cost of rank \d+: (\d+) us$`)

// onlyCost restores in turns an engine of many ranks, as many engines of one rank at the same time, and one of these alone. Processes that run at the same time
// share caches and processors, which makes each of them slower, whether or not they are ranks of one engine. So the first two are judged.
// Kernels have no effect in these starts: on a GPU they would take no time of the processor.
func onlyCost(rounds int) error {
	dir, err := os.MkdirTemp("", "ranks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	one, many := &test{ranks: 1}, &test{ranks: manyRanks}
	for _, t := range []*test{one, many} {
		t.artifact = filepath.Join(dir, fmt.Sprintf("%d.medusa", t.ranks))
		if made := t.start(costShape, "build/medusa", "materialize", "-o", t.artifact, "--", "build/ranks"); made.err != nil {
			return fmt.Errorf("materialize %d ranks: %v", t.ranks, made)
		}
	}
	var alone, besides, together []int
	for range rounds {
		for _, of := range []struct {
			t       *test
			engines int
			costs   *[]int
		}{{one, 1, &alone}, {one, manyRanks, &besides}, {many, 1, &together}} {
			found, err := of.t.restoredCosts(of.engines)
			if err != nil {
				return err
			}
			*of.costs = append(*of.costs, found...)
		}
	}
	verdict, err := "PASS", judgeCost(median(besides), median(together))
	if err != nil {
		verdict = "FAIL"
	}
	ratio := func(to []int) float64 { return float64(median(together)) / float64(median(to)) }
	fmt.Printf("test-ranks: %s device=simulated ranks=%d layers=%d graphs=%d rounds=%d microseconds=%d engines_of_one=%d ratio=%.2f alone=%d ratio_alone=%.2f\n",
		verdict, manyRanks, costLayers, costGraphs, rounds, median(together), median(besides), ratio(besides), median(alone), ratio(alone))
	return err
}

// costShape is the environment of an engine.
var costShape = []string{fmt.Sprintf("RANKS_LAYERS=%d", costLayers), "RANKS_LARGE=1", "RANKS_COST=1"}

// restoredCosts restores some engines at the same time.
func (t *test) restoredCosts(engines int) (costs []int, err error) {
	got := make([]outcome, engines)
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() {
			got[i] = t.start(slices.Concat(costShape, []string{"SIMGPU_COMPUTE=off"}), "build/medusa", "restore", "--strict", t.artifact, "--", "build/ranks")
		})
	}
	group.Wait()
	for _, o := range got {
		if o.err != nil || o.all("restored") != t.ranks {
			return nil, fmt.Errorf("restore %d ranks: %v", t.ranks, o)
		}
		costs = append(costs, o.costs()...)
	}
	return costs, nil
}

// costs are the processor times, in microseconds, that the ranks of a start have printed.
func (o outcome) costs() (found []int) {
	for _, m := range costLine.FindAllStringSubmatch(o.stderr, -1) {
		n, _ := strconv.Atoi(m[1]) // digits
		found = append(found, n)
	}
	return found
}

func median(n []int) int {
	if len(n) == 0 {
		return 0
	}
	slices.Sort(n)
	return n[len(n)/2]
}

// judgeCost returns the reason why the medians, in microseconds, are not as they have to be, or nil.
func judgeCost(one, many int) error {
	switch {
	case one == 0 || many == 0:
		return errors.New("compare processor times: a start printed none")
	case float64(many) > costLimit*float64(one):
		return fmt.Errorf("compare processor times: a rank of %d takes %d us, the only one of an engine %d us, more than %.2f times as much", manyRanks, many, one, costLimit)
	}
	return nil
}
