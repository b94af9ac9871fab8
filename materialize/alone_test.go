package materialize

import (
	"errors"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/kvprofile"
	"medusa/restore/digest"
)

func TestPeersOfRuns(t *testing.T) {
	e := engine{}
	if got := e.peers(runRecordB); got != "" {
		t.Errorf("ranks that run together are told %q", got)
	}
	e.alone = 2
	for run, want := range map[string]contract.Peers{runProfile: "absent", runRecordA: "absent", runRecordB: "other", runCheckNative: "absent", runCheckRestored: "absent"} {
		if got := e.peers(run); got != want {
			t.Errorf("%s: %q, want %q", run, got, want)
		}
	}
}

// Each rank's profile becomes that of a rank with a communicator, and all get the smallest cache.
func TestLeaveRoom(t *testing.T) {
	profile := func(kv uint64) cache {
		return cache{Profile: kvprofile.Profile{KVBytes: kv, TotalMemory: 100, FreeBefore: 90, FreeAfter: 80}, profiled: kv}
	}
	caches := []cache{profile(50), profile(40), profile(60)}
	if err := leaveRoom(caches, 7); err != nil {
		t.Fatal(err)
	}
	if k := caches[0]; k.KVBytes != 43 || k.profiled != 43 || k.FreeAfter != 73 {
		t.Errorf("%+v", k)
	}
	if need := uint64(43 + 17); caches[0].Check(100, need) != nil || caches[0].Check(100, need-1) == nil {
		t.Error("a start does not need the communicator's memory")
	}
	alike(caches)
	for rank, k := range caches {
		if k.KVBytes != 33 {
			t.Errorf("rank %d: %d bytes, want the smallest, 33", rank, k.KVBytes)
		}
	}
	if err := leaveRoom([]cache{profile(50), profile(7)}, 7); err == nil || !strings.Contains(err.Error(), "rank 1: size KV cache: the communicator takes 7 bytes") {
		t.Errorf("no room: %v", err)
	}
}

// Only graphs with calls lose the hash of their results.
func TestForgetResults(t *testing.T) {
	part := &artifacts.Artifact{Spec: withCalls(2, 0)}
	part.Verification.Graphs = []artifacts.GraphCheck{{Label: "0", Canary: "a"}, {Label: "1", Canary: "b"}}
	forgetResults(part)
	if v := part.Verification; !v.Alone || v.Graphs[0].Canary != "" || v.Graphs[1].Canary != "b" {
		t.Errorf("%+v", v)
	}
}

// withCalls has a graph for each number of calls.
func withCalls(calls ...int) *graphir.Spec {
	spec := &graphir.Spec{}
	for i, n := range calls {
		g := graphir.Graph{Label: string(rune('0' + i))}
		for k := range n {
			g.Nodes = append(g.Nodes, graphir.Node{Type: graphir.NodeCollective, Params: graphir.NewCollective(graphir.Collective{Number: uint32(n - 1 - k), Operation: 1, Count: uint64(k)})})
		}
		spec.Graphs = append(spec.Graphs, g)
	}
	return spec
}

func TestCompareCalls(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second *graphir.Spec
		want          string
	}{
		{"equal", withCalls(2, 1), withCalls(2, 1), ""},
		{"one less", withCalls(2, 1), withCalls(2, 0), `graph "1": rank 0 has call 0 of operation 1, type 0, reduction 0, root 0, 0 elements, 0 bytes sent, 0 received, rank 1 has no more calls`},
		{"one more", withCalls(2, 0), withCalls(2, 1), `graph "1": rank 0 has no more calls, rank 1 has call 0`},
		{"in another graph", withCalls(2, 1), withCalls(1, 2), `graph "0": rank 0 has call 0 of operation 1`},
		{"none", withCalls(0), withCalls(0), ""},
	} {
		err := compareCalls([]*graphir.Spec{tt.first, tt.second})
		var differ *CallsError
		if (err == nil) != (tt.want == "") || err != nil && (!errors.As(err, &differ) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// On a simulated device results need not be compared, but with unstable contents a rank that is alone must have none that vary.
func TestResultsThatVaryAlone(t *testing.T) {
	d := goodOutput()
	d.Computes, d.Device = false, simulated
	r := &d.Graphs[0].Ranges[0]
	r.Class, r.Second = digest.Input, hashes("a", "x", "c", "d")
	for strict, want := range map[bool]bool{true: true, false: false} {
		if _, err := judge(d, strict); (err != nil) != want {
			t.Errorf("strict %v: %v", strict, err)
		}
	}
	spec := &graphir.Spec{Contents: []graphir.Content{{}, {Unstable: []graphir.Range{{Size: 1}}}}}
	if !unstable(spec) || unstable(&graphir.Spec{Contents: spec.Contents[:1]}) {
		t.Error("unstable contents are not told from others")
	}
}
