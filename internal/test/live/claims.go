package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// claim is an order that a paper states, of values measured live.
type claim struct {
	file, title, unit string
	text              string
	high              bool // better is higher
	rows              []string
	series            []series // two: the first is to have the better values
	cells             [][]cell // by series, by row
}

// series has the values of a policy or a way of starting: by row, by seed.
type series struct {
	name   string
	values [][]float64
}

// The start of a stub engine natively and restored. They stand in the ratio of Medusa's loading phases: 42.5 % less.
const (
	nativeStart   = 0.8
	restoredStart = nativeStart * (1 - 0.425)
)

// claims measures what the papers claim live, with stub engines, and writes a page with plots.
func (r *run) claims() (string, error) {
	list := []*claim{r.fairnessClaim(), r.deadlineClaim(), r.localityClaim(), r.startClaim()}
	var page strings.Builder
	fmt.Fprintf(&page, `# The papers' claims, live

`+"`make claims-serve SEEDS=%d SECONDS=%g`"+` runs `+"`medusa serve`"+` with stub engines, whose starts and answers take given times and use no processor or GPU. Values are
means over %[1]d seeds of arrivals, with 95 %% intervals (Student's t). %[3]d processors, load average %[4]s at the start. No GPU was used. The papers' figures come from other models and machines:
orders can be compared, not sizes.

`, r.seeds, r.seconds, runtime.NumCPU(), loadAverage())
	held := 0
	for _, c := range list {
		if err := c.measure(r); err != nil {
			return "", fmt.Errorf("%s: %w", c.file, err)
		}
		if err := os.WriteFile(filepath.Join(r.out, c.file+".svg"), []byte(c.svg()), 0o644); err != nil {
			return "", err
		}
		text, all := c.table()
		held += all
		page.WriteString(text)
		fmt.Printf("claims: %s: %d of %d rows in the stated order\n", c.file, all, len(c.rows))
	}
	if err := os.WriteFile(filepath.Join(r.out, "serving.md"), []byte(page.String()), 0o644); err != nil {
		return "", err
	}
	return fmt.Sprintf("claims=%d rows-in-order=%d", len(list), held), nil
}

func loadAverage() string {
	data, _ := os.ReadFile("/proc/loadavg")
	text, _, _ := strings.Cut(string(data), " ")
	return text
}

// cell is where a value is measured: a series in a row.
type cell struct {
	bed
	rates []float64 // requests a second, by model; nil: the value is of the run of the row before
	value func(outcome) float64
}

func (c *claim) measure(r *run) error {
	for s := range c.series {
		c.series[s].values = make([][]float64, len(c.rows))
	}
	for n := range r.seeds { // series take turns, so that a busy machine troubles all alike
		last := make([]outcome, len(c.series))
		for row := range c.rows {
			for s := range c.series {
				x := c.cells[s][row]
				if x.rates != nil {
					var err error
					if last[s], err = r.live(x.bed, poisson(r.seed+uint64(n), x.rates, r.seconds)); err != nil {
						return fmt.Errorf("%s, %s: %w", c.series[s].name, c.rows[row], err)
					}
				}
				c.series[s].values[row] = append(c.series[s].values[row], x.value(last[s]))
			}
		}
	}
	return nil
}

func equal(n int, x float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = x
	}
	return list
}

func latency(o outcome) float64 { return o.Latency }
func inTime(o outcome) float64  { return o.Deadline }
func worst(o outcome) float64   { return o.Worst }

