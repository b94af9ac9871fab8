package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
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

// Times of stub engines in seconds. They are long, so that a machine that is busy otherwise adds little. The starts stand in the ratio of Medusa's loading
// phases: 42.5 % less.
const (
	nativeStart   = 2.0
	restoredStart = nativeStart * (1 - 0.425)
	wakeTime      = 0.2
	answerTime    = 0.2
)

// bedsAtOnce are measured at the same time. Engines that wait use no processor.
const bedsAtOnce = 6

// claims measures the papers' claims live, with stub engines, and writes a page with plots.
func (r *run) claims() (string, error) {
	list := []*claim{r.fairnessClaim(), r.deadlineClaim(), r.localityClaim(), r.startClaim()}
	var page strings.Builder
	fmt.Fprintf(&page, `# The papers' claims, live

`+"`make claims-serve SEEDS=%d SECONDS=%g`"+` runs `+"`medusa serve`"+` with stub engines, whose starts and answers take given times and use no processor or GPU. Each model is asked once before the arrivals that count. Values are
means over %[1]d seeds of arrivals, with 95 %% intervals (Student's t). %[3]d processors, load average %[4]s at the start. No GPU was used. The papers' figures come from other models and machines:
orders can be compared, not sizes. Loads were chosen, by the simulator and by shorter runs with some of these seeds, so that the orders can show.

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

// cell is the setting of a value: a series in a row.
type cell struct {
	bed
	rates []float64 // requests a second, by model
	value func(outcome) float64
}

// measure lets the series of a row have the same arrivals at the same time, so that a busy machine troubles all alike.
func (c *claim) measure(r *run) error {
	for s := range c.series {
		c.series[s].values = make([][]float64, len(c.rows))
		for row := range c.rows {
			c.series[s].values[row] = make([]float64, r.seeds)
		}
	}
	var failed atomic.Pointer[error]
	each(r.seeds*len(c.rows)*len(c.series), bedsAtOnce, func(i int) {
		s, row, n := i%len(c.series), i/len(c.series)%len(c.rows), i/len(c.series)/len(c.rows)
		x := c.cells[s][row]
		o, err := r.live(fmt.Sprint(c.file, i), x.bed, poisson(r.seed+uint64(n), x.rates, r.seconds))
		if err != nil {
			err = fmt.Errorf("%s, %s: %w", c.series[s].name, c.rows[row], err)
			failed.CompareAndSwap(nil, &err)
			return
		}
		c.series[s].values[row][n] = x.value(o)
	})
	if err := failed.Load(); err != nil {
		return *err
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

// skewed are rates with a sum, the n-th in proportion to 1/n.
func skewed(n int, sum float64) []float64 {
	list, all := make([]float64, n), 0.0
	for i := range list {
		list[i] = 1 / float64(i+1)
		all += list[i]
	}
	for i := range list {
		list[i] *= sum / all
	}
	return list
}

func latency(o outcome) float64 { return o.Latency }
func inTime(o outcome) float64  { return o.Deadline }
func others(o outcome) float64  { return o.Others }

// fairnessClaim has more models than fit, and a model that sends more than it can get beside others.
func (r *run) fairnessClaim() *claim {
	c := &claim{file: "serving-fairness", title: "MQFQ-Sticky and FCFS", unit: "s",
		text: fmt.Sprintf("MQFQ: low latency if models do not fit, and a fair share beside a model that sends too much. Two GPUs hold four models; an answer takes %g s, a start %g s. `not all fit`: eight models get 6 requests a second, the n-th of them in proportion to 1/n; those that do not fit sleep in host memory and wake in 1 s; mean latency. `beside a flood`: one model of five gets 12 requests a second, of which its two engines can answer 10; mean latency of the four others, which get 0.5 each.", answerTime, nativeStart),
		rows: []string{"not all fit", "beside a flood"}, series: []series{{name: "mqfq"}, {name: "fcfs"}}}
	for _, s := range c.series {
		b := bed{policy: s.name, gpus: 2, services: equal(8, answerTime), memory: 0.5, load: nativeStart, deadline: 3, warm: true}
		swapped := b
		swapped.sleep, swapped.wake = 1, 1
		flood := b
		flood.services = equal(5, answerTime)
		c.cells = append(c.cells, []cell{{swapped, skewed(8, 6), latency}, {flood, []float64{12, 0.5, 0.5, 0.5, 0.5}, others}})
	}
	return c
}

// deadlineClaim has more and more models on a GPU.
func (r *run) deadlineClaim() *claim {
	c := &claim{file: "serving-deadline", title: "Requests in time as models per GPU grow", unit: "share in time", high: true,
		text: fmt.Sprintf("Torpor: models swapped from host memory meet their deadlines with many more models on a GPU than if each has to start. One GPU holds two models awake; waking takes %g s, a start %g s, an answer %g s; each model gets 0.2 requests a second, with a deadline of 1.5 s.", wakeTime, nativeStart, answerTime),
		rows: []string{"4 models", "6 models", "8 models"}, series: []series{{name: "torpor"}, {name: "fcfs, starts"}}}
	for i := range c.series {
		var row []cell
		for _, n := range []int{4, 6, 8} {
			b := bed{policy: "torpor", gpus: 1, services: equal(n, answerTime), memory: 0.45, load: nativeStart, wake: wakeTime, sleep: 1, deadline: 1.5, warm: true}
			if i == 1 {
				b.policy, b.sleep = "fcfs", 0
			}
			row = append(row, cell{b, equal(n, 0.2), inTime})
		}
		c.cells = append(c.cells, row)
	}
	return c
}

// localityClaim has models of which not all fit.
func (r *run) localityClaim() *claim {
	c := &claim{file: "serving-locality", title: "LALBO3 and LB", unit: "s",
		text: fmt.Sprintf("The thesis: a scheduler that knows which GPU holds a model has a far lower latency than load balancing alone. Two GPUs hold four models; models get 0.3 requests a second each; an answer takes %g s, a start %g s. Values are mean latencies.", answerTime, nativeStart),
		rows: []string{"4 models", "6 models", "8 models"}, series: []series{{name: "lalbo3"}, {name: "lb"}}}
	for _, s := range c.series {
		var row []cell
		for _, n := range []int{4, 6, 8} {
			row = append(row, cell{bed{policy: s.name, gpus: 2, services: equal(n, answerTime), memory: 0.5, load: nativeStart, deadline: 3, warm: true}, equal(n, 0.3), latency})
		}
		c.cells = append(c.cells, row)
	}
	return c
}

// startClaim compares native starts with starts that are as much shorter as Medusa's.
func (r *run) startClaim() *claim {
	c := &claim{file: "serving-starts", title: "Restored and native starts", unit: "s",
		text: fmt.Sprintf("Medusa: restored starts are 42.5 %% shorter (the paper's loading phase). A stub's start takes %g s natively, %g s restored. Two GPUs hold four of six models, which get 0.3 requests a second each. Values are mean latencies.", nativeStart, restoredStart),
		rows: policies, series: []series{{name: "restored"}, {name: "native"}}}
	for _, start := range []float64{restoredStart, nativeStart} {
		var row []cell
		for _, policy := range policies {
			row = append(row, cell{bed{policy: policy, gpus: 2, services: equal(6, answerTime), memory: 0.5, load: start, deadline: 3, warm: true}, equal(6, 0.3), latency})
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
