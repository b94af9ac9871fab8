// Command ranks shows that engines of several worker processes are restored with collective calls in their graphs.
//
// In: the files that make built. Out: a line for each case, and last the numbers of compared graphs, calls and tokens. Fails: with exit status 1 if
// outputs of a restored start differ from the native ones, or if a control does not end as it has to, for its own reason.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/restore/status"
)

// The graphs and collective calls that each rank of the engine captures. wantKinds is the number of calls if a graph has one of each kind.
const (
	wantGraphs      = 3
	wantCollectives = 2 * wantGraphs
	kinds           = 4
	wantKinds       = kinds * wantGraphs
)

// limit is how long a start may take: some controls wait for the communicator's deadline, and then start natively.
const limit = 90 * time.Second

// compared has the totals of all restored starts.
type compared struct {
	graphs, collectives, tokens, differences int
	truth                                    truthCounts
}

func main() {
	n := flag.Int("n", 4, "failures of a rank to try, at random stages")
	seed := flag.Uint64("seed", 1, "of them")
	only := flag.Bool("faults", false, "nothing else, with 2 ranks")
	alone := flag.Bool("alone", false, "nothing else: artifacts that are made on one GPU")
	rounds := flag.Int("cost", 0, "nothing else: the processor time of a rank, so many starts of each engine")
	flag.Parse()
	err := error(nil)
	switch {
	case *only:
		err = onlyFaults(*n, *seed)
	case *alone:
		err = onlyAlone()
	case *rounds > 0:
		err = onlyCost(*rounds)
	default:
		err = all(*n, *seed)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "test-ranks: FAIL: %v\n", err)
		os.Exit(1)
	}
}

