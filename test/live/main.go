// Command live runs `medusa serve` as users do, on the simulated GPU, and tests its promises.
//
// In: the programs below build/. Out: a line for each part, and last "test-serve: PASS ...". Fails: if an answer differs from that of
// the engine alone, if a log of decisions does not replay, if a request gets neither its answer nor a clear error, or if a process is
// left.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"medusa/test/checkpoints"
)

// run is shared by all parts.
type run struct {
	build    string // folder
	work     string // folder for files of this run
	requests int    // for each policy
	kills    int    // of engines
	deaths   int    // of the server
	clients  int    // that vanish
	seed     uint64
	seeds    int     // of arrivals, in part times
	seconds  float64 // of arrivals, in part times
	minutes  float64 // of part soak
	out      string  // folder for the page of part claims
}

// patience is enough for one request or one end on a loaded machine.
const patience = 5 * time.Minute

func main() {
	var r run
	parts := flag.String("parts", "tokens,times,fairness,faults", "parts to run: tokens, openai (needs its environment), times, fairness, faults, broken (those faults that need no model), overhead, soak, claims, bad-day")
	flag.StringVar(&r.build, "build", "build", "folder of the programs")
	flag.IntVar(&r.requests, "requests", 60, "requests for each policy")
	flag.IntVar(&r.kills, "kills", 10, "engines to kill")
	flag.IntVar(&r.deaths, "deaths", 5, "servers to kill")
	flag.IntVar(&r.clients, "clients", 40, "clients that vanish")
	flag.IntVar(&r.seeds, "seeds", 1, "seeds of arrivals that are compared with the simulator")
	flag.Float64Var(&r.seconds, "seconds", 10, "seconds of arrivals that are compared with the simulator")
	flag.Float64Var(&r.minutes, "minutes", 2, "minutes of part soak")
	flag.StringVar(&r.out, "out", "build/claims", "folder for the page of part claims")
	flag.Uint64Var(&r.seed, "seed", 1, "seed of prompts and moments")
	flag.Parse()
	if err := r.all(strings.Split(*parts, ",")); err != nil {
		fmt.Fprintf(os.Stderr, "test-serve: %v\n", err)
		os.Exit(1)
	}
}

func (r *run) all(parts []string) (err error) {
	if r.build, err = filepath.Abs(r.build); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "medusa-live-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	for _, name := range []string{"tmp", "processes"} {
		if err := os.Mkdir(filepath.Join(r.work, name), 0o700); err != nil {
			return err
		}
	}
	if err := checkpoints.Make(r.build, r.work); err != nil {
		return err
	}
	if err := r.materialize(); err != nil {
		return err
	}
	var all []string
	for _, name := range parts {
		part, ok := map[string]func() (string, error){"tokens": r.tokens, "openai": r.openai, "times": r.times, "fairness": r.fairness, "faults": r.faults, "broken": r.broken, "soak": r.soak, "claims": r.claims, "overhead": r.overhead, "bad-day": r.badDay}[name]
		if !ok {
			return fmt.Errorf("no part %q", name)
		}
		began := time.Now()
		result, err := part()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("%s: %s (%.0f s)\n", name, result, time.Since(began).Seconds())
		all = append(all, result)
	}
	fmt.Printf("test-serve: PASS device=simulated %s\n", strings.Join(all, " "))
	return nil
}
