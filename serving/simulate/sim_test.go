package simulate

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"medusa/serving/schedule"
)

// testProfiles are two language models and a function with a fixed service time, in round numbers.
const testProfiles = `
gpu: Test
device: Test
models:
  a: {memory_gb: 10, weights_gb: 10, artifact_gb: 0.5, host_s: 0.5, engine: {prefill_s: 0.02, prefill_token_s: 0.0001, decode_s: 0.01, decode_request_s: 0.001, eager_decode_s: 0.03, eager_decode_request_s: 0.001},
      stages: {native: {runtime: 1, structure: 1, weights: 1, capture: 2}, restored: {runtime: 1, structure: 1, weights: 0.5}}}
  b: {memory_gb: 6, weights_gb: 6, artifact_gb: 0.5, host_s: 0.3, engine: {prefill_s: 0.01, prefill_token_s: 0.0001, decode_s: 0.005, decode_request_s: 0.001},
      stages: {native: {runtime: 1, weights: 1, capture: 1}, restored: {runtime: 1, weights: 0.5}}}
  f: {memory_gb: 4, weights_gb: 4, service_s: 2, host_s: 0.25, peer_s: 0.1, class: heavy, stages: {native: {runtime: 3}}}
`

// build makes a checked scenario over the test profiles.
func build(t testing.TB, s Scenario) *Scenario {
	t.Helper()
	p, err := parseProfiles("test.yaml", []byte(testProfiles))
	if err != nil {
		t.Fatal(err)
	}
	s.profiles = p
	if s.Strategy == "" {
		s.Strategy = nativeStart
	}
	if s.Cluster.Nodes == 0 {
		s.Cluster.Nodes = 1
	}
	for i := range s.Functions {
		if s.Functions[i].Model == "" {
			s.Functions[i].Model = s.Functions[i].Name
		}
	}
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	return &s
}

// play runs given requests.
func play(t testing.TB, s *Scenario, requests []request) *sim {
	t.Helper()
	m, err := newSim(s, requests, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.run()
	return m
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %.9f, want %.9f", what, got, want)
	}
}

func oneGPU(model, policy string, strategy Strategy) Scenario {
	return Scenario{
		Strategy: strategy, Policy: PolicySpec{Name: policy, D: 16}, Cluster: ClusterSpec{GPUs: 1, GPUMemoryGB: 10, Slots: 16},
		Functions: []Function{{Name: model}}, Workload: Workload{Kind: "trace", trace: &recording{}},
	}
}

// TestColdStartAndSteps adds up one request by hand: cold start, prefill, decode steps.
func TestColdStartAndSteps(t *testing.T) {
	for _, c := range []struct {
		strategy Strategy
		load     float64
		decode   float64
	}{{nativeStart, 5, 0.011}, {restoredStart, 2.5, 0.011}, {noGraphsStart, 3, 0.031}} {
		s := build(t, oneGPU("a", "fcfs", c.strategy))
		m := play(t, s, []request{{arrival: 1, prompt: 100, output: 11}})
		r := m.requests[0]
		near(t, string(c.strategy)+" first token", r.first, 1+c.load+0.03)
		near(t, string(c.strategy)+" end", r.end, 1+c.load+0.03+10*c.decode)
		if r.kind != cold {
			t.Errorf("start kind %d, want cold", r.kind)
		}
	}
}

// TestPlacesOfArtifacts: local, remote and absent artifacts, and a pre-started runtime.
func TestPlacesOfArtifacts(t *testing.T) {
	for _, c := range []struct {
		artifacts  string
		network    float64
		prestarted bool
		want       float64
	}{{"local", 0, false, 2.5}, {"remote", 0.5, false, 3.5}, {"remote", 0.1, false, 5}, {"absent", 0, false, 5}, {"local", 0, true, 1.5}} {
		sc := oneGPU("a", "fcfs", restoredStart)
		sc.Cluster.Artifacts, sc.Cluster.NetworkGBps, sc.Cluster.Prestarted = c.artifacts, c.network, c.prestarted
		m := play(t, build(t, sc), []request{{prompt: 100, output: 1}})
		near(t, c.artifacts, m.requests[0].first, c.want+0.03)
	}
}

