package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"medusa/test/stubengine"
)

// The models of a day: those that are well, one that crashes, and one that never wakes. On the good day the last two are well, too.
const (
	wellModels = 6
	crashes    = wellModels
	drowsy     = wellModels + 1

	crashEvery = 20  // requests
	mostApart  = 1.2 // of the p99 of the models that are well, the bad day by the good one
)

// dayFile has eight models of which six fit on two GPUs: they sleep to make room.
func (r *run) dayFile(bad bool) string {
	var out strings.Builder
	out.WriteString("listen: 127.0.0.1:0\ngpus: ['0', '1']\npolicy: {name: mqfq, d: 8}\nretry: 2\nhealth: 1\nhost_memory_gb: 100\nmodels:\n")
	for i := range wellModels + 2 {
		fault := ""
		if bad && i == crashes {
			fault = fmt.Sprintf(", --crash, '%d'", crashEvery)
		}
		if bad && i == drowsy {
			fault = ", --drowsy"
		}
		fmt.Fprintf(&out, "- {name: m%d, memory: 0.3, slots: 4, sleep: 1, host_gb: 1, start_limit: 4, start: 0.3, wake: 0.2, service: 0.2, command: [%q, --listen, '127.0.0.1:{port}', --model, '{name}', --load, 300ms, --wake, 200ms, --service, 200ms%s]}\n",
			i, r.stub(), fault)
	}
	return out.String()
}

// day is a server of one of the two days.
type day struct {
	*server
	name    string
	took    [][]float64 // seconds, by model
	failed  []int       // by model
	mu      sync.Mutex
	pending sync.WaitGroup
}

func (r *run) beginDay(name string, bad bool) (*day, error) {
	d := &day{name: name, took: make([][]float64, wellModels+2), failed: make([]int, wellModels+2)}
	file := filepath.Join(r.work, name+".yaml")
	if err := os.WriteFile(file, []byte(r.dayFile(bad)), 0o600); err != nil {
		return nil, err
	}
	var err error
	d.server, err = r.start(filepath.Join(r.build, "medusa"), "serve", file)
	return d, err
}

func (d *day) ask(model int) {
	d.pending.Go(func() {
		ctx, cancel := within()
		defer cancel()
		began := time.Now()
		_, err := stubengine.Ask(ctx, d.url, fmt.Sprint("m", model), "x", false)
		d.mu.Lock()
		defer d.mu.Unlock()
		if err != nil {
			d.failed[model]++
			return
		}
		d.took[model] = append(d.took[model], time.Since(began).Seconds())
	})
}

// broke counts the engines of a model that have failed.
func (d *day) broke(model int) int {
	return strings.Count(d.output(), fmt.Sprintf("run engine of m%d on GPU", model))
}

// p99 is that of the models that are well. None of their requests may fail.
func (d *day) p99() (float64, error) {
	var all []float64
	for model := range wellModels {
		if d.failed[model] > 0 {
			return 0, fmt.Errorf("%s: %d requests of m%d, which is well, failed", d.name, d.failed[model], model)
		}
		all = append(all, d.took[model]...)
	}
	slices.Sort(all)
	return all[int(math.Ceil(0.99*float64(len(all))))-1], nil
}

// errSaysNothing means that engines started too late on a good day, because of a busy machine, or that none failed on a bad day. Such days are repeated,
// repeats times at most.
var errSaysNothing = errors.New("these days say nothing")

const repeats = 2

// badDay sends the same arrivals to two servers at the same moments, so that a busy machine troubles both alike. With one of them, a model
// crashes and one never wakes. The others' p99 must not suffer.
func (r *run) badDay() (string, error) {
	var ratios []float64
	for n := range r.seeds {
		good, bad, err := r.days(r.seed + uint64(n))
		for repeat := 0; errors.Is(err, errSaysNothing) && repeat < repeats; repeat++ {
			fmt.Printf("bad-day: seed %d: %v, so they are repeated\n", r.seed+uint64(n), err)
			good, bad, err = r.days(r.seed + uint64(n))
		}
		if err != nil {
			return "", fmt.Errorf("seed %d: %w", r.seed+uint64(n), err)
		}
		fmt.Printf("bad-day: seed %d: p99 %.3f s on a good day, %.3f s on a bad one, ratio %.2f\n", r.seed+uint64(n), good, bad, bad/good)
		ratios = append(ratios, bad/good)
	}
	slices.Sort(ratios)
	median := (ratios[(len(ratios)-1)/2] + ratios[len(ratios)/2]) / 2
	if median > mostApart {
		return "", fmt.Errorf("the p99 of models that are well is %.2f times as long on a bad day (most: %g)", median, mostApart)
	}
	return fmt.Sprintf("bad-day=%.2f,%.2f,%.2f", ratios[0], median, ratios[len(ratios)-1]), nil
}

func (r *run) days(seed uint64) (good, bad float64, err error) {
	var days [2]*day
	for i, name := range []string{"good", "bad"} {
		if days[i], err = r.beginDay(name, i == 1); err != nil {
			return 0, 0, err
		}
	}
	defer func() { // without effect on a server that has ended
		for _, d := range days {
			_ = d.cmd.Process.Kill()
		}
	}()
	rates := equal(wellModels+2, 1)
	rates[crashes] = 4
	began := time.Now()
	for _, a := range poisson(seed, rates, r.seconds) {
		time.Sleep(time.Until(began.Add(time.Duration(a.at * float64(time.Second)))))
		for _, d := range days {
			d.ask(a.model)
		}
	}
	var p99 [2]float64
	for i, d := range days {
		d.pending.Wait()
		if p99[i], err = d.p99(); err != nil {
			return 0, 0, err
		}
		// A request whose engine has crashed is tried once more, and may well be answered.
		if isBad, crashed, stuck := i == 1, d.broke(crashes), d.broke(drowsy); (crashed > 0) != isBad || (stuck > 0) != isBad {
			return 0, 0, fmt.Errorf("%s: %d engines of the model that crashes failed, and %d of the one that never wakes: %w", d.name, crashed, stuck, errSaysNothing)
		}
		if err := d.stop(); err != nil {
			return 0, 0, err
		}
	}
	return p99[0], p99[1], nil
}