// onlyFaults makes the starts in which a rank fails.
func onlyFaults(n int, seed uint64) error {
	dir, err := os.MkdirTemp("", "ranks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	t := test{ranks: 2, artifact: filepath.Join(dir, "2.medusa"), seen: &compared{}}
	if err := t.make(); err != nil {
		return err
	}
	if err := t.faults(n, seed); err != nil {
		return err
	}
	fmt.Printf("test-ranks: PASS device=simulated ranks=2 faults=%d seed=%d seconds=%.0f\n", n, seed, time.Since(began).Seconds())
	return nil
}

func (t *test) faults(n int, seed uint64) error {
	slowest, err := t.sweep(faults(n, t.ranks, rand.New(rand.NewPCG(seed, uint64(t.ranks)))))
	if err == nil {
		fmt.Printf("%d ranks, %d failures of a rank: all native for one reason, nothing left; the slowest took %.1f s (limit %.0f)\n", t.ranks, n, slowest.Seconds(), faultLimit.Seconds())
	}
	return err
}

func all(faults int, seed uint64) error {
	dir, err := os.MkdirTemp("", "ranks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var seen compared
	for _, n := range []int{2, 4} {
		t := test{ranks: n, artifact: filepath.Join(dir, fmt.Sprintf("%d.medusa", n)), seen: &seen}
		err := t.run()
		if err == nil {
			err = t.faults(faults, seed)
		}
		if err != nil {
			return fmt.Errorf("%d ranks: %w", n, err)
		}
		t = test{ranks: n, kinds: true, artifact: filepath.Join(dir, fmt.Sprintf("%d-kinds.medusa", n)), seen: &seen}
		if err := t.runKinds(); err != nil {
			return fmt.Errorf("%d ranks, all kinds of calls: %w", n, err)
		}
	}
	verdict, err := "PASS", seen.judge()
	if err != nil {
		verdict = "FAIL"
	}
	fmt.Printf("test-ranks: %s device=simulated ranks=2,4 graphs=%d collectives=%d nodes=%d edges=%d pointers=%d tokens=%d differences=%d\n",
		verdict, seen.graphs, seen.collectives, seen.truth.nodes, seen.truth.edges, seen.truth.pointers, seen.tokens, seen.differences)
	return err
}

// test is one number of ranks.
type test struct {
	ranks    int
	kinds    bool // a graph has a call of each kind
	artifact string
	// noAddresses: the artifact has none, so each start relocates.
	noAddresses bool

	truth  string // the device's account of a native start; the rank is its suffix
	native outcome
	seen   *compared
}

func (t *test) run() error {
	if err := t.makeAndRestore(); err != nil {
		return err
	}
	for _, c := range controls {
		if err := t.control(c); err != nil {
			return fmt.Errorf("control %s: %w", c.how, err)
		}
	}
	return nil
}

// runKinds restores graphs with a call of each kind. With two ranks each kind is left out once.
func (t *test) runKinds() error {
	if err := t.makeAndRestore(); err != nil {
		return err
	}
	for call := 0; call < kinds && t.ranks == 2; call++ {
		c := leftOut
		c.env = []string{fmt.Sprintf("RANKS_CALL=%d", call)}
		if err := t.control(c); err != nil {
			return fmt.Errorf("control %s, call %d: %w", c.how, call, err)
		}
	}
	return nil
}

// makeAndRestore restores at both kinds of addresses.
func (t *test) makeAndRestore() error {
	if err := t.make(); err != nil {
		return err
	}
	for _, addresses := range []string{"exact", "relocate"} {
		if err := t.restore(addresses); err != nil {
			return err
		}
	}
	return nil
}

// make starts the engine natively, and makes its artifact.
func (t *test) make() error {
	t.truth = t.artifact + ".native"
	t.native = t.start([]string{"RANKS_TRUTH=" + t.truth}, "build/ranks")
	if t.native.err != nil || t.native.all("captured") != t.ranks {
		return fmt.Errorf("native start: %v", t.native)
	}
	if made := t.start(nil, "build/medusa", "materialize", "-o", t.artifact, "--", "build/ranks"); made.err != nil {
		return fmt.Errorf("materialize: %v", made)
	}
	return nil
}

// restore starts the engine from the artifact, and adds to the totals.
func (t *test) restore(addresses string) error {
	graphs, collectives, err := t.count()
	if err != nil {
		return err
	}
	truth, told := t.artifact+"."+addresses, t.artifact+"."+addresses+".json"
	got := t.start([]string{"RANKS_TRUTH=" + truth}, "build/medusa", "restore", "--strict", "--addresses", addresses, "--check", "full", "--status", told, t.artifact, "--", "build/ranks")
	if got.err != nil || got.all("restored") != t.ranks {
		return fmt.Errorf("restored start (%s): %v", addresses, got)
	}
	for r := range t.ranks {
		if err := t.placed(told, r, addresses); err != nil {
			return fmt.Errorf("restored start (%s): rank %d: %w", addresses, r, err)
		}
	}
	if err := t.compareTruth(truth); err != nil {
		return fmt.Errorf("restored start (%s): %w", addresses, err)
	}
	tokens, differences := got.compare(t.native)
	t.seen.graphs, t.seen.collectives = t.seen.graphs+graphs, t.seen.collectives+collectives
	t.seen.tokens, t.seen.differences = t.seen.tokens+tokens, t.seen.differences+differences
	fmt.Printf("%d ranks, %s: all restored, %d graphs with %d collective calls, %d of %d tokens differ\n", t.ranks, addresses, graphs, collectives, differences, tokens)
	return nil
}

// placed compares the addresses that a start tells of a rank with those it was asked for. All ranks get rank 0's region. A rank that found it taken while it was
// recorded has another one in the artifact, and relocates.
func (t *test) placed(told string, rank int, asked string) error {
	want := status.Relocated
	if asked == "exact" && !t.noAddresses {
		want = status.Exact
	}
	st, err := status.Read(fmt.Sprintf("%s.%d", told, rank))
	if err == nil && st.Addresses != want && (rank == 0 || !strings.HasPrefix(st.Relocated, "base ")) {
		err = fmt.Errorf("the addresses are %s, not %s: %s", st.Addresses, want, st.Relocated)
	}
	return err
}

// compareTruth holds each rank's restored graphs against its native ones, by the device's own account.
func (t *test) compareTruth(restored string) error {
	for r := range t.ranks {
		var accounts [2]*account
		for i, name := range []string{t.truth, restored} {
			var err error
			if accounts[i], err = readAccount(fmt.Sprintf("%s.%d", name, r)); err != nil {
				return fmt.Errorf("rank %d: read the device's account: %w", r, err)
			}
		}
		counts, err := compareAccounts(accounts[0], accounts[1])
		if err != nil {
			return fmt.Errorf("rank %d: %w", r, err)
		}
		t.seen.truth.add(counts)
	}
	return nil
}

// count returns how many graphs all ranks of the artifact have, and how many collective calls.
func (t *test) count() (graphs, collectives int, err error) {
	want := wantCollectives
	if t.kinds {
		want = wantKinds
	}
	for r := range t.ranks {
		a, err := artifacts.ReadRank(t.artifact, r)
		if err != nil {
			return 0, 0, err
		}
		calls := 0
		err = a.Spec.EachGraph(func(_ int, g *graphir.Graph) error {
			for i := range g.Nodes {
				if g.Nodes[i].Type == graphir.NodeCollective {
					calls++
				}
			}
			return nil
		})
		if err != nil || len(a.Spec.Graphs) != wantGraphs || calls != want {
			return 0, 0, fmt.Errorf("rank %d: %d graphs with %d collective calls, want %d with %d (%w)", r, len(a.Spec.Graphs), calls, wantGraphs, want, err)
		}
		graphs, collectives = graphs+len(a.Spec.Graphs), collectives+calls
	}
	return graphs, collectives, nil
}

// outcome is how a start ended.
type outcome struct {
	ranks  []string // "captured" or "restored", and the tokens, of each rank that served
	stderr string
	err    error
}

func (o outcome) String() string { return fmt.Sprintf("%v, ranks %q\n%s", o.err, o.ranks, o.stderr) }

// judge returns the reason why the totals show no equal restored starts, or nil.
func (c *compared) judge() error {
	switch {
	case c.differences != 0:
		return errors.New("compare tokens: those of restored starts differ from the native ones")
	case c.tokens == 0:
		return errors.New("compare tokens: there are none")
	case c.truth.calls != c.collectives:
		return fmt.Errorf("count collectives: the artifacts have %d, the device's truth has %d", c.collectives, c.truth.calls)
	}
	return nil
}

// all counts the ranks that came by their graphs in this way.
func (o outcome) all(how string) (n int) {
	for _, line := range o.ranks {
		if strings.Fields(line)[2] == how {
			n++
		}
	}
	return n
}

// compare returns how many tokens native has, and how many of them are not o's.
func (o outcome) compare(native outcome) (tokens, differences int) {
	for r, line := range native.ranks {
		want, got := strings.Fields(line)[3:], []string(nil)
		if r < len(o.ranks) {
			got = strings.Fields(o.ranks[r])[3:]
		}
		for i := range want {
			tokens++
			if i >= len(got) || got[i] != want[i] {
				differences++
			}
		}
	}
	return tokens, differences
}

// start runs a command, with the engine of so many ranks, and sorts its output by rank.
func (t *test) start(env []string, command ...string) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(append(os.Environ(), "SIMGPU_LOG=/dev/null", fmt.Sprintf("RANKS_WORKERS=%d", t.ranks)), env...)
	if t.kinds {
		cmd.Env = append(cmd.Env, "RANKS_KINDS=1")
	}
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	o := outcome{err: cmd.Run()}
	if ctx.Err() != nil {
		o.err = fmt.Errorf("not done after %s", limit)
	}
	for line := range strings.Lines(stdout.String()) {
		if f := strings.Fields(line); len(f) > 3 && f[0] == "rank" {
			o.ranks = append(o.ranks, strings.TrimSpace(line))
		}
	}
	slices.Sort(o.ranks)
	o.stderr = stderr.String()
	return o
}
