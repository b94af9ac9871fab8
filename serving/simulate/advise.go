package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"medusa/serving/dispatch"
)

// Advice is the advice on models from a server's log. Times are in seconds.
type Advice struct {
	Requests int     `json:"requests"`
	Dropped  int     `json:"dropped"` // of models that the last configuration lacks
	Seconds  float64 `json:"seconds"` // from the first to the last request
	Windows  int     `json:"windows"`
	Window   float64 `json:"window_s"`

	Logged    Waited `json:"logged"`    // by the server's log
	Simulated Waited `json:"simulated"` // by the simulator
	Follows   bool   `json:"follows"`   // the two are near enough for advice

	Models   []ModelSeen `json:"models"`
	Changes  []Change    `json:"changes"`
	Together *Change     `json:"together,omitempty"` // all advised changes at once
}

// Waited is the time that requests waited for their engines, starts included, and the number of cold starts.
type Waited struct {
	Seconds float64 `json:"waiting_s"`
	Cold    int     `json:"cold_starts"`
}

// ModelSeen is the evidence of a model.
type ModelSeen struct {
	Name     string  `json:"name"`
	Requests int     `json:"requests"`
	Starts   int     `json:"cold_starts"`
	Start    float64 `json:"start_s"` // mean; 0 if none was seen
	Wakes    int     `json:"wakes"`
	Failures int     `json:"failures"`
	Waiting  float64 `json:"waiting_s"`
	Memory   float64 `json:"memory"` // share of a GPU
}

// Change is a way to run a model that the configuration has or lacks.
type Change struct {
	Model   string   `json:"model"`
	Way     string   `json:"way"`     // awake, asleep or baked
	Present bool     `json:"present"` // the configuration has it; the replay then runs without it
	Judged  bool     `json:"judged"`  // Saves, Without and With are known
	Saves   Estimate `json:"saves_s"` // seconds of waiting of all models an hour
	Without int      `json:"cold_starts_without"`
	With    int      `json:"cold_starts_with"`
	Cost    string   `json:"cost"`
	Advice  string   `json:"advice"`
	Advised bool     `json:"advised"` // the advice is to change it
	models  []dispatch.Model
}

// A window of less than two starts is not independent of the next one. Fewer than five windows give no useful interval.
const (
	mostWindows  = 20
	leastWindows = 5
	startsInOne  = 2
)

// Advise replays the requests of a server's log under changed configurations. file names profiles, or is empty. The differences between two
// replays of the same requests are summed by window of time, and have the 95 % interval of Student's t over windows. A change is advised if
// even the lower end of its interval saves more than least seconds an hour.
func Advise(record *dispatch.Record, file string, least float64) (*Advice, error) {
	if !(least >= 0) {
		return nil, errors.New("plan from decision log: the least saving must not be negative")
	}
	l := &live{record: record, least: least}
	if file != "" {
		p, err := loadProfiles(file)
		if err != nil {
			return nil, err
		}
		l.profiles = p.Models
	}
	out := l.look()
	if err := l.divide(out); err != nil {
		return nil, err
	}
	base, err := l.run(record.Models)
	if err != nil {
		return nil, err
	}
	out.Simulated = Waited{base.served, sum(base.starts)}
	apart := math.Abs(out.Simulated.Seconds - out.Logged.Seconds)
	// mutant: a simulation that does not follow its log
	out.Follows = apart <= math.Max(out.Simulated.Seconds, out.Logged.Seconds)/2 || apart <= 0.1*float64(out.Requests)
	if !out.Follows {
		return out, nil
	}
	for fn, m := range record.Models {
		if m.Leaving || out.Models[fn].Requests == 0 {
			continue
		}
		for _, way := range []string{"awake", "asleep", "baked"} {
			c, err := l.change(record.Models, fn, way, base)
			if err != nil {
				return nil, err
			}
			out.Changes = append(out.Changes, c)
		}
	}
	return out, l.join(out, base)
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}

// look collects the evidence in the log itself.
func (l *live) look() *Advice {
	out := &Advice{}
	place := map[string]int{}
	for fn, m := range l.record.Models {
		if !m.Leaving {
			place[m.Name] = fn
		}
		life := l.life(m.Name)
		seen := ModelSeen{Name: m.Name, Starts: life.Starts, Wakes: life.Wakes, Failures: life.Failures, Memory: m.Memory}
		if len(life.StartSeconds) > 0 {
			seen.Start = estimate(life.StartSeconds).Mean
		}
		out.Models = append(out.Models, seen)
		out.Logged.Cold += life.Starts
	}
	services := make([][]float64, len(out.Models))
	for _, a := range l.record.Asked {
		fn, ok := place[a.Model]
		if !ok {
			fn = -1
			out.Dropped++
		}
		l.fns = append(l.fns, fn)
		if !ok {
			continue
		}
		out.Requests++
		out.Models[fn].Requests++
		if a.Served {
			out.Models[fn].Waiting += a.Latency - a.Service
			out.Logged.Seconds += a.Latency - a.Service
			services[fn] = append(services[fn], a.Service)
		}
	}
	for fn, m := range l.record.Models {
		l.services = append(l.services, m.Service)
		if len(services[fn]) > 0 {
			l.services[fn] = estimate(services[fn]).Mean
		}
	}
	return out
}

