package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestQuantile(t *testing.T) {
	v := []float64{1, 2, 4, 8}
	// numpy.quantile of the same values.
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.9: 6.8, 0.99: 7.88, 1: 8} {
		near(t, "quantile", quantile(v, q), want)
	}
	near(t, "quantile of nothing", quantile(nil, 0.5), 0)
}

func TestEstimate(t *testing.T) {
	o := Outcome{}
	for _, v := range []float64{1, 2, 3, 4, 5, 6} {
		o.Runs = append(o.Runs, &Summary{Spread: Spread{TTFTP99: v}})
	}
	e := o.Estimate(func(s *Summary) float64 { return s.TTFTP99 })
	// Standard deviation 1.8708, t(0.975, 5) = 2.5706.
	if math.Abs(e.Mean-3.5) > 1e-9 || math.Abs(e.Half-1.9634) > 5e-3 {
		t.Errorf("%+v", e)
	}
	o.Runs = o.Runs[:1]
	if e := o.Estimate(func(s *Summary) float64 { return s.TTFTP99 }); e.Half != 0 {
		t.Errorf("one run gives an interval: %+v", e)
	}
	for df, want := range map[int]float64{1: 12.706, 9: 2.262, 30: 2.042, 1000: 1.962} {
		if got := student(df); math.Abs(got-want) > 0.01 {
			t.Errorf("t(0.975, %d) = %.3f, want %.3f", df, got, want)
		}
	}
}

func TestJain(t *testing.T) {
	near(t, "equal", jain([]float64{2, 2, 2}), 1)
	near(t, "one has all", jain([]float64{6, 0, 0}), 1.0/3)
	near(t, "nobody has anything", jain([]float64{0, 0}), 1)
}

func TestBacklogged(t *testing.T) {
	rs := []*request{{arrival: 0, start: 12, end: 14}, {arrival: 5, start: 25, end: 31}, {arrival: 20, start: 40, end: 41}}
	got := newAccount(rs, 1)
	for _, c := range []struct {
		from, to, service float64
		ok                bool
	}{{10, 30, 7, true}, {0, 10, 0, true}, {10, 45, 9, false}, {-5, 5, 0, false}} {
		service, ok := got.at(c.to)-got.at(c.from), covers(backlogs(rs), c.from, c.to)
		if math.Abs(service-c.service) > 1e-9 || ok != c.ok {
			t.Errorf("window %g to %g: service %g, backlogged %v, want %g, %v", c.from, c.to, service, ok, c.service, c.ok)
		}
	}
}

// TestFairnessLag adds up the service of two functions second by second, and compares all pairs of moments.
func TestFairnessLag(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 4))
		per := make([][]*request, 2)
		now := 0.0
		for range 120 {
			i := rng.IntN(2)
			if seed%2 == 0 && rng.IntN(3) > 0 {
				i = 0
			}
			d := float64(1 + rng.IntN(4))
			per[i] = append(per[i], &request{arrival: 0, start: now, end: now + d})
			now += d
		}
		s := &sim{fns: []function{{Function: Function{Weight: 2}}, {}}}
		_, got := s.fairness(per, now)
		until := math.Min(per[0][len(per[0])-1].start, per[1][len(per[1])-1].start) // both wait until then
		want := 0.0
		lead := []float64{0}
		for at := 0.0; at < until; at++ {
			v := lead[len(lead)-1]
			for i, weight := range []float64{2, -1} {
				for _, r := range per[i] {
					if r.start <= at && at < r.end {
						v += 1 / weight
					}
				}
			}
			for _, before := range lead {
				want = math.Max(want, math.Abs(v-before))
			}
			lead = append(lead, v)
		}
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("seed %d: lag %g, want %g", seed, got, want)
		}
	}
}

