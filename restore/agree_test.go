package restore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"medusa/artifacts"
	"medusa/internal/contract"
)

func ranksOf(dir string, count uint32, wait time.Duration) []*agreement {
	out := make([]*agreement, count)
	for i := range out {
		out[i] = &agreement{dir: dir, rank: rank{uint32(i), count}, wait: wait}
	}
	return out
}

// reachAll lets the ranks reach a stage at once.
func reachAll(all []*agreement, s stage, token func(i int) string) []error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, a := range all {
		group.Go(func() { errs[i] = a.reach(s, token(i)) })
	}
	group.Wait()
	return errs
}

func same(int) string { return "x" }

func TestRanksAgree(t *testing.T) {
	all := ranksOf(t.TempDir(), 4, time.Minute)
	for _, s := range stages {
		if err := errors.Join(reachAll(all, s, same)...); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		// A rank that timed out meanwhile would decide otherwise.
		if decided, _ := all[0].decision(s); !decided {
			t.Errorf("%s: the ranks went on without a decision", s)
		}
	}
}

// A rank that has verified waits for the others. The only worker of an engine, and a rank that runs alone, do not.
func TestRanksEndTogether(t *testing.T) {
	dir := t.TempDir()
	ready := make(chan uint32, 4)
	end := func(r rank, dir string) {
		s := &Session{env: environment{Start: contract.Start{Rendezvous: dir}, rank: r}, agreement: agreement{dir: dir, rank: r, wait: time.Minute}}
		s.together()
		ready <- r.index
	}
	go end(rank{1, 2}, dir)
	select {
	case <-ready:
		t.Error("a rank ended before the other one")
	case <-time.After(100 * time.Millisecond):
	}
	end(rank{0, 2}, dir)
	end(rank{0, 1}, dir)
	end(rank{0, 2}, "")
	for range 4 {
		select {
		case <-ready:
		case <-time.After(time.Minute):
			t.Fatal("a rank did not end")
		}
	}
}

// A decision wakes a rank before it would look again, and other files do not.
func TestDecisionWakes(t *testing.T) {
	folder := t.TempDir()
	made := noticeIn(folder)
	defer made.close()
	for _, file := range []string{filepath.Join(t.TempDir(), "other"), filepath.Join(folder, "start")} {
		began := time.Now()
		time.AfterFunc(lookAgain/10, func() {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Error(err)
			}
		})
		made.wait(time.Hour)
		if woke, own := time.Since(began) < lookAgain, filepath.Dir(file) == folder; woke != own {
			t.Errorf("%s: awake after %v, want before %v: %v", filepath.Base(file), time.Since(began), lookAgain, own)
		}
	}
	began := time.Now()
	notice{}.wait(time.Millisecond)
	if time.Since(began) < time.Millisecond {
		t.Error("without a notice a rank does not wait")
	}
}

// If one rank starts natively, all do, whether they came before it or after, with its code and reason.
func TestOneRankFallsAllFall(t *testing.T) {
	all := ranksOf(t.TempDir(), 3, time.Minute)
	if err := errors.Join(reachAll(all, stageStart, same)...); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	errs := make([]error, 3)
	group.Go(func() { errs[0] = all[0].reach(stageBuilt, "x") })
	time.Sleep(10 * time.Millisecond)
	all[1].fall(&Fallback{KernelNotFound, errors.New("no axpy")})
	errs[2] = all[2].reach(stageBuilt, "x")
	group.Wait()
	for _, i := range []int{0, 2} {
		var peer *peerError
		if !errors.As(errs[i], &peer) || peer.code != KernelNotFound || peer.reason != "rank 1 starts natively: no axpy" {
			t.Errorf("rank %d: %v", i, errs[i])
		}
	}
}

// The first rank of a start may fall before any other has come.
func TestFirstRankFalls(t *testing.T) {
	all := ranksOf(t.TempDir(), 2, time.Minute)
	all[1].fall(&Fallback{KernelNotFound, errors.New("no axpy")})
	if err := all[0].reach(stageStart, "x"); err == nil || err.Error() != "rank 1 starts natively: no axpy" {
		t.Errorf("rank 0: %v", err)
	}
}