// TestHostMemory: weights evicted from a GPU come back from host memory, if they fit there.
func TestHostMemory(t *testing.T) {
	for _, c := range []struct {
		gb   float64
		want startKind
	}{{16, fromHost}, {10, cold}, {0, cold}} {
		sc := oneGPU("a", "fcfs", nativeStart)
		sc.Functions = append(sc.Functions, Function{Name: "b"})
		sc.Cluster.HostMemoryGB = c.gb
		m := play(t, build(t, sc), []request{{prompt: 1, output: 1}, {arrival: 20, fn: 1, prompt: 1, output: 1}, {arrival: 40, prompt: 1, output: 1}})
		if got := m.requests[2].kind; got != c.want {
			t.Errorf("%g GB of host memory: start kind %d, want %d", c.gb, got, c.want)
		}
	}
}

// stepwise simulates the engine one step at a time, as simply as possible, for a worker that is already loaded.
func stepwise(e *engine, arrivals []request) []request {
	out := append([]request(nil), arrivals...)
	now, next := 0.0, 0
	var waiting []int
	left := map[int]int32{}
	for done := 0; done < len(out); {
		for next < len(out) && out[next].arrival <= now {
			waiting = append(waiting, next)
			next++
		}
		switch {
		case len(waiting) > 0:
			i := waiting[0]
			waiting = waiting[1:]
			now += e.Prefill + e.PrefillToken*float64(out[i].prompt)
			out[i].first = now
			if left[i] = out[i].output - 1; left[i] == 0 {
				delete(left, i)
				out[i].end = now
				done++
			}
		case len(left) > 0:
			now += e.Decode + e.DecodeRequest*float64(len(left))
			for i := range left {
				if left[i]--; left[i] == 0 {
					delete(left, i)
					out[i].end = now
					done++
				}
			}
		default:
			now = out[next].arrival
		}
	}
	return out
}

// TestPhasesEqualSteps: running equal steps as one event changes no time.
func TestPhasesEqualSteps(t *testing.T) {
	s := build(t, oneGPU("a", "scale-out", nativeStart))
	s.Cluster.Slots = 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		requests := []request{{prompt: 1, output: 1}} // starts the worker
		at := 50.0
		for range 60 {
			at += rng.ExpFloat64() * 0.2
			requests = append(requests, request{arrival: at, prompt: int32(1 + rng.IntN(300)), output: int32(1 + rng.IntN(80))})
		}
		want := stepwise(s.profiles.Models["a"].Engine, requests[1:])
		m := play(t, s, requests)
		for i, w := range want {
			if g := m.requests[i+1]; math.Abs(g.first-w.first) > 1e-7 || math.Abs(g.end-w.end) > 1e-7 {
				t.Fatalf("seed %d, request %d: first %.9f and end %.9f, step by step %.9f and %.9f", seed, i, g.first, g.end, w.first, w.end)
			}
		}
	}
}

// TestHarnessLifecycle: with one check per second, an idle worker stops at the next check, and its GPU is free at the check
// after that. A request in between starts a worker elsewhere.
func TestHarnessLifecycle(t *testing.T) {
	sc := oneGPU("a", "scale-out", nativeStart)
	sc.Cluster = ClusterSpec{GPUs: 2, GPUMemoryGB: 10, WorkersPerGPU: 1, IdleExit: true, ObserveEvery: 1, Prestarted: true}
	m := play(t, build(t, sc), []request{
		{arrival: 0, prompt: 100, output: 1},   // loaded at 4, done at 4.03, stopping at 5, gone at 6
		{arrival: 4.5, prompt: 100, output: 1}, // still accepted
		{arrival: 5.5, prompt: 100, output: 1}, // not any more
	})
	near(t, "request in the grace period", m.requests[1].first, 4.53)
	near(t, "request to a stopping worker", m.requests[2].first, 9.53)
	if m.requests[2].kind != cold {
		t.Error("the third request found a warm worker")
	}
}

// TestInterference: a request that starts beside others on its GPU runs longer.
func TestInterference(t *testing.T) {
	sc := oneGPU("f", "fcfs", nativeStart)
	sc.Cluster = ClusterSpec{GPUs: 1, Slots: 4, Interference: 0.5}
	m := play(t, build(t, sc), []request{{}, {arrival: 10}, {arrival: 10.5}, {arrival: 11, service: 1}})
	near(t, "alone", m.requests[1].end, 12)
	near(t, "beside one", m.requests[2].end, 10.5+2*1.5)
	near(t, "beside two, own service time", m.requests[3].end, 11+1*2)
}

// TestOneWorker: a request waits for the slot of a worker, or gets a second one of its own on the same GPU.
func TestOneWorker(t *testing.T) {
	for one, end := range map[bool]float64{false: 5, true: 7} {
		sc := oneGPU("f", "fcfs", nativeStart)
		sc.Cluster = ClusterSpec{GPUs: 1, GPUMemoryGB: 10, Slots: 1, OneWorker: one}
		m := play(t, build(t, sc), []request{{}, {}})
		near(t, fmt.Sprintf("second request, one worker %v", one), m.requests[1].end, end)
	}
}

