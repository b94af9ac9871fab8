package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/restore/status"
	"medusa/test/testenv"
)

// workers reads the output of the zoo's workers, and which of them had restored graphs.
func workers(t *testing.T, p process) (restored []bool, outputs string) {
	t.Helper()
	var r struct {
		Output  string
		Workers []struct{ Restored bool }
	}
	if err := json.Unmarshal([]byte(p.stdout), &r); err != nil || r.Output == "" {
		t.Fatalf("zoo printed %q: %v\n%s", p.stdout, err, p.stderr)
	}
	for _, w := range r.Workers {
		restored = append(restored, w.Restored)
	}
	return restored, r.Output
}

const twoWorkers = "ZOO_WORKERS=2"

func twoRanks(t *testing.T) (path string, art *artifacts.Artifact) {
	t.Helper()
	path, _ = zooArtifact(t, []string{twoWorkers})
	art, err := artifacts.Check(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, art
}

// Two workers of one engine, whose weights and graphs differ, become one artifact; each restores its own part, at the
// recorded addresses and at others.
func TestTwoWorkers(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	path, art := twoRanks(t)
	if art.Ranks() != 2 {
		t.Fatalf("the artifact is for %d ranks", art.Ranks())
	}
	for rank := range 2 {
		part := art.Rank(rank)
		if index, _ := part.Identity.Get(artifacts.KeyRankIndex); index != fmt.Sprint(rank) || len(part.Verification.Graphs) != 2 || len(part.Stages) != 2 {
			t.Errorf("rank %d: identity %v, %d graphs verified", rank, part.Identity, len(part.Verification.Graphs))
		}
	}
	_, want := workers(t, must(t, []string{twoWorkers}, "zoo"))
	one, two, _ := strings.Cut(want, " ")
	if one == two {
		t.Fatal("the workers serve the same: they could be mistaken for each other")
	}
	for _, tt := range []struct {
		addresses, check, got string
	}{{"exact", "none", status.Exact}, {"relocate", "full", status.Relocated}} {
		file := filepath.Join(t.TempDir(), "status.json")
		p := must(t, []string{twoWorkers}, "medusa", "restore", "--status", file, "--addresses", tt.addresses, "--check", tt.check, path, "--", zoo)
		restored, got := workers(t, p)
		if got != want || !restored[0] || !restored[1] {
			t.Errorf("%s: restored %v, outputs as native: %v\n%s", tt.addresses, restored, got == want, p.stderr)
		}
		var slowest float64
		for rank, file := range []string{file + ".0", file + ".1"} {
			st, err := status.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, st.Spans["build"])
			if st.Status != status.Restored || st.Addresses != tt.got || st.Rank != rank || st.Ranks != 2 {
				t.Errorf("%s rank %d: %+v", tt.addresses, rank, st)
			}
		}
		st, err := status.Read(file)
		if err != nil || st.Status != status.Restored || st.Ranks != 2 || slowest == 0 || st.Spans["build"] != slowest {
			t.Errorf("%s: the start's status is %+v (%v), want the slowest rank's %g ms to build", tt.addresses, st, err, slowest)
		}
	}
}