// fairnessClaim has a popular model beside others.
func (r *run) fairnessClaim() *claim {
	c := &claim{file: "serving-fairness", title: "MQFQ-Sticky and FCFS", unit: "s",
		text: "MQFQ: lower latency and a fair share for models that others outnumber. Five models, of which four fit on two GPUs; one gets two thirds of 9 requests a second, which take 0.3 s each. The row `worst model` is the mean latency of the model for which it is largest.",
		rows: []string{"mean latency", "worst model"}, series: []series{{name: "mqfq"}, {name: "fcfs"}}}
	for _, s := range c.series {
		b := bed{policy: s.name, more: map[string]string{"mqfq": ", t: 1"}[s.name], gpus: 2, services: equal(5, 0.3), memory: 0.5, load: nativeStart, deadline: 3}
		rates := []float64{6, 0.75, 0.75, 0.75, 0.75}
		c.cells = append(c.cells, []cell{{b, rates, latency}, {value: worst}})
	}
	return c
}

// deadlineClaim has more and more models on a GPU.
func (r *run) deadlineClaim() *claim {
	c := &claim{file: "serving-deadline", title: "Requests in time as models per GPU grow", unit: "share in time", high: true,
		text: "Torpor: models swapped from host memory meet their deadlines with many more models on a GPU than if each has to start. One GPU holds two models awake; waking takes 0.1 s, a start 0.8 s, an answer 0.1 s; each model gets 0.5 requests a second, with a deadline of 0.6 s.",
		rows: []string{"2 models", "4 models", "6 models", "8 models"}, series: []series{{name: "torpor"}, {name: "fcfs, starts"}}}
	for i := range c.series {
		var row []cell
		for _, n := range []int{2, 4, 6, 8} {
			b := bed{policy: "torpor", gpus: 1, services: equal(n, 0.1), memory: 0.45, load: nativeStart, wake: 0.1, sleep: 1, deadline: 0.6}
			if i == 1 {
				b.policy, b.sleep = "fcfs", 0
			}
			row = append(row, cell{b, equal(n, 0.5), inTime})
		}
		c.cells = append(c.cells, row)
	}
	return c
}

// localityClaim has models of which not all fit.
func (r *run) localityClaim() *claim {
	c := &claim{file: "serving-locality", title: "LALBO3 and LB", unit: "s",
		text: "The thesis: a scheduler that knows which GPU holds a model has a far lower latency than load balancing alone. Six models, of which four fit on two GPUs, get 0.6 requests a second each; an answer takes 0.2 s.",
		rows: []string{"mean latency", "worst model"}, series: []series{{name: "lalbo3"}, {name: "lb"}}}
	for _, s := range c.series {
		b := bed{policy: s.name, gpus: 2, services: equal(6, 0.2), memory: 0.5, load: nativeStart, deadline: 3}
		rates := equal(6, 0.6)
		c.cells = append(c.cells, []cell{{b, rates, latency}, {value: worst}})
	}
	return c
}

// startClaim has starts that are shorter by what Medusa saves.
func (r *run) startClaim() *claim {
	c := &claim{file: "serving-starts", title: "Restored and native starts", unit: "s",
		text: fmt.Sprintf("Medusa: restored starts are 42.5 %% shorter (the paper's loading phase). A stub's start takes %.2f s natively, %.2f s restored. Arrivals as for LALBO3. Values are mean latencies.", nativeStart, restoredStart),
		rows: policies, series: []series{{name: "restored"}, {name: "native"}}}
	for _, start := range []float64{restoredStart, nativeStart} {
		var row []cell
		for _, policy := range policies {
			row = append(row, cell{bed{policy: policy, gpus: 2, services: equal(6, 0.2), memory: 0.5, load: start, deadline: 3}, equal(6, 0.6), latency})
		}
		c.cells = append(c.cells, row)
	}
	return c
}

// poisson are arrivals at given rates.
func poisson(seed uint64, rates []float64, seconds float64) (list []arrival) {
	rng := rand.New(rand.NewPCG(seed, 78))
	sum := 0.0
	for _, x := range rates {
		sum += x
	}
	for at := rng.ExpFloat64() / sum; at < seconds; at += rng.ExpFloat64() / sum {
		pick, model := rng.Float64()*sum, 0
		for ; model < len(rates)-1 && pick >= rates[model]; model++ {
			pick -= rates[model]
		}
		list = append(list, arrival{at, model})
	}
	return list
}