// TestKeep: f comes, then g and h, then f again. Two fit. If f is kept, g makes room for h, and f is warm.
func TestKeep(t *testing.T) {
	for keep, kind := range map[bool]startKind{false: cold, true: warm} {
		sc := oneGPU("f", "fcfs", nativeStart)
		sc.Functions = []Function{{Name: "f", Keep: keep}, {Name: "g", Model: "f"}, {Name: "h", Model: "f"}}
		sc.Cluster = ClusterSpec{GPUs: 1, GPUMemoryGB: 8, Slots: 1, OneWorker: true}
		m := play(t, build(t, sc), []request{{fn: 0}, {arrival: 10, fn: 1}, {arrival: 20, fn: 2}, {arrival: 30, fn: 0}})
		if got := m.requests[3].kind; got != kind {
			t.Errorf("kept %v: start kind %d, want %d", keep, got, kind)
		}
	}
}

// TestSleepers: an engine that sleeps on one GPU cannot wake on another.
func TestSleepers(t *testing.T) {
	for sleepers, kind := range map[bool]startKind{false: fromHost, true: cold} {
		sc := oneGPU("f", "lb", nativeStart)
		sc.Functions = []Function{{Name: "f"}, {Name: "g", Model: "f"}}
		sc.Cluster = ClusterSpec{GPUs: 2, GPUMemoryGB: 4, Slots: 1, OneWorker: true, HostMemoryGB: 100, Sleepers: sleepers}
		// Idle GPUs take turns: f runs on GPU 0, then on GPU 1. At last f is back on GPU 0, where g had evicted it.
		m := play(t, build(t, sc), []request{{fn: 0}, {arrival: 10, fn: 0}, {arrival: 20, fn: 1}, {arrival: 30, fn: 1}, {arrival: 40, fn: 0}})
		if got := []startKind{m.requests[0].kind, m.requests[1].kind, m.requests[4].kind}; !slices.Equal(got, []startKind{cold, kind, fromHost}) {
			t.Errorf("sleepers %v: start kinds %d", sleepers, got)
		}
	}
}

// TestFunctionSlots: a function's own batch slots come before the cluster's.
func TestFunctionSlots(t *testing.T) {
	for slots, end := range map[int]float64{0: 5, 1: 7} {
		sc := oneGPU("f", "fcfs", nativeStart)
		sc.Functions = []Function{{Name: "f", Slots: slots}}
		sc.Cluster = ClusterSpec{GPUs: 1, GPUMemoryGB: 4, Slots: 2}
		m := play(t, build(t, sc), []request{{}, {}})
		near(t, fmt.Sprintf("second request, %d slots", slots), m.requests[1].end, end)
	}
}

// TestContention: a copy from host memory is slower only while the neighbour behind the PCIe switch copies.
func TestContention(t *testing.T) {
	sc := oneGPU("f", "lb", nativeStart)
	sc.Functions = []Function{{Name: "f", Copies: 3}}
	sc.Cluster = ClusterSpec{GPUs: 2, Slots: 1, GPUSlots: 1, HostWarm: true, Neighbours: []int{1, 0}, Contention: [][]float64{{1, 1, 1}, {1, 1, 1}, {1, 1, 3}}}
	m := play(t, build(t, sc), []request{{}, {arrival: 0.1, fn: 1}, {arrival: 10, fn: 2}})
	near(t, "alone", m.requests[0].end, 2.25)
	near(t, "beside a copy", m.requests[1].end, 0.1+3*0.25+2)
	near(t, "later", m.requests[2].end, 12.25)
}

// TestPeerCopy: Torpor copies weights over NVLink from a GPU that is busy with them.
func TestPeerCopy(t *testing.T) {
	sc := oneGPU("f", "torpor", nativeStart)
	sc.Functions = []Function{{Name: "f", SLO: 1}, {Name: "g", Model: "f", SLO: 1}}
	sc.Cluster = ClusterSpec{GPUs: 2, Slots: 1, GPUSlots: 1, HostWarm: true, NVLink: [][]float64{{0, 1}, {1, 0}}}
	// GPU 0 holds f and is busy with g when f arrives again.
	m := play(t, build(t, sc), []request{{fn: 0}, {arrival: 10, fn: 1}, {arrival: 10.1, fn: 0}})
	if got := m.requests[2].kind; got != fromPeer {
		t.Errorf("start kind %d, want a copy from the other GPU", got)
	}
	near(t, "start after the copy", m.requests[2].start, 10.1+0.1)
}