// A half-restored engine must not exist: an obstacle on one rank makes all ranks start natively, for the same reason.
func TestRanksStartAlike(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	path, art := twoRanks(t)
	_, want := workers(t, must(t, []string{twoWorkers}, "zoo"))
	single, _ := materialized(t, zoo)
	swapped := filepath.Join(t.TempDir(), "swapped.medusa")
	other := *art.Peers[0]
	other.Directories = nil
	first := *art
	first.Peers = nil
	other.Peers = []*artifacts.Artifact{&first}
	if err := artifacts.Write(swapped, &other); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path string
		variables  []string
		code       string
		reason     string
	}{
		{"one damaged part", damagedRank(t, path, 1), nil, "artifact_corrupt", "rank 1 starts natively"},
		{"the other damaged part", damagedRank(t, path, 0), nil, "artifact_corrupt", "rank 0 starts natively"},
		{"a third rank", path, []string{"ZOO_WORKERS=3"}, "incompatible", "rank.count"},
		{"an artifact of one worker", single, nil, "incompatible", "rank.count"},
		{"parts of other ranks", swapped, nil, "incompatible", "rank.index"},
		{"one worker without a rank", path, []string{"ZOO_UNRANKED=last"}, "incompatible", "none of several ranks"},
		{"no rank at all", path, []string{"ZOO_UNRANKED=all"}, "incompatible", "rank.count"},
		{"one other model", path, []string{"ZOO_ODD=ZOO_MODEL=fancy"}, "incompatible", "rank 1 starts natively"},
		{"one other sequence", path, []string{"ZOO_ODD=ZOO_ALLOCATOR=caching"}, "sequence_mismatch", "rank 1 starts natively"},
		{"one failed check", path, []string{"ZOO_ODD=ZOO_DIRTY=1", "MEDUSA_CHECK=full"}, "check_failed", "rank 1 starts natively"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			variables := append([]string{twoWorkers}, tt.variables...)
			file := filepath.Join(t.TempDir(), "status.json")
			check := "none"
			if tt.code == "check_failed" {
				check = "full"
			}
			p := must(t, variables, "medusa", "restore", "--check", check, "--status", file, tt.path, "--", zoo)
			restored, got := workers(t, p)
			native := want
			if len(restored) != 2 || strings.Contains(tt.name, "no rank") || strings.Contains(tt.name, "without") {
				_, native = workers(t, must(t, variables, "zoo"))
			}
			for rank, is := range restored {
				if is {
					t.Errorf("rank %d has restored graphs", rank)
				}
			}
			if got != native || strings.Count(p.stderr, "native start") != len(restored) || !strings.Contains(p.stderr, tt.reason) {
				t.Errorf("outputs as native: %v\n%s", got == native, p.stderr)
			}
			st, err := status.Read(file)
			if err != nil || st.Status != status.Native || st.Reason != tt.code || strings.HasPrefix(st.Detail, "rank 1 starts natively") {
				t.Fatalf("status %+v %v, want native for %s, as the rank says that is the cause", st, err, tt.code)
			}
			// All ranks make a profile forward together. If an obstacle is known before, no rank may go on to triggering
			// layers.
			if early := tt.code == "incompatible" || tt.code == "artifact_corrupt"; early && len(st.Triggers) > 0 {
				t.Errorf("rank 0 went on for %d triggering layers", len(st.Triggers))
			}
		})
	}
}

// damagedRank flips a bit in a rank's graph section.
func damagedRank(t *testing.T, path string, rank int) string {
	t.Helper()
	f, err := artifacts.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := -1
	for _, s := range f.Sections() {
		if s.Kind == "graph" {
			if seen++; seen == rank {
				data[s.Offset] ^= 1
			}
		}
	}
	out := filepath.Join(t.TempDir(), fmt.Sprintf("damaged-%d.medusa", rank))
	if err := os.WriteFile(out, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return out
}

// Workers without a rank would write into one trace: materialize says so, and leaves no artifact.
func TestWorkersWithoutRanks(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo := testenv.Path(t, "build", "zoo")
	for how, want := range map[string]string{"all": "MEDUSA_RANK", "last": "a process without a rank"} {
		path := filepath.Join(t.TempDir(), "x.medusa")
		p := start(t, []string{twoWorkers, "ZOO_UNRANKED=" + how}, "medusa", "materialize", "-o", path, "--", zoo)
		if p.code != 1 || !strings.Contains(p.stderr, want) {
			t.Errorf("%s: exit %d, want an error about %s\n%s", how, p.code, want, p.stderr)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: an artifact was written", how)
		}
	}
}

// The tools show and compare every rank.
func TestToolsKnowRanks(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	path, art := twoRanks(t)
	if p := must(t, nil, "medusa", "inspect", "--rank", "1", path); !strings.Contains(p.stdout, "2, of which this is 1") {
		t.Errorf("inspect:\n%s", p.stdout)
	}
	if p := start(t, nil, "medusa", "inspect", "--rank", "2", path); p.code != 2 || !strings.Contains(p.stderr, "has 2 ranks") {
		t.Errorf("inspect of a rank that is not there: exit %d, %s", p.code, p.stderr)
	}
	if p := must(t, []string{twoWorkers}, "medusa", "verify", path, "--", zoo); strings.Count(p.stdout, "2 graphs verified") != 2 {
		t.Errorf("verify: %s", p.stdout)
	}
	if p := must(t, []string{twoWorkers}, "medusa", "identity", "--against", path, "--", zoo); strings.Count(p.stdout, "no factor differs") != 2 {
		t.Errorf("identity: %s", p.stdout)
	}
	if p := start(t, []string{"ZOO_WORKERS=3"}, "medusa", "identity", "--against", path, "--", zoo); p.code != 3 {
		t.Errorf("identity of three ranks: exit %d", p.code)
	}
	changed := filepath.Join(t.TempDir(), "changed.medusa")
	art.Peers[0].Spec.Graphs[0].Label = "other"
	if err := artifacts.Write(changed, art); err != nil {
		t.Fatal(err)
	}
	if p := start(t, nil, "medusa", "diff", path, changed); p.code != 1 || !strings.Contains(p.stdout, "rank 1") {
		t.Errorf("diff: exit %d\n%s", p.code, p.stdout)
	}
	if p := must(t, nil, "medusa", "diff", path, path); !strings.Contains(p.stdout, "do not differ") {
		t.Errorf("diff with itself: %s", p.stdout)
	}
}
