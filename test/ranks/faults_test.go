package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Two reasons, a rank that is blamed for another's failure, and a reason after the end are noticed.
func TestOneReason(t *testing.T) {
	const line, peer, ended = "medusa: native start: check_failed: hash 1\n", "medusa: native start: check_failed: rank 1 starts natively: hash 1\n",
		"medusa: native start: engine_ended: the engine ended with exit status 9\n"
	for stderr, want := range map[string]string{
		line:                        "",
		line + "engine: x\n" + peer: "",
		ended:                       "",
		peer + ended:                "",
		"":                          "no reason",
		"engine: x\n":               "no reason",
		line + "medusa: native start: engine: hash 1\n":       "2 reasons",
		line + "medusa: native start: check_failed: hash 2\n": "2 reasons",
		ended + line: "a reason after the engine's end",
		"medusa: native start: engine: rank 0 did not reach built\n":        "rank 0 is blamed",
		"medusa: native start: engine: rank 0 starts natively: x\n" + ended: "rank 0 is blamed",
	} {
		if err := oneReason(stderr, 1); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", stderr, err, want)
		}
	}
}

func TestNothingLeft(t *testing.T) {
	tmp := t.TempDir()
	if err := nothingLeft("RANKS_CASE=none", tmp); err != nil {
		t.Error(err)
	}
	file := filepath.Join(tmp, "x")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := nothingLeft("RANKS_CASE=none", tmp); err == nil {
		t.Error("a file was not noticed")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "100")
	cmd.Env = []string{"A=1", "RANKS_CASE=left"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err := nothingLeft("RANKS_CASE=left", tmp)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err == nil {
		t.Error("a process was not noticed")
	}
}

// Each kind of failure at each stage comes before any comes again.
func TestFaultsCoverAllStages(t *testing.T) {
	all := len(faultKinds) * len(faultStages)
	seen := map[string]int{}
	for _, f := range faults(2*all, 4, rand.New(rand.NewPCG(1, 4))) {
		seen[f.kind+f.stage]++
		if f.rank > 3 || f.call >= wantCollectives {
			t.Errorf("%v", f)
		}
	}
	for kind, n := range seen {
		if n != 2 {
			t.Errorf("%s: %d times", kind, n)
		}
	}
	if len(seen) != all {
		t.Errorf("%d of %d", len(seen), all)
	}
}
