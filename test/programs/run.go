package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"medusa/interpose"
	"medusa/materialize"
	"medusa/materialize/compile"
)

// Runner materializes, restores and verifies programs.
type Runner struct {
	Build     string   // folder with the built engine, medusa and interposer
	Dir       string   // for artifacts
	Variables []string // of the engine's environment
}

// Drivers returns the choices that a driver has, by a seed: in which order it lists a graph's nodes and edges, how a node
// names its kernel, and whether contexts, code and graphs take device memory.
func Drivers(seed uint64) []string {
	order := [...]string{"created", "reversed", "shuffled"}[seed%3]
	kernels := [...]string{"launched", "function", "both"}[seed/3%3]
	overhead := [...]string{"off", "charged"}[seed/9%2]
	return []string{"SIMGPU_GRAPH_ORDER=" + order, "SIMGPU_NODE_KERNELS=" + kernels, "SIMGPU_OVERHEAD=" + overhead}
}

// Outcome is the fate of programs.
type Outcome struct {
	Restored  int // without a difference
	Refused   int // as they should be
	Different map[uint64]error
	Features  map[string]int // of the restored ones, by how many have them
	Nodes     int
}

// Add joins two outcomes.
func (o *Outcome) Add(other *Outcome) {
	o.Restored += other.Restored
	o.Refused += other.Refused
	o.Nodes += other.Nodes
	for seed, err := range other.Different {
		o.Different[seed] = err
	}
	for f, n := range other.Features {
		o.Features[f] += n
	}
}

// NewOutcome is one of no programs.
func NewOutcome() *Outcome {
	return &Outcome{Different: map[uint64]error{}, Features: map[string]int{}}
}

// Batch runs programs in one engine. If one is refused, the others run again without it; if anything else goes
// wrong, halves of the batch tell which program it was.
func (r *Runner) Batch(ctx context.Context, seeds []uint64) (*Outcome, error) {
	out := NewOutcome()
	for len(seeds) > 0 {
		err := r.once(ctx, seeds, out)
		if err == nil {
			return out, nil
		}
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		seed, refused := refusal(err)
		if !refused {
			return out, r.blame(ctx, seeds, err, out)
		}
		out.judge(seed, err)
		rest := make([]uint64, 0, len(seeds))
		for _, s := range seeds {
			if s != seed {
				rest = append(rest, s)
			}
		}
		if len(rest) == len(seeds) {
			return out, fmt.Errorf("refused program %d is not in the batch: %w", seed, err)
		}
		seeds = rest
	}
	return out, nil
}

// judge holds a refusal against the plan.
func (o *Outcome) judge(seed uint64, err error) {
	want := New(seed).Refused
	if want == "" || !strings.Contains(err.Error(), want) {
		o.Different[seed] = fmt.Errorf("refused (expected: %q): %w", want, err)
		return
	}
	o.Refused++
}

func (r *Runner) blame(ctx context.Context, seeds []uint64, err error, out *Outcome) error {
	if len(seeds) == 1 {
		out.Different[seeds[0]] = err
		return nil
	}
	found := len(out.Different)
	for _, half := range [][]uint64{seeds[:len(seeds)/2], seeds[len(seeds)/2:]} {
		part, failed := r.Batch(ctx, half)
		out.Add(part)
		if failed != nil {
			return failed
		}
	}
	if len(out.Different) == found { // no program fails alone: the whole batch did
		out.Different[seeds[0]] = fmt.Errorf("together with the %d programs after it: %w", len(seeds)-1, err)
	}
	return nil
}

// once materializes, verifies and serves a batch, and counts its programs if that succeeds.
func (r *Runner) once(ctx context.Context, seeds []uint64, out *Outcome) error {
	names := make([]string, len(seeds))
	for i, s := range seeds {
		names[i] = strconv.FormatUint(s, 10)
	}
	path := filepath.Join(r.Dir, "programs-"+names[0]+".medusa")
	a, err := materialize.Run(ctx, materialize.Options{
		Output: path, Argv: r.engine(names), Library: filepath.Join(r.Build, "lib", interpose.LibraryName), Now: time.Unix(0, 0),
		Step: func(int, int, string) {}, Note: func(string) {},
	})
	if err != nil {
		return err
	}
	defer os.Remove(path)
	if err := r.serve(ctx, path, names); err != nil {
		return err
	}
	for _, seed := range seeds {
		plan := New(seed)
		if plan.Refused != "" {
			out.Different[seed] = errors.New("restored, though it must be refused: " + plan.Refused)
			continue
		}
		out.Restored++
		for f := range plan.Features {
			out.Features[f]++
		}
	}
	for i := range a.Spec.Graphs {
		out.Nodes += a.Spec.Nodes(i)
	}
	return nil
}

func (r *Runner) engine(seeds []string) []string {
	argv := append([]string{"env"}, r.Variables...)
	return append(argv, filepath.Join(r.Build, "programs-engine"), "-seeds", strings.Join(seeds, ","))
}

// serve compares a native start with a restored one as users start it: verification restores at other addresses than were
// recorded, and such a start at the same ones, if that is possible.
func (r *Runner) serve(ctx context.Context, artifact string, seeds []string) error {
	argv := r.engine(seeds)
	native, err := output(ctx, argv)
	if err != nil {
		return err
	}
	restored, err := output(ctx, append([]string{filepath.Join(r.Build, "medusa"), "restore", "--strict", artifact, "--"}, argv...))
	if err != nil {
		return err
	}
	if native != restored {
		return fmt.Errorf("serve: a restored start left\n%s, a native one\n%s", restored, native)
	}
	return nil
}

func output(ctx context.Context, argv []string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s: %w\n%s", filepath.Base(argv[0]), err, errs.String())
	}
	return out.String(), nil
}

var label = regexp.MustCompile(`"p(\d+)\.g\d+`)

// refusal finds the program that a graph was refused of.
func refusal(err error) (seed uint64, ok bool) {
	var refused *compile.RefusedError
	if !errors.As(err, &refused) {
		return 0, false
	}
	m := label.FindStringSubmatch(err.Error())
	if m == nil {
		return 0, false
	}
	seed, failed := strconv.ParseUint(m[1], 10, 64)
	return seed, failed == nil
}