// TestPrefetch: when a queue becomes active, its weights are copied while the request still waits for a token.
func TestPrefetch(t *testing.T) {
	for eviction, want := range map[string]float64{"sticky": 202, "lru": 202.25} {
		zero := 0.0
		sc := oneGPU("f", "mqfq", nativeStart)
		sc.Policy = PolicySpec{Name: "mqfq", D: 1, Alpha: &zero}
		sc.Functions = []Function{{Name: "f", Copies: 3}}
		sc.Cluster = ClusterSpec{GPUs: 1, GPUMemoryGB: 8, Slots: 1, Pool: 3, Eviction: eviction}
		// Function 0 is pushed out to host memory by 1 and 2. While 2 runs again, 0 may take the place of 1.
		m := play(t, build(t, sc), []request{
			{fn: 0}, {arrival: 50, fn: 1}, {arrival: 100, fn: 2},
			{arrival: 198, fn: 2, service: 2}, {arrival: 199, fn: 0},
		})
		if m.requests[4].kind == cold {
			t.Fatal("function 0 has left host memory")
		}
		near(t, "answer with eviction "+eviction, m.requests[4].first, want)
	}
}

// watched checks the invariants whenever the policy is asked.
type watched struct {
	decider
	t *testing.T
	s *sim
}

func (w *watched) Next(now float64) (schedule.Decision, bool) {
	w.t.Helper()
	s := w.s
	for g := range s.gpus {
		p := &s.gpus[g]
		used, pinnedBytes, pinned, flying := int64(0), int64(0), 0, 0
		for _, x := range p.workers {
			used += s.fns[x.fn].bytes
			flying += x.inFlight
			if !x.idle() {
				pinned++
				pinnedBytes += s.fns[x.fn].bytes
			}
			if s.spec.Slots > 0 && x.inFlight > s.spec.Slots {
				w.t.Fatalf("a worker has %d requests in %d slots", x.inFlight, s.spec.Slots)
			}
		}
		if used != p.used || pinned != p.pinned || pinnedBytes != p.pinnedBytes || flying != p.flying {
			w.t.Fatalf("GPU %d: books say %d %d %d %d, workers %d %d %d %d", g, p.used, p.pinned, p.pinnedBytes, p.flying, used, pinned, pinnedBytes, flying)
		}
		if s.memory > 0 && used > s.memory {
			w.t.Fatalf("GPU %d uses %d of %d bytes", g, used, s.memory)
		}
		if s.spec.WorkersPerGPU > 0 && len(p.workers) > s.spec.WorkersPerGPU {
			w.t.Fatalf("GPU %d has %d workers", g, len(p.workers))
		}
		if s.spec.GPUSlots > 0 && p.flying > s.spec.GPUSlots {
			w.t.Fatalf("GPU %d runs %d requests", g, p.flying)
		}
	}
	for n := range s.nodes {
		if got := len(s.nodes[n].containers); s.spec.Pool > 0 && got > s.spec.Pool {
			w.t.Fatalf("node %d keeps %d containers, its pool is %d", n, got, s.spec.Pool)
		}
		if gb := s.hosted(&s.nodes[n]); s.spec.HostMemoryGB > 0 && gb > s.spec.HostMemoryGB {
			w.t.Fatalf("node %d keeps %g GB in host memory", n, gb)
		}
	}
	return w.decider.Next(now)
}

