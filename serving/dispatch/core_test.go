package dispatch

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"medusa/serving/schedule"
)

// world is a cluster of GPUs. Each GPU runs slots requests, and holds all functions that it ever ran. Engines die, and GPUs are
// lost.
type world struct {
	gpus, slots int
	now         float64
	held        map[[2]int]bool
	running     map[int]ending
	lost        []bool // GPUs
	fetched     []int  // functions
}

type ending struct {
	schedule.Decision
	at float64
}

func newWorld(gpus, slots int) *world {
	return &world{gpus: gpus, slots: slots, held: map[[2]int]bool{}, running: map[int]ending{}, lost: make([]bool, gpus)}
}

func (w *world) GPUs() int { return w.gpus }
func (w *world) InFlight(gpu int) (n int) {
	for _, r := range w.running {
		if r.GPU == gpu {
			n++
		}
	}
	return n
}
func (w *world) Accepts(gpu, _ int) bool      { return w.InFlight(gpu) < w.slots }
func (w *world) Holds(gpu, fn int) bool       { return w.held[[2]int{gpu, fn}] }
func (w *world) Service(fn int) float64       { return 1 + float64(fn) }
func (w *world) Traffic(int) schedule.Traffic { return schedule.Quiet }
func (w *world) Utilization(gpu int) float64  { return float64(w.InFlight(gpu)) / float64(w.slots) }
func (w *world) Start(gpu, fn int) float64 {
	if w.Holds(gpu, fn) {
		return 0
	}
	return 2
}
func (w *world) FinishTime(gpu int) (t float64) {
	for _, r := range w.running {
		if r.GPU == gpu {
			t = max(t, r.at-w.now)
		}
	}
	return t
}
func (w *world) Prefetch(fn int, _ func(int) bool) { w.fetched = append(w.fetched, fn) }
func (w *world) Admit(d schedule.Decision, _ func(int) bool) {
	at := w.now + w.Start(d.GPU, d.Request.Fn) + w.Service(d.Request.Fn)
	w.held[[2]int{d.GPU, d.Request.Fn}] = true
	w.running[d.Request.ID] = ending{d, at}
}

const functions = 5

// draining is the step of a run after which no request arrives.
const draining = -1

// drive plays random arrivals, clients that leave, engines that die and a GPU that is lost through a policy. It fails if a request
// is decided twice, after it left, or for a lost GPU, and if one is never decided.
func drive(t *testing.T, policy string, seed uint64, log *Log) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	w := newWorld(3, 2)
	deadline := slices.Repeat([]float64{10}, functions)
	c, err := New(Config{Policy: policy, Params: schedule.Params{Functions: functions, Deadline: deadline, Seed: seed}, GPUs: w.gpus}, w, log)
	if err != nil {
		t.Fatal(err)
	}
	waiting, arrived, died, left := map[int]schedule.Request{}, map[int]float64{}, 0, 0
	next := func() {
		for {
			d, ok := c.Next(w.now)
			if !ok {
				return
			}
			if _, waits := waiting[d.Request.ID]; !waits || w.lost[d.GPU] || !w.Accepts(d.GPU, d.Request.Fn) {
				t.Fatalf("%s at %g: decision %+v", policy, w.now, d)
			}
			delete(waiting, d.Request.ID)
			w.Admit(d, nil)
		}
	}
	arrive := func(id int) {
		r := schedule.Request{ID: id, Fn: rng.IntN(functions)}
		waiting[id], arrived[id] = r, w.now
		c.Arrive(w.now, r)
		next()
	}
	step := func(id int) {
		w.now += rng.Float64()
		switch r := rng.Float64(); {
		case id == draining: // requests that wait are served
		case r < 0.1 && len(waiting) > 0:
			r := sorted(waiting)[0]
			if !c.Cancel(w.now, r) || c.Cancel(w.now, r) {
				t.Fatalf("%s: request %d does not leave once", policy, r.ID)
			}
			delete(waiting, r.ID)
			left++
		case r < 0.2 && len(w.running) > 0:
			id := sorted(w.running)[0].Request.ID
			delete(w.running, id)
			if !c.Lost(w.now, id) || c.Lost(w.now, id) || c.Done(w.now, id, 1, 1, 0) {
				t.Fatalf("%s: request %d is not lost once", policy, id)
			}
			died++
		}
		for _, r := range sorted(w.running) {
			if r.at <= w.now {
				delete(w.running, r.Request.ID)
				if !c.Done(w.now, r.Request.ID, w.Service(r.Request.Fn), w.now-arrived[r.Request.ID], float64(id%3)) {
					t.Fatalf("%s: request %d did not run", policy, r.Request.ID)
				}
			}
		}
		c.Active(w.now, rng.IntN(functions))
		next()
		if id == 100 {
			w.lost[1] = true
			for _, r := range c.LoseGPU(w.now, 1) {
				if w.running[r.ID].GPU != 1 {
					t.Fatalf("%s: request %d did not run on GPU 1", policy, r.ID)
				}
				delete(w.running, r.ID)
			}
			next()
		}
	}
	for id := range 200 {
		arrive(id)
		step(id)
	}
	for i := 0; len(waiting)+len(w.running) > 0; i++ {
		if i == 10_000 {
			t.Fatalf("%s: %d requests wait forever, %d run", policy, len(waiting), len(w.running))
		}
		step(draining)
	}
	if c.Queued() != 0 || c.Running() != 0 || died < 5 || left < 2 {
		t.Errorf("%s: %d queued, %d running at the end; %d died, %d left", policy, c.Queued(), c.Running(), died, left)
	}
}

