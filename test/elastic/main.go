// Command elastic tries elastic KV caches of the reference engine on the simulated GPU: one artifact serves with any part of the cache mapped.
//
// In: the programs below build/. Out: a line for each part, and last "test-elastic: PASS ...". Fails: if a token differs from that of a fixed
// KV cache, if a request is lost, if the device's log shows other mapped bytes than were asked for, or if a failed resize has an effect.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The engine's shape: every sequence takes one block, so that sequences that run at a time reach high blocks.
const (
	page    = 2 << 20
	ranges  = 2 * 3                // keys and values of the checkpoint's layers
	block   = 4096 * 2 * 16 * 4    // bytes: tokens of a block, heads, elements of a head, bytes of an element
	rows    = 32                   // pages of each range at the most
	largest = rows * ranges * page // bytes of the cache
)

// run is shared by all parts.
type run struct {
	build, work string // folders
	resizes     int
	rounds      int
	seed        uint64
	artifact    string
	recorded    uint64           // bytes of the KV cache that the artifact was recorded with
	want        map[string][]int // tokens of each prompt, from an engine with a fixed cache
}

func main() {
	var r run
	flag.StringVar(&r.build, "build", "build", "folder of the programs")
	flag.IntVar(&r.resizes, "resizes", 200, "random resizes under load")
	flag.IntVar(&r.rounds, "rounds", 100, "rounds of a trade between two engines")
	flag.Uint64Var(&r.seed, "seed", 1, "seed of sizes and requests")
	parts := flag.String("parts", "sizes,neighbours,load,trade,pressure,faults", "parts to run")
	flag.Parse()
	if err := r.all(*parts); err != nil {
		fmt.Fprintf(os.Stderr, "test-elastic: %v\n", err)
		os.Exit(1)
	}
}

func (r *run) all(parts string) (err error) {
	if r.build, err = filepath.Abs(r.build); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "medusa-elastic-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	r.artifact = filepath.Join(r.work, "elastic.medusa")
	if err := r.prepare(); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	var results []string
	for _, part := range []struct {
		name string
		run  func() (string, error)
	}{{"sizes", r.sizes}, {"neighbours", r.neighbours}, {"load", r.load}, {"trade", r.trade}, {"pressure", r.pressure}, {"faults", r.faults}} {
		if !slices.Contains(strings.Split(parts, ","), part.name) {
			continue
		}
		began := time.Now()
		result, err := part.run()
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Printf("%s: %s (%.0f s)\n", part.name, result, time.Since(began).Seconds())
		results = append(results, result)
	}
	fmt.Printf("test-elastic: PASS device=simulated %s\n", strings.Join(results, " "))
	return nil
}