// divide cuts the log into windows.
func (l *live) divide(out *Advice) error {
	longest := 0.0
	for _, m := range out.Models {
		longest = math.Max(longest, m.Start)
	}
	l.from = l.record.Asked[0].At
	out.Seconds = l.record.Asked[len(l.record.Asked)-1].At - l.from
	l.windows = mostWindows
	if longest > 0 {
		l.windows = int(math.Min(mostWindows, out.Seconds/(startsInOne*longest)))
	}
	if l.windows < leastWindows || out.Seconds == 0 {
		return fmt.Errorf("plan from decision log: its requests span %.1f s, which are not %d windows of %.1f s (twice the longest start): no interval can be given",
			out.Seconds, leastWindows, startsInOne*longest)
	}
	l.window = out.Seconds / float64(l.windows)
	out.Windows, out.Window = l.windows, l.window
	return nil
}

// change replays the log with one model run in another way.
func (l *live) change(models []dispatch.Model, fn int, way string, base *replayed) (Change, error) {
	models = slices.Clone(models)
	m := &models[fn]
	c := Change{Model: m.Name, Way: way, Without: sum(base.starts), With: sum(base.starts), models: models}
	unknown := ""
	switch way {
	case "awake":
		c.Present, m.Keep = m.Keep, !m.Keep
		c.Cost = fmt.Sprintf("%g of a GPU, whoever else asks", m.Memory)
		if err := dispatch.CheckKept(models, l.record.GPUs); err != nil {
			unknown = err.Error()
		}
	case "asleep":
		if c.Present = m.Sleep > 0; c.Present {
			c.Cost = l.memory(m)
			m.Sleep = 0
		} else {
			m.Sleep = 1
			c.Cost = l.memory(m)
		}
		if _, known := l.wake(m); !known {
			unknown = "no wake-up is logged, and no host_s in profiles"
		}
	case "baked":
		c.Present, m.Restored = m.Restored, !m.Restored
		c.Cost = "an artifact"
		if size := l.profiles[m.Name].ArtifactGB; size > 0 {
			c.Cost += fmt.Sprintf(" of %g GB", size)
		}
		if _, known := l.saved(m.Name); !known {
			unknown = "no native and restored start in profiles"
		}
	}
	if len(l.life(m.Name).StartSeconds) == 0 {
		unknown = "no start is logged"
	}
	if unknown != "" {
		c.Advice = "not judged: " + unknown
		return c, nil
	}
	with, err := l.run(models)
	if err != nil {
		return c, err
	}
	c.compare(l, base, with)
	return c, nil
}

// memory describes the memory that a sleeper takes.
func (l *live) memory(m *dispatch.Model) string {
	switch host := l.host(m); {
	case m.Sleep == 2:
		return "what it keeps on the GPU"
	case host > 0:
		return fmt.Sprintf("%g GB of host memory", host)
	}
	return "host memory, host_gb is unknown"
}

// compare computes the saving of one replay against another, and the advice. If the change takes a way from a model, the saving is the value of
// that way.
func (c *Change) compare(l *live, base, changed *replayed) {
	saved := make([]float64, l.windows)
	for i := range saved {
		saved[i] = (base.waiting[i] - changed.waiting[i]) * 3600 / l.window
	}
	gain := estimate(saved)
	c.Judged, c.Saves, c.With = true, gain, sum(changed.starts)
	if c.Present {
		c.Saves.Mean, c.Without, c.With = -gain.Mean, c.With, c.Without
	}
	const rounding = 1e-6
	switch {
	case changed.never > base.never:
		c.Advice = fmt.Sprintf("no: %d requests could never run", changed.never-base.never)
	// mutant: intervals with 0
	case math.Abs(gain.Mean) <= gain.Half+rounding:
		c.Advice = "no difference shown"
	case c.Saves.Mean > 0 && c.Present:
		c.Advice = "leave it so"
	// mutant: savings that are too small
	case gain.Mean > 0 && gain.Mean-gain.Half <= l.least:
		c.Advice = fmt.Sprintf("too little: not more than %g s an hour for sure", l.least)
	case gain.Mean > 0:
		c.Advised = true
	default:
		c.Advice = "no: it costs time"
	}
}

// join adds the advised changes in order of their gain. It keeps a change if it still gains on top of those before it.
func (l *live) join(out *Advice, base *replayed) error {
	gain := func(c *Change) float64 { return math.Abs(c.Saves.Mean) }
	var list []*Change
	for i := range out.Changes {
		if out.Changes[i].Advised {
			list = append(list, &out.Changes[i])
		}
	}
	slices.SortStableFunc(list, func(a, b *Change) int { return cmp.Compare(gain(b), gain(a)) })
	models, last := l.record.Models, base
	for _, c := range list {
		fn := slices.IndexFunc(models, func(m dispatch.Model) bool { return m.Name == c.Model && !m.Leaving })
		more, err := l.change(models, fn, c.Way, last)
		if err != nil {
			return err
		}
		if c.Advised = more.Advised; !c.Advised {
			c.Advice = "not beside the others: " + more.Advice
			continue
		}
		c.Advice = map[string]string{"awake": "keep: true", "asleep": "sleep: 1", "baked": "artifact"}[c.Way]
		if c.Present {
			c.Advice = "without " + c.Advice
		}
		models = more.models
		if last, err = l.run(models); err != nil {
			return err
		}
	}
	if last != base {
		all := Change{Way: "all", Without: sum(base.starts), With: sum(last.starts)}
		all.compare(l, base, last)
		out.Together = &all
	}
	return nil
}
