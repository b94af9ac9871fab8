package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// onlyCost restores engines of one and of many ranks in turns.
func onlyCost(rounds int) error {
	dir, err := os.MkdirTemp("", "ranks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	engines := []test{{ranks: 1}, {ranks: manyRanks}}
	shape := []string{fmt.Sprintf("RANKS_LAYERS=%d", costLayers), "RANKS_LARGE=1", "RANKS_COST=1"}
	for i := range engines {
		t := &engines[i]
		t.artifact = filepath.Join(dir, fmt.Sprintf("%d.medusa", t.ranks))
		if made := t.start(shape, "build/medusa", "materialize", "-o", t.artifact, "--", "build/ranks"); made.err != nil {
			return fmt.Errorf("materialize %d ranks: %v", t.ranks, made)
		}
	}
	costs := make([][]int, len(engines))
	for range rounds {
		for i, t := range engines {
			got := t.start(shape, "build/medusa", "restore", "--strict", t.artifact, "--", "build/ranks")
			if got.err != nil || got.all("restored") != t.ranks {
				return fmt.Errorf("restore %d ranks: %v", t.ranks, got)
			}
			costs[i] = append(costs[i], got.costs()...)
		}
	}
	one, many := median(costs[0]), median(costs[1])
	verdict, err := "PASS", judgeCost(one, many)
	if err != nil {
		verdict = "FAIL"
	}
	fmt.Printf("test-ranks: %s device=simulated ranks=1,%d layers=%d graphs=%d rounds=%d microseconds=%d,%d ratio=%.2f\n",
		verdict, manyRanks, costLayers, costGraphs, rounds, one, many, float64(many)/float64(one))
	return err
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
		return fmt.Errorf("compare processor times: a rank of %d takes %d us, one alone %d us, more than %.2f times as much", manyRanks, many, one, costLimit)
	}
	return nil
}
