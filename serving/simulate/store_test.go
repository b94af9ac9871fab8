package simulate

import (
	"fmt"
	"testing"
)

// TestRemoteArtifacts: the first start on a node fetches the artifact, and later ones find it there. A pre-baked artifact is
// there from the start. A store without room for both keeps the most recently used one.
func TestRemoteArtifacts(t *testing.T) {
	for _, c := range []struct {
		name     string
		limit    float64
		prebaked [][]string
		want     string // first tokens of a, b, a, b, each on an empty GPU 20 s apart
	}{
		{"no limit", 0, nil, "[3.52 2.51 2.52 1.51]"},
		{"room for one", 0.6, nil, "[3.52 2.51 3.52 2.51]"},
		{"a pre-baked", 0.6, [][]string{{"a"}}, "[2.52 2.51 2.52 2.51]"},
	} {
		sc := oneGPU("a", "fcfs", restoredStart)
		sc.Functions = append(sc.Functions, Function{Name: "b"})
		sc.Cluster.Artifacts, sc.Cluster.NetworkGBps = "remote", 0.5
		sc.Cluster.ArtifactGB, sc.Cluster.Prebaked = c.limit, c.prebaked
		m := play(t, build(t, sc), []request{
			{prompt: 0, output: 1}, {arrival: 20, fn: 1, output: 1}, {arrival: 40, output: 1}, {arrival: 60, fn: 1, output: 1},
		})
		var got []string
		for _, r := range m.requests {
			got = append(got, fmt.Sprintf("%.2f", r.first-r.arrival))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// TestLinkIsShared: the transfers of one node queue on its link. Those of two nodes do not.
func TestLinkIsShared(t *testing.T) {
	for nodes, want := range map[int][3]float64{1: {10, 16, 22}, 3: {10, 6, 6}} {
		sc := oneGPU("a", "lb", nativeStart)
		sc.Functions = []Function{{Name: "a"}, {Name: "b"}, {Name: "c", Model: "b"}}
		sc.Cluster = ClusterSpec{Nodes: nodes, GPUs: 3 / nodes, Slots: 1, Weights: "remote", NetworkGBps: 1, WeightGB: 1}
		m := play(t, build(t, sc), []request{{output: 1}, {fn: 1, output: 1}, {fn: 2, output: 1}})
		for i, stages := range []float64{5.02, 3.01, 3.01} {
			near(t, fmt.Sprintf("answer %d with %d nodes", i, nodes), m.requests[i].first, want[i]+stages)
		}
	}
}

func TestWeightStore(t *testing.T) {
	sc := oneGPU("a", "fcfs", nativeStart)
	sc.Functions = append(sc.Functions, Function{Name: "b"})
	sc.Cluster.Weights, sc.Cluster.NetworkGBps = "remote", 10
	m := play(t, build(t, sc), []request{{output: 1}, {arrival: 20, fn: 1, output: 1}, {arrival: 40, output: 1}})
	near(t, "first start with its fetch", m.requests[0].first, 5+1+0.02)
	near(t, "second start", m.requests[2].first-40, 5+0.02)
}

func TestStoreKeepsWhatIsPinned(t *testing.T) {
	s := store{limit: 3, entries: []entry{{model: "p", gb: 2, pinned: true}}}
	s.put("x", 1, 1)
	s.put("y", 1, 2)
	s.put("big", 1.5, 3)
	if !s.has("p") || s.has("x") || !s.has("y") || s.has("big") {
		t.Errorf("%+v, want p and y", s.entries)
	}
}
