package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"medusa/artifacts"
)

// A rank fails at a stage of its restored start. In any case the engine has to start natively on all ranks, say why once, and leave no process or file
// behind.

// faultStages are the places in the engine, in its order; "" is while it makes a collective call.
var faultStages = []string{"-early", "-identified", "-structure", "-connected", "-cache", "-weights", "-warmup", "-graphs", "", "-connect", "-built", "-late"}

var faultKinds = []string{"error", "death", "silence"}

// How long ranks wait for each other in these starts: where they agree, and in a call of the communicator.
const (
	rankSeconds = 6
	callSeconds = 4
)

// faultLimit bounds such a start: waiting where ranks agree, then in the communicator, and then a native start on a loaded machine.
const faultLimit = (rankSeconds + 2*callSeconds + 20) * time.Second

// fault is one case.
type fault struct {
	kind, stage string
	rank, call  int
}

func (f fault) String() string {
	stage := strings.TrimPrefix(f.stage, "-")
	if f.stage == "" {
		stage = fmt.Sprintf("call %d", f.call)
	}
	return fmt.Sprintf("rank %d, %s at %s", f.rank, f.kind, stage)
}

// faults draws n cases: each kind at each stage comes before any comes again, on a random rank.
func faults(n, ranks int, rng *rand.Rand) []fault {
	var out []fault
	for len(out) < n {
		for _, i := range rng.Perm(len(faultKinds) * len(faultStages)) {
			out = append(out, fault{faultKinds[i%len(faultKinds)], faultStages[i/len(faultKinds)], rng.IntN(ranks), rng.IntN(wantCollectives)})
		}
	}
	return out[:n]
}

// sweep makes the cases, and returns how long the slowest took.
func (t *test) sweep(cases []fault) (slowest time.Duration, err error) {
	for i, f := range cases {
		began := time.Now()
		if err := t.fail(f, fmt.Sprint(i)); err != nil {
			return 0, fmt.Errorf("case %d (%v): %w", i, f, err)
		}
		slowest = max(slowest, time.Since(began))
	}
	return slowest, nil
}

// fail makes one start, in a temporary folder of its own.
func (t *test) fail(f fault, name string) error {
	tmp := t.artifact + ".tmp"
	own := t.artifact + ".fault"
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	a, err := artifacts.Read(t.artifact)
	if err == nil {
		err = artifacts.Write(own, a)
	}
	if err != nil {
		return err
	}
	mark := "RANKS_CASE=" + filepath.Base(filepath.Dir(t.artifact)) + "-" + name
	began := time.Now()
	got := t.start([]string{mark, "TMPDIR=" + tmp, "RANKS_BREAK=" + f.kind + f.stage, fmt.Sprintf("RANKS_RANK=%d", f.rank), fmt.Sprintf("RANKS_CALL=%d", f.call),
		fmt.Sprintf("MEDUSA_RANK_SECONDS=%d", rankSeconds), fmt.Sprintf("NCCL_STANDIN_SECONDS=%d", callSeconds)},
		"build/medusa", "restore", "--check=full", own, "--", "build/ranks")
	took := time.Since(began)
	tokens, differences := got.compare(t.native)
	if got.err != nil || got.all("captured") != t.ranks || differences != 0 {
		return fmt.Errorf("want a native start of all ranks, %d of %d tokens differ: %v", differences, tokens, got)
	}
	if err := oneReason(got.stderr, f.rank); err != nil {
		return fmt.Errorf("%w: %v", err, got)
	}
	if took > faultLimit {
		return fmt.Errorf("took %s, more than %s", took, faultLimit)
	}
	return nothingLeft(mark, tmp)
}

var nativeLine = regexp.MustCompile(`(?m)^medusa: native start: (.*)$`)

// oneReason demands that all ranks give the same reason: the rank at fault its own, and the others that of this rank. If the engine ended, the last line
// says that as well, after the reasons that ranks gave.
func oneReason(stderr string, rank int) error {
	reasons := map[string]bool{}
	lines := nativeLine.FindAllStringSubmatch(stderr, -1)
	if len(lines) == 0 {
		return errors.New("no reason")
	}
	for i, line := range lines {
		code, text, _ := strings.Cut(line[1], ": ")
		if code == "engine_ended" || strings.HasPrefix(line[1], "restored graphs left a sticky device error") {
			if i != len(lines)-1 {
				return errors.New("a reason after the engine's end")
			}
			continue
		}
		text = strings.TrimPrefix(text, fmt.Sprintf("rank %d starts natively: ", rank))
		if other := regexp.MustCompile(`^rank (\d+) (starts natively|did not reach)`).FindStringSubmatch(text); other != nil && other[1] != fmt.Sprint(rank) {
			return fmt.Errorf("rank %s is blamed", other[1])
		}
		reasons[code+": "+text] = true
	}
	if len(reasons) > 1 {
		return fmt.Errorf("%d reasons", len(reasons))
	}
	return nil
}

// nothingLeft looks for processes of a case, and for files in its temporary folder.
func nothingLeft(mark, tmp string) error {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	for _, path := range environments {
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00")) {
			return fmt.Errorf("a process is left: %s", filepath.Dir(path))
		}
	}
	files, err := os.ReadDir(tmp)
	if err == nil && len(files) > 0 {
		err = fmt.Errorf("a file is left: %s", files[0].Name())
	}
	return err
}
