package restore

import (
	"slices"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/cuda"
	"medusa/restore/live"
)

func TestStandIn(t *testing.T) {
	of := func(send, sent, recv, received uint64) *contract.Collective {
		return &contract.Collective{Send: send, SendBytes: sent, Recv: recv, RecvBytes: received}
	}
	second := rank{1, 4}
	for _, tt := range []struct {
		name string
		call *contract.Collective
		want []piece
	}{
		{"reduce", of(1000, 8, 2000, 8), []piece{{2000, 1000, 8, true}}},
		{"reduce in place", of(1000, 8, 1000, 8), []piece{{1000, 1000, 8, true}}},
		{"gather", of(1000, 8, 2000, 32), []piece{{2000, 1000, 8, true}, {2008, 1000, 8, false}, {2016, 1000, 8, true}, {2024, 1000, 8, true}}},
		{"gather in place, in a group with another order", of(2016, 8, 2000, 32), []piece{{2000, 2016, 8, true}, {2008, 2016, 8, true}, {2016, 2016, 8, false}, {2024, 2016, 8, true}}},
		{"gather in a group of two", of(1000, 8, 2000, 16), []piece{{2000, 1000, 8, true}, {2008, 1000, 8, false}}},
		{"scatter", of(1000, 32, 2000, 8), []piece{{2000, 1008, 8, true}}},
		{"scatter in place", of(1000, 32, 1024, 8), []piece{{1024, 1024, 8, true}}},
		{"nothing", of(1000, 0, 2000, 0), nil},
		{"no part", of(1000, 32, 2000, 12), nil},
		{"no buffer", of(0, 8, 2000, 8), nil},
	} {
		got, err := standIn(tt.call, second)
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.want != nil) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

// Only a run of medusa materialize does without its peers.
func TestPeersOfARun(t *testing.T) {
	for _, tt := range []struct {
		run   contract.Run
		peers contract.Peers
		rank  rank
		alone bool
		err   string
	}{
		{contract.RunRestore, "", rank{0, 2}, false, ""},
		{contract.RunRestore, contract.PeersAbsent, rank{0, 2}, false, "a start that serves has all its ranks"},
		{contract.RunRestore, contract.PeersOther, rank{0, 2}, false, "a start that serves has all its ranks"},
		{contract.RunCheckRestored, contract.PeersAbsent, rank{0, 2}, true, ""},
		{contract.RunCheckRestored, "", rank{0, 2}, false, ""},
		{contract.RunRecord, contract.PeersOther, rank{1, 2}, true, ""},
		{contract.RunRecord, contract.PeersOther, rank{0, 1}, true, "not one of several ranks"},
	} {
		e := environment{Start: contract.Start{Run: tt.run, Peers: tt.peers}, rank: tt.rank}
		err := e.checkPeers()
		if e.alone() != tt.alone || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s, %q: alone %v, %v; want %v, %q", tt.run, tt.peers, e.alone(), err, tt.alone, tt.err)
		}
	}
	s := &Session{env: environment{Start: contract.Start{Run: contract.RunRestore}, rank: rank{0, 2}}}
	if err := s.StandIn(&contract.Collective{}, cuda.Stream(0)); err == nil || !strings.Contains(err.Error(), "the other ranks are running") {
		t.Errorf("a call that the ranks can make: %v", err)
	}
	s.env.Rendezvous, s.agreement = t.TempDir(), agreement{dir: t.TempDir(), rank: rank{0, 2}, wait: 1}
	s.source.take("", &artifacts.Artifact{Spec: &graphir.Spec{}})
	s.journal.timings = timings{}
	if err := s.agree(stageStart); err == nil {
		t.Error("a rank that serves goes on without the others")
	}
}

func TestPeersReach(t *testing.T) {
	var p peers
	if p.reach(0, 1<<40) {
		t.Error("no call was made, but memory is of peers")
	}
	mapped := func() ([]live.Alloc, error) {
		return []live.Alloc{{Addr: 90, Size: 50, Live: 1}, {Addr: 200, Size: 50}}, nil
	}
	for _, c := range []contract.Collective{{Recv: 100, RecvBytes: 10}, {Recv: 100, RecvBytes: 4}, {Recv: 200, RecvBytes: 10}, {Recv: 300, RecvBytes: 10}} {
		if err := p.add(&c, mapped); err != nil {
			t.Error(err)
		}
	}
	if p.reach(150, 1000) {
		t.Error("memory that is in no map counts")
	}
	for addr, want := range map[uint64]bool{90: false, 91: true, 109: true, 110: false} {
		if p.reach(addr, 10) != want {
			t.Errorf("10 bytes at %d: %v", addr, !want)
		}
	}
}