func TestFiguresJudge(t *testing.T) {
	p := func(v float64) *float64 { return &v }
	one := func(values ...float64) (out [][]float64) {
		for _, v := range values {
			out = append(out, []float64{v})
		}
		return out
	}
	for _, c := range []struct {
		name   string
		f      Figure
		values [][]float64
		rivals [][]float64
		want   Verdict
	}{
		{"within five points", Figure{Compare: "change", Published: p(-97)}, one(100, 7.9), nil, Within},
		{"beyond five points", Figure{Compare: "change", Published: p(-97)}, one(100, 8.1), nil, Outside},
		{"own tolerance", Figure{Compare: "value", Metric: "ttft_p98", Published: p(0.035), Points: p(0.005)}, one(0.041), nil, Outside},
		{"a share in percent", Figure{Compare: "value", Metric: "cold_ratio", Published: p(50)}, one(46), nil, Within},
		{"a range", Figure{Compare: "change", Least: p(-55), Most: p(-43)}, one(1, 0.58), nil, Outside},
		{"a ratio", Figure{Compare: "ratio", Least: p(2)}, one(4.1, 2), nil, Within},
		{"a ratio too small", Figure{Compare: "ratio", Least: p(2)}, one(3.9, 2), nil, Outside},
		{"order", Figure{Compare: "order", Variants: []string{"a", "b"}}, one(1, 2), nil, Within},
		{"a tie is no order", Figure{Compare: "order", Variants: []string{"a", "b"}}, one(2, 2), nil, Outside},
		{"a tie allowed", Figure{Compare: "order", OrEqual: true, Variants: []string{"a", "b"}}, one(2, 2), nil, Within},
		// With three seeds the half width is 2.48 times the standard deviation.
		{"an interval inside", Figure{Compare: "value", Metric: "x", Most: p(10)}, [][]float64{{5, 6, 7}}, nil, Within},
		{"a mean inside, the interval not", Figure{Compare: "value", Metric: "x", Most: p(10)}, [][]float64{{6, 8, 10}}, nil, Undecided},
		{"a mean outside, the interval not", Figure{Compare: "value", Metric: "x", Most: p(10)}, [][]float64{{9, 11, 13}}, nil, Undecided},
		{"an interval outside", Figure{Compare: "value", Metric: "x", Most: p(10)}, [][]float64{{15, 16, 17}}, nil, Outside},
		{"a rival that fails", Figure{Compare: "value", Metric: "x", Most: p(10), Fails: []string{"r"}}, one(5), one(11), Within},
		{"a rival that passes", Figure{Compare: "value", Metric: "x", Most: p(10), Fails: []string{"r"}}, one(5), one(9), Outside},
		{"a rival in doubt", Figure{Compare: "value", Metric: "x", Most: p(10), Fails: []string{"r"}}, one(5), [][]float64{{9, 11, 13}}, Outside},
		{"seeds are paired", Figure{Compare: "order", Variants: []string{"a", "b"}}, [][]float64{{1, 10, 100}, {2, 11, 101}}, nil, Within},
		{"an order in doubt", Figure{Compare: "order", Variants: []string{"a", "b"}}, [][]float64{{1, 1, 1}, {2, 3, 0}}, nil, Undecided},
		{"a doubtful step after a wrong one", Figure{Compare: "order", Variants: []string{"a", "b", "c"}}, [][]float64{{2, 2, 2}, {1, 1, 1}, {0, 1, 3}}, nil, Outside},
	} {
		var got Finding
		c.f.judge(&got, c.values, c.rivals)
		if got.Verdict != c.want || got.Ours == "" || got.Published == "" {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestHeldOut: the median error needs every point. The constant predictor is the median of the named rows, never of the predicted
// one.
func TestHeldOut(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.csv"), []byte("variant,ttft_p99\na 1,2\na 2,10\na 5,4\na 7,5\na 9,9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := &Scenario{dir: dir}
	point := func(name string, v float64) Outcome {
		return Outcome{Name: name, Runs: []*Summary{{Spread: Spread{TTFTP99: v}}}}
	}
	most := 0.25
	f := Figure{Compare: "error", Metric: "ttft_p99", Against: "p.csv", Most: &most, Constant: []string{"5", "7", "9"}}
	r := &Result{Variants: []Outcome{point("a 1", 2.2), point("a 2", 7)}}
	got, err := s.find(f, r)
	// Errors of 10 and 30 %, median 20; the constant 5 is wrong by 150 and 50 %.
	if err != nil || got.Verdict != Within || got.Ours != "20.0 % over 2 points; constant predictor 100.0 %; ours is nearer at 2; worst 30 %" {
		t.Errorf("%q %q, %v", got.Ours, got.Verdict, err)
	}
	if got.Points[0].Variant != "a 2" || got.Points[0].Constant != 5 {
		t.Errorf("worst point %+v", got.Points[0])
	}
	for _, name := range []string{"c 1", "a 5"} {
		if _, err := s.find(f, &Result{Variants: []Outcome{point(name, 1)}}); err == nil {
			t.Errorf("%s has a finding, though its row is missing or makes the constant", name)
		}
	}
}

func smallResult(t *testing.T) *Result {
	t.Helper()
	s, err := LoadScenario(withFiles(t, strings.Replace(testScenario, "name: restored, with", `name: "<restored> & more", with`, 1)[:strings.Index(testScenario, "figures:")+len(`"<restored> & more"`)-len("restored")]))
	if err != nil {
		t.Fatal(err)
	}
	s.Seeds = 2
	r, err := Run(s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTableAndJSON(t *testing.T) {
	r := smallResult(t)
	var table, data bytes.Buffer
	if err := r.WriteTable(&table, true); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(table.String()), "\n")
	if len(lines) != 1+2*3 || !strings.Contains(lines[0], "p99") || !strings.Contains(lines[0], "SLO %") || !strings.Contains(lines[1], "native") {
		t.Errorf("table:\n%s", table.String())
	}
	if err := r.WriteJSON(&data); err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(data.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if got, want := back.Variants[1].Runs[0].TTFTP99, r.Variants[1].Runs[0].TTFTP99; got != want || want == 0 {
		t.Errorf("p99 %g in JSON, %g in the result", got, want)
	}
	if len(back.Variants[0].Runs[0].Functions) != 2 {
		t.Error("the JSON lacks the functions")
	}
}

func TestPageIsSelfContained(t *testing.T) {
	var b bytes.Buffer
	if err := smallResult(t).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, bad := range []string{"http:", "https:", "<script", "@import", "url(", "NaN", "Inf", "<restored>", "ZgotmplZ"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if n := strings.Count(text, "<svg"); n != 4 {
		t.Errorf("%d charts, want 4", n)
	}
	if n := strings.Count(text, `class="bar"`); n != 2 {
		t.Errorf("%d bars, want one a variant", n)
	}
	if n := strings.Count(text, "<polyline"); n != 4*2 {
		t.Errorf("%d curves, want one for each of 2 variants in 4 charts", n)
	}
}

// TestTicks: axes have a readable number of round ticks.
func TestTicks(t *testing.T) {
	for _, s := range []scale{{hi: 1}, {hi: 7}, {hi: 0.037}, {hi: 1999}, {hi: 6.1e6}, {lo: 0.001, hi: 1000, log: true}} {
		s.to = 100
		n := len(s.ticks())
		if n < 3 || n > 8 {
			t.Errorf("axis %g to %g has %d ticks", s.lo, s.hi, n)
		}
		for _, k := range s.ticks() {
			if k.At < -1e-9 || k.At > 100+1e-6 {
				t.Errorf("axis %g to %g: tick %s at %g", s.lo, s.hi, k.Label, k.At)
			}
		}
	}
}

func TestErlang(t *testing.T) {
	near(t, "B(1,1)", erlang(1, 1), 0.5)
	near(t, "B(2,2)", erlang(2, 2), 0.4)
	for _, c := range []struct {
		load  float64
		slots int
		want  int
	}{{0, 1, 0}, {0.001, 1, 1}, {2, 1, 7}, {2, 16, 1}, {30, 16, 3}} {
		if got := workersFor(c.load, c.slots, 0.01); got != c.want {
			t.Errorf("load %g on %d slots: %d workers, want %d", c.load, c.slots, got, c.want)
		}
	}
}

// TestPlanIsGreedyOptimum compares the plan with the best subset. Greedy loses at most the value of the first entry that did not
// fit.
func TestPlanIsGreedyOptimum(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := &profiles{GPU: "g", Models: map[string]profile{}}
		s := Scenario{Policy: PolicySpec{Name: "fcfs"}, Strategy: nativeStart, Cluster: ClusterSpec{Nodes: 1, GPUs: 1}, Workload: Workload{Kind: "poisson", Duration: 1}}
		for i := range 8 {
			name := string(rune('a' + i))
			p.Models[name] = profile{
				ArtifactGB: 0.1 + rng.Float64(), Service: 1,
				Stages: map[Strategy]map[string]float64{nativeStart: {"capture": 2 + rng.Float64()*5}, restoredStart: {"capture": 0.1}},
			}
			s.Functions = append(s.Functions, Function{Name: name, Model: name, Rate: 0.1 + rng.Float64()})
		}
		s.profiles = p
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		const budget = 2.0
		plan, err := MakePlan(&s, budget, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		if used := plan.Nodes[0].UsedGB; used > budget {
			t.Fatalf("uses %g of %g GB", used, budget)
		}
		saved := 0.0
		for _, c := range plan.Choices {
			saved += c.Rate * c.Saved * float64(len(c.Nodes))
		}
		best, largest := 0.0, 0.0
		for set := range 1 << len(plan.Choices) {
			size, value := 0.0, 0.0
			for i, c := range plan.Choices {
				largest = math.Max(largest, c.Rate*c.Saved)
				if set>>i&1 == 1 {
					size += c.SizeGB
					value += c.Rate * c.Saved
				}
			}
			if size <= budget {
				best = math.Max(best, value)
			}
		}
		if saved > best+1e-9 || saved < best-largest {
			t.Errorf("seed %d: saves %g, the best subset %g", seed, saved, best)
		}
		for i := 1; i < len(plan.Choices); i++ {
			if plan.Choices[i].Value > plan.Choices[i-1].Value {
				t.Error("choices are not in order of value")
			}
		}
	}
}

// TestPlanSpreads: if the policy follows artifacts, two nodes hold more models than one. Otherwise both hold the same.
func TestPlanSpreads(t *testing.T) {
	for policy, want := range map[string]string{"lalbo3": "[a] [b]", "fcfs": "[a] [a]"} {
		s := build(t, Scenario{
			Policy: PolicySpec{Name: policy}, Cluster: ClusterSpec{Nodes: 2, GPUs: 1},
			Functions: []Function{{Name: "a", Rate: 1}, {Name: "b", Rate: 1}}, Workload: Workload{Kind: "poisson", Duration: 1},
		})
		p, err := MakePlan(s, 0.6, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(p.Nodes[0].Models, p.Nodes[1].Models); got != want {
			t.Errorf("%s: nodes get %s, want %s", policy, got, want)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	s := build(t, oneGPU("f", "fcfs", nativeStart))
	if _, err := MakePlan(s, 1, 0.01); err == nil || !strings.Contains(err.Error(), "model f") {
		t.Errorf("a model without a restored start is planned: %v", err)
	}
	for _, c := range [][2]float64{{-1, 0.1}, {1, 0}, {1, 1}, {math.NaN(), 0.1}} {
		if _, err := MakePlan(s, c[0], c[1]); err == nil {
			t.Errorf("budget %g and miss %g are accepted", c[0], c[1])
		}
	}
}

// TestWorkloads: each kind makes the requests that it describes.
func TestWorkloads(t *testing.T) {
	functions := []Function{{Name: "a", Rate: 3}, {Name: "b", Rate: 1, Start: 500}}
	for _, c := range []struct {
		name  string
		w     Workload
		total float64
		share float64 // of the first function
	}{
		{"poisson", Workload{Kind: "poisson", Duration: 1000}, 3500, 6.0 / 7},
		{"scaled", Workload{Kind: "poisson", Duration: 1000, Rate: 8}, 7000, 6.0 / 7},
		{"zipf", Workload{Kind: "zipf", Duration: 1000, Rate: 3, Exponent: 1}, 2500, 0.8},
		{"azure", Workload{Kind: "azure", Duration: 1000, Burst: 3}, 3500, 6.0 / 7},
		{"table", Workload{Kind: "table", Duration: 600, table: [][]float64{{60, 120}}, Gaps: "poisson-ms"}, 1800, 0.5},
	} {
		rs := c.w.requests(functions, 3)
		first, last := 0.0, 0.0
		for _, r := range rs {
			if r.arrival < last || r.prompt < 1 || r.output < 1 || r.prompt+r.output >= maxTokens {
				t.Fatalf("%s: request %+v after %g", c.name, r, last)
			}
			last = r.arrival
			if r.fn == 0 {
				first++
			}
		}
		if n := float64(len(rs)); math.Abs(n/c.total-1) > 0.12 || math.Abs(first/n-c.share) > 0.05 {
			t.Errorf("%s: %g requests, share of the first %.2f; want %g and %.2f", c.name, n, first/n, c.total, c.share)
		}
	}
}

// TestBurst: the gaps of the azure workload have the requested variation.
func TestBurst(t *testing.T) {
	for _, burst := range []float64{0.5, 1, 3} {
		w := Workload{Kind: "azure", Duration: 20000, Burst: burst}
		rs := w.renewal(0, 0, 2, rand.New(rand.NewPCG(1, 1)))
		var gaps []float64
		for i := 1; i < len(rs); i++ {
			gaps = append(gaps, rs[i].arrival-rs[i-1].arrival)
		}
		mean := rs[len(rs)-1].arrival / float64(len(rs))
		if cv := math.Sqrt(variance(gaps, func(v float64) float64 { return v })) / mean; math.Abs(cv/burst-1) > 0.1 {
			t.Errorf("coefficient of variation %.2f, want %.2f", cv, burst)
		}
	}
}
