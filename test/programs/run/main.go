// Command run makes random programs, materializes and restores them, and compares everything that they leave.
//
// In: how many programs have to be restored, and the first seed. Out: a table with the number of programs that had each feature, the
// seed of each that differed, and last `programs: N differences: D`. Programs that are refused, as some must be, do not
// count. Exit code 1 if one differed or something that is restorable occurred in less than 2 % of the programs.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"

	"medusa/test/programs"
)

func main() {
	n := flag.Int("n", 100, "programs to restore")
	seed := flag.Uint64("seed", 1, "first seed")
	batch := flag.Int("batch", 10, "programs in one process")
	build := flag.String("build", "build", "folder with what make built")
	device := flag.String("device", "simulated", "simulated or cuda")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, *n, *seed, *batch, *build, *device)
	if err != nil {
		fmt.Fprintf(os.Stderr, "programs: %v\n", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, n int, seed uint64, batch int, build, device string) (bool, error) {
	build, err := filepath.Abs(build)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "programs-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	if device == "simulated" {
		err = os.Setenv("LD_LIBRARY_PATH", filepath.Join(build, "simulated"))
	} else if device != "cuda" {
		err = fmt.Errorf("unknown device %q: simulated or cuda", device)
	}
	if err != nil {
		return false, err
	}
	total := programs.NewOutcome()
	for total.Restored+len(total.Different) < n {
		var seeds []uint64
		for range min(batch, n-total.Restored-len(total.Different)) {
			seeds = append(seeds, seed)
			seed++
		}
		r := &programs.Runner{Build: build, Dir: dir, Variables: programs.Drivers(seeds[0] / uint64(batch))}
		out, err := r.Batch(ctx, seeds)
		if err != nil {
			return false, err
		}
		total.Add(out)
		for _, s := range slices.Sorted(maps.Keys(out.Different)) {
			fmt.Printf("seed %s: %v\n", strconv.FormatUint(s, 10), out.Different[s])
		}
	}
	rare := report(total, device)
	fmt.Printf("programs: %d differences: %d\n", total.Restored+len(total.Different), len(total.Different))
	return len(total.Different) == 0 && (rare == 0 || total.Restored < 300), nil
}

// report prints the coverage table and returns how many features are rare.
func report(o *programs.Outcome, device string) int {
	rare := 0
	fmt.Printf("%-50s %8s %7s\n", "in the restored programs", "programs", "share")
	for _, f := range programs.Features() {
		share := 100 * float64(o.Features[f]) / float64(max(o.Restored, 1))
		note := ""
		if share < 2 {
			note = "  less than 2 %"
			rare++
		}
		fmt.Printf("%-50s %8d %6.1f%%%s\n", f, o.Features[f], share, note)
	}
	fmt.Printf("device: %s; %d nodes in all; %d programs refused as they must be\n", device, o.Nodes, o.Refused)
	return rare
}
