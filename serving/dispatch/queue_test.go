package dispatch

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"medusa/serving/schedule"
)

// end frees a request's place, before its turn ends.
func (q *Queue) end(id int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch m := q.machines.(type) {
	case *world:
		delete(m.running, id)
	case *fickle:
		delete(m.running, id)
	}
}

// Many clients at once: each gets one turn or the error of its context. Engines die. No request is left at the end.
func TestQueue(t *testing.T) {
	for _, policy := range []string{"mqfq", "torpor", "lalbo3", "fcfs", "batch", "rro3"} {
		t.Run(policy, func(t *testing.T) {
			machines := newWorld(2, 3)
			begin := time.Now()
			params := schedule.Params{Functions: 3, Deadline: []float64{1, 1, 1}}
			q, err := NewQueue(Config{Policy: policy, Params: params, GPUs: 2}, machines, func() float64 { return time.Since(begin).Seconds() }, nil)
			if err != nil {
				t.Fatal(err)
			}
			var clients sync.WaitGroup
			var mu sync.Mutex
			turns, left := 0, 0
			for i := range 400 {
				clients.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(i), 1))
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a turn that is lost would keep others waiting
					defer cancel()
					if i%5 == 0 {
						time.AfterFunc(time.Duration(rng.IntN(2000))*time.Microsecond, cancel)
					}
					turn, err := q.Wait(ctx, Ask{Fn: rng.IntN(3)})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						left++
						if i%5 != 0 || !errors.Is(err, context.Canceled) {
							t.Errorf("client %d: %v", i, err)
						}
						return
					}
					turns++
					q.end(turn.Request.ID)
					if i%7 == 0 {
						turn.Lost()
					}
					turn.Done(0.001) // after Lost it has no effect
				})
			}
			clients.Wait()
			if waiting, running := q.Queued(); waiting != 0 || running != 0 || turns+left != 400 || len(q.tickets()) != 0 {
				t.Errorf("%d wait, %d run; %d turns and %d clients that left", waiting, running, turns, left)
			}
		})
	}
}