// A rank that does not come leads to one decision for all, even if it arrives just when the others time out.
func TestLateRank(t *testing.T) {
	for i := range 40 {
		all := ranksOf(t.TempDir(), 3, 5*time.Millisecond)
		var group sync.WaitGroup
		errs := make([]error, 3)
		for i := range 2 {
			group.Go(func() { errs[i] = all[i].reach(stageStart, "x") })
		}
		time.Sleep(time.Duration(3+i%6) * time.Millisecond)
		errs[2] = all[2].reach(stageStart, "x")
		group.Wait()
		if texts := fmt.Sprint(errs[0]) + fmt.Sprint(errs[1]) + fmt.Sprint(errs[2]); texts != strings.Repeat(fmt.Sprint(errs[0]), 3) {
			t.Fatalf("the ranks decided differently: %v", errs)
		}
	}
	err := ranksOf(t.TempDir(), 2, time.Millisecond)[0].reach(stageStart, "x")
	if err == nil || !strings.Contains(err.Error(), "rank 1 did not reach start") {
		t.Errorf("alone: %v", err)
	}
}

func TestRanksWithDifferentArtifacts(t *testing.T) {
	for _, err := range reachAll(ranksOf(t.TempDir(), 2, time.Minute), stageStart, func(i int) string { return string(rune('a' + i)) }) {
		if err == nil || !strings.Contains(err.Error(), "restore different artifacts") {
			t.Error(err)
		}
	}
}

// A decision belongs to one start: workers that are started again do not take it for theirs.
func TestRankThatWasHereBefore(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(reachAll(ranksOf(dir, 2, time.Minute), stageStart, same)...); err != nil {
		t.Fatal(err)
	}
	for _, err := range reachAll(ranksOf(dir, 2, time.Minute), stageStart, same) {
		if err == nil || !strings.Contains(err.Error(), "started before") {
			t.Error(err)
		}
	}
}

// If the ranks cannot write, no rank goes on.
func TestNowhereToMeet(t *testing.T) {
	for _, err := range reachAll(ranksOf(t.TempDir()+"/absent", 2, time.Minute), stageStart, same) {
		if err == nil {
			t.Error("agreed without a place to meet")
		}
	}
}

// sizeOf reads a rank's size out of the variable's value.
func sizeOf(r rank, list string) (uint64, error) {
	start, err := contract.ReadStart(func(name string) string {
		return map[string]string{contract.EnvRun: "record", contract.EnvKVBytes: list}[name]
	})
	if err != nil {
		return 0, err
	}
	return r.size(contract.EnvKVBytes, start.KVBytes)
}

func TestRankEnvironment(t *testing.T) {
	two := rank{1, 2}
	for list, want := range map[string]uint64{"": 0, "5": 5, "5,6": 6} {
		if got, err := sizeOf(two, list); err != nil || got != want {
			t.Errorf("%q: %d %v, want %d", list, got, err, want)
		}
	}
	for _, list := range []string{"5,6,7", "5,x", ","} {
		if _, err := sizeOf(two, list); err == nil {
			t.Errorf("%q is accepted", list)
		}
	}
	if a, b, c := two.file("x"), two.file(""), (rank{0, 1}).file("x"); a != "x.1" || b != "" || c != "x" {
		t.Errorf("files %q %q %q", a, b, c)
	}
	id := two.factors()
	if m := artifacts.Compare(id, rank{0, 1}.factors(), nil); m == nil || len(m.Differences) != 2 {
		t.Errorf("a single worker passes for rank 1 of 2: %v", m)
	}
	if m := artifacts.Compare(id, rank{1, 3}.factors(), nil); m == nil || m.Differences[0].Level != artifacts.Fatal {
		t.Errorf("rank 1 of 3 passes for rank 1 of 2: %v", m)
	}
}