// TestInvariants runs every policy and eviction over random traces on tight clusters. No cache ever exceeds its capacity,
// counters agree with a recount, and every request is served once, with its times in order.
func TestInvariants(t *testing.T) {
	clusters := []ClusterSpec{
		{GPUs: 3, GPUMemoryGB: 10, Slots: 4},
		{Nodes: 2, GPUs: 2, GPUMemoryGB: 16, Slots: 2, HostMemoryGB: 20, Interference: 0.2},
		{GPUs: 2, GPUMemoryGB: 10, Slots: 1, GPUSlots: 2, Pool: 3},
		{GPUs: 4, GPUMemoryGB: 12, Slots: 1, GPUSlots: 1, HostWarm: true, Neighbours: []int{1, 0, 3, 2},
			NVLink: [][]float64{{0, 1, 1, 2}, {1, 0, 2, 1}, {1, 2, 0, 2}, {2, 1, 2, 0}}, Contention: [][]float64{{1, 1, 1}, {1, 2, 2}, {1, 2, 2}}},
		{GPUs: 2, GPUMemoryGB: 10, Slots: 4, Keepalive: 3},
		{GPUs: 2, GPUMemoryGB: 10, WorkersPerGPU: 1, IdleExit: true, ObserveEvery: 1},
		{GPUs: 2, GPUMemoryGB: 10, Slots: 8, ObserveEvery: 0.5},
	}
	for _, name := range schedule.Names() {
		for i, c := range clusters {
			for k, eviction := range []string{"lru", "global-lru", "heavy-light", "sticky"} {
				if eviction == "sticky" && name != "mqfq" {
					continue
				}
				c.Eviction = eviction
				s := build(t, Scenario{
					Policy: PolicySpec{Name: name}, Cluster: c,
					Functions: []Function{{Name: "a", SLO: 9}, {Name: "b", SLO: 9, Copies: 2}, {Name: "f", SLO: 9, Copies: 3}},
					Workload:  Workload{Kind: "zipf", Exponent: 1, Rate: 0.6, Duration: 300},
				})
				seed := uint64(i*10 + k)
				m, err := newSim(s, s.Workload.requests(s.deployed(), seed), seed, nil)
				if err != nil {
					t.Fatal(err)
				}
				m.core = &watched{m.core, t, m}
				m.run()
				for j, r := range m.requests {
					if !r.done || r.start < r.arrival || r.first < r.start || r.end < r.first {
						t.Fatalf("%s on cluster %d, request %d: arrival %g, start %g, first %g, end %g, done %v", name, i, j, r.arrival, r.start, r.first, r.end, r.done)
					}
				}
			}
		}
	}
}

// TestSameSeedSameResult compares whole results byte by byte.
func TestSameSeedSameResult(t *testing.T) {
	result := func(seed uint64) string {
		s := build(t, Scenario{
			Seed: seed, Policy: PolicySpec{Name: "lalbo3"}, Cluster: ClusterSpec{GPUs: 2, GPUMemoryGB: 10, Slots: 8},
			Functions: []Function{{Name: "a"}, {Name: "b"}}, Workload: Workload{Kind: "azure", Rate: 1, Burst: 3, Duration: 600},
		})
		r, err := Run(s, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first := result(1)
	if result(1) != first {
		t.Error("the same seed gives two results")
	}
	if result(2) == first {
		t.Error("two seeds give one result")
	}
}

func TestRunTellsProgress(t *testing.T) {
	s := build(t, Scenario{
		Seeds: 2, Policy: PolicySpec{Name: "fcfs", D: 8}, Cluster: ClusterSpec{GPUs: 1, GPUMemoryGB: 10, Slots: 8},
		Functions: []Function{{Name: "a"}}, Workload: Workload{Kind: "poisson", Rate: 2, Duration: 1000, Lengths: "fixed", Prompt: 10, Output: 10},
	})
	last, total := 0, 0
	r, err := Run(s, func(d, n int) {
		if d <= last || d > n {
			t.Errorf("progress goes from %d to %d of %d", last, d, n)
		}
		last, total = d, n
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := r.Variants[0].Runs[0].Requests + r.Variants[0].Runs[1].Requests; total != want || last < want-2048 {
		t.Errorf("last progress %d of %d, want about %d", last, total, want)
	}
}

// manyRequests is a cluster under a load that it can carry: ten models, four GPUs.
func manyRequests(t testing.TB, n int) *Scenario {
	functions := []Function{}
	for i := range 10 {
		functions = append(functions, Function{Name: fmt.Sprintf("m%d", i), Model: "b"})
	}
	return build(t, Scenario{
		Policy: PolicySpec{Name: "lalbo3"}, Cluster: ClusterSpec{GPUs: 4, GPUMemoryGB: 18, Slots: 16},
		Functions: functions, Workload: Workload{Kind: "zipf", Exponent: 1, Rate: 10, Duration: float64(n) / 10},
	})
}

// TestSpeed: a million requests a minute on one core, with a wide margin for a slow machine.
func TestSpeed(t *testing.T) {
	s := manyRequests(t, 50_000)
	requests := s.Workload.requests(s.deployed(), 1)
	began := time.Now()
	play(t, s, requests)
	if took := time.Since(began); took > 3*time.Second && !raceDetector {
		t.Errorf("%d requests took %v, want a million a minute", len(requests), took)
	}
}

func BenchmarkSimulate(b *testing.B) {
	s := manyRequests(b, 100_000)
	requests := s.Workload.requests(s.deployed(), 1)
	b.ReportAllocs()
	for b.Loop() {
		play(b, s, append([]request(nil), requests...))
	}
	b.ReportMetric(float64(len(requests)*b.N)/b.Elapsed().Seconds(), "requests/s")
}