// A client that leaves while it waits is never decided. If one GPU is lost, its requests go to the other.
func TestQueueLeaves(t *testing.T) {
	machines := newWorld(2, 1)
	now := 0.0
	q, err := NewQueue(Config{Policy: "lalb", Params: schedule.Params{Functions: 1}, GPUs: 2}, machines, func() float64 { return now }, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := q.Wait(t.Context(), Ask{Fn: 0})
	if err != nil {
		t.Fatal(err)
	}
	q.end(first.Request.ID)
	machines.lost[first.GPU] = true
	q.LoseGPU(first.GPU)
	now = -1 // a clock that goes back
	second, err := q.Wait(t.Context(), Ask{Fn: 0})
	if err != nil || second.GPU == first.GPU {
		t.Fatalf("%+v, %v", second, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.Wait(ctx, Ask{Fn: 0}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	q.end(second.Request.ID)
	second.Done(1)
	if waiting, running := q.Queued(); waiting+running != 0 {
		t.Errorf("%d wait, %d run", waiting, running)
	}
}

// fickle are machines that change all the time.
type fickle struct {
	*world
	asked int
}

func (f *fickle) Accepts(int, int) bool { f.asked++; return f.asked%2 == 1 }
func (f *fickle) Holds(int, int) bool   { f.asked++; return f.asked%3 == 1 }

// If machines change within a decision, a policy gets one answer. It does not fail, and the log replays.
func TestOneAnswerADecision(t *testing.T) {
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("a policy fails: %v", r)
		}
	}()
	for _, policy := range []string{"mqfq", "torpor", "lalbo3", "lb"} {
		var out bytes.Buffer
		log := NewLog(&out)
		q, err := NewQueue(Config{Policy: policy, Params: schedule.Params{Functions: 3, Deadline: []float64{1, 1, 1}}, GPUs: 2},
			&fickle{world: newWorld(2, 3)}, func() float64 { return 0 }, log)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if turn, err := q.Wait(ctx, Ask{Fn: i % 3}); err == nil {
				q.end(turn.Request.ID)
				turn.Done(0.1)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if r, err := Replay(&out); err != nil || r.Decisions == 0 {
			t.Errorf("%s: %+v, %v", policy, r, err)
		}
	}
}

// A new configuration takes over the waiting requests in the order of their arrival, and leaves running ones alone. The log replays,
// with a run for each configuration.
func TestReconfigure(t *testing.T) {
	var out bytes.Buffer
	log := NewLog(&out)
	machines := newWorld(2, 1)
	machines.lost[1] = true
	config := func(policy string) Config {
		return Config{Policy: policy, Params: schedule.Params{Functions: 2, Deadline: []float64{1, 1}}, GPUs: 2}
	}
	q, err := NewQueue(config("fcfs"), machines, func() float64 { return 0 }, log)
	if err != nil {
		t.Fatal(err)
	}
	reconfigure := func(policy string) {
		t.Helper()
		if err := q.Reconfigure(config(policy), []int{1}, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	reconfigure("fcfs") // without GPU 1
	first, err := q.Wait(t.Context(), Ask{Fn: 0})
	if err != nil {
		t.Fatal(err)
	}
	turns := make(chan *Turn)
	for n := range 3 {
		go func() {
			turn, err := q.Wait(t.Context(), Ask{Fn: 1})
			if err != nil {
				t.Error(err)
			}
			turns <- turn
		}()
		for waiting := 0; waiting != n+1; waiting, _ = q.Queued() {
			time.Sleep(time.Millisecond)
		}
	}
	for _, policy := range []string{"mqfq", "torpor", "lalbo3"} {
		reconfigure(policy)
	}
	if err := q.Reconfigure(config("best"), nil, func() { t.Error("the machines change") }); err == nil {
		t.Error("an unknown policy is accepted")
	}
	q.end(first.Request.ID)
	first.Done(1)
	for id := 1; id <= 3; id++ {
		select {
		case turn := <-turns:
			if turn.Request.ID != id || turn.GPU != 0 {
				t.Errorf("request %d on GPU %d has the turn of request %d", turn.Request.ID, turn.GPU, id)
			}
			q.end(turn.Request.ID)
			turn.Done(1)
		case <-time.After(20 * time.Second):
			t.Fatalf("request %d waits for ever, %d in the core", id, q.core.Queued())
		}
	}
	if waiting, running := q.Queued(); waiting+running != 0 {
		t.Errorf("%d wait, %d run", waiting, running)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Replay(&out); err != nil || r.Runs != 5 || r.Decisions != 4 {
		t.Errorf("%+v, %v", r, err)
	}
}

// paramsFor are parameters for functions without deadlines.
func paramsFor(functions int) schedule.Params { return schedule.Params{Functions: functions} }

// Hints of a policy that are not used take no memory.
func TestHintsAreForgotten(t *testing.T) {
	now := 0.0
	q, err := NewQueue(Config{Policy: "mqfq", Params: paramsFor(1), GPUs: 1}, newWorld(1, 1), func() float64 { return now }, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		now++
		if i%10 == 0 {
			now += 1e6 // the function's queue is inactive by then
		}
		turn, err := q.Wait(t.Context(), Ask{})
		if err != nil {
			t.Fatal(err)
		}
		q.end(turn.Request.ID)
		turn.Done(1)
	}
	if n := len(q.core.Woken()); n > 1 {
		t.Errorf("%d hints are kept", n)
	}
}

// If a function's request waits for a place, the function is named once, so that its memory can be fetched meanwhile.
func TestPrefetch(t *testing.T) {
	machines := newWorld(1, 1)
	q, err := NewQueue(Config{Policy: "mqfq", Params: schedule.Params{Functions: 2, D: 1}, GPUs: 1}, machines, func() float64 { return 0 }, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := q.Wait(t.Context(), Ask{Fn: 0})
	if err != nil {
		t.Fatal(err)
	}
	machines.fetched = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it waits, and leaves
	if _, err := q.Wait(ctx, Ask{Fn: 1}); err == nil {
		t.Fatal("two requests have one place")
	}
	if !slices.Equal(machines.fetched, []int{1}) {
		t.Errorf("functions %v are to be fetched", machines.fetched)
	}
	q.end(first.Request.ID)
	first.Done(1)
}