func sorted[T any](m map[int]T) []T {
	ids := make([]int, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	out := make([]T, len(ids))
	for i, id := range ids {
		out[i] = m[id]
	}
	return out
}

// If engines die or a GPU is lost, only their own requests are lost, in every policy.
func TestLosses(t *testing.T) {
	for _, policy := range schedule.Names() {
		t.Run(policy, func(t *testing.T) {
			for seed := range uint64(10) {
				drive(t, policy, seed, nil)
			}
		})
	}
}

// The log of a run leads to the same decisions again. If one decision in a log is changed, the log is refused at its line.
func TestReplay(t *testing.T) {
	for _, policy := range schedule.Names() {
		t.Run(policy, func(t *testing.T) {
			var data bytes.Buffer
			log := NewLog(&data)
			drive(t, policy, 1, log)
			drive(t, policy, 2, log)
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := Replay(bytes.NewReader(data.Bytes()))
			if err != nil || got.Runs != 2 || got.Requests != 400 || got.Decisions < 300 {
				t.Fatalf("replayed %+v, %v", got, err)
			}
			lines := strings.SplitAfter(data.String(), "\n")
			changed := 0
			for i, text := range lines {
				k := strings.Index(text, `"gpu":`)
				if !strings.Contains(text, `"decided"`) || k < 0 || i%31 != 0 {
					continue
				}
				other := slices.Clone(lines)
				other[i] = text[:k+6] + string('0'+(text[k+6]-'0'+1)%3) + text[k+7:]
				_, err := Replay(strings.NewReader(strings.Join(other, "")))
				var differs *DecisionError
				if !errors.As(err, &differs) || differs.Line != i+1 {
					t.Fatalf("line %d says another GPU: %v", i+1, err)
				}
				changed++
			}
			if changed < 5 {
				t.Errorf("%d decisions were changed", changed)
			}
		})
	}
}

func TestReplayRefuses(t *testing.T) {
	const head = `{"medusa_decisions":2,"run":{"policy":"fcfs","params":{"functions":2,"topology":{}},"gpus":1},"t":0}` + "\n"
	for _, tt := range []struct{ name, log, want string }{
		{"empty", "", "line 1: unexpected EOF"},
		{"no run", `{"t":1,"next":{}}`, "line 1: no run begins here"},
		{"version", strings.Replace(head, ":2", ":9", 1), "line 1: format 9, this program reads 2"},
		{"older version", strings.Replace(head, ":2", ":1", 1), "line 1: format 1, this program reads 2"},
		{"models", strings.Replace(head, `"gpus":1`, `"gpus":1,"models":[{}]`, 1), "line 1: 1 models of 2 functions"},
		{"engine", head + `{"t":2,"engine":{"gpu":1,"fn":0,"state":"awake"}}`, "line 2: an engine of function 0 on GPU 1"},
		{"policy", strings.Replace(head, "fcfs", "best", 1), "line 1: choose policy"},
		{"GPUs", strings.Replace(head, `"gpus":1`, `"gpus":0`, 1), "line 1: configure policy fcfs: needs at least one GPU"},
		{"topology", strings.Replace(head, `"topology":{}`, `"topology":{"nvlink":[[1,2]]}`, 1), "line 1: configure policy fcfs: a row of the NVLink"},
		{"no JSON", head + "{\n", "line 2: "},
		{"unknown field", head + `{"t":1,"other":1}`, "line 2: "},
		{"no call", head + `{"t":1}`, "line 2: no call"},
		{"time", head + `{"t":2,"arrive":{"id":1,"fn":0}}` + "\n" + `{"t":1,"arrive":{"id":2,"fn":0}}`, "line 3: time 1 after 2"},
		{"function", head + `{"t":2,"arrive":{"id":1,"fn":2}}`, "line 2: request 1 of function 2 arrives"},
		{"twice", head + `{"t":2,"arrive":{"id":1,"fn":1}}` + "\n" + `{"t":2,"arrive":{"id":1,"fn":1}}`, "line 3: request 1 of function 1 arrives"},
		{"not running", head + `{"t":2,"done":{"id":1,"fn":1,"gpu":0,"service_s":1,"latency_s":1}}`, "line 2: request 1 of function 1 does not run on GPU 0"},
		{"GPU", head + `{"t":2,"gone":1}`, "line 2: GPU 1 of 1 is lost"},
		{"answer", head + `{"t":2,"next":{"seen":["maybe 0 0 1"]}}`, `line 2: answer "maybe 0 0 1"`},
		{"missing answer", head + `{"t":2,"arrive":{"id":1,"fn":1}}` + "\n" + `{"t":2,"next":{}}`, "line 3: the log has no answer to accepts 0 1"},
		{"no decision", head + `{"t":2,"arrive":{"id":1,"fn":1}}` + "\n" + `{"t":2,"next":{"seen":["accepts 0 1 1","holds 0 1 0"]}}`,
			"line 3: the log has no request, the policy decides request 1 of function 1 on GPU 0"},
		{"still waiting", head + `{"t":2,"arrive":{"id":1,"fn":1}}` + "\n" + `{"t":2,"cancel":{"id":1,"fn":1,"waiting":false}}`, "line 3: the log has request 1 waiting: false"},
	} {
		if _, err := Replay(strings.NewReader(tt.log)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// failing is a disk that is full after some bytes.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

// If a log cannot be written, decisions go on, and its owner learns of the error.
func TestLogFails(t *testing.T) {
	log := NewLog(&failing{10_000})
	drive(t, "mqfq", 1, log)
	if err := log.Close(); err == nil || err.Error() != "no space left" {
		t.Errorf("closed: %v", err)
	}
}

func FuzzReplay(f *testing.F) {
	for _, policy := range []string{"mqfq", "lalbo3", "torpor"} {
		var data bytes.Buffer
		log := NewLog(&data)
		c, err := New(Config{Policy: policy, Params: schedule.Params{Functions: 2, Deadline: []float64{1, 1}}, GPUs: 2}, newWorld(2, 1), log)
		if err != nil {
			f.Fatal(err)
		}
		c.Arrive(1, schedule.Request{ID: 1, Fn: 1})
		c.Next(1)
		c.Active(1, 1)
		c.LoseGPU(2, 0)
		c.Done(3, 1, 1, 2, 0)
		if err := log.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(data.Bytes())
	}
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = Replay(bytes.NewReader(data)) })
}
