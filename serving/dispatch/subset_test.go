package dispatch

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"medusa/serving/schedule"
)

// open is a view in which each GPU takes a number of requests, and holds every function.
type open struct {
	mu    sync.Mutex
	slots int
	in    []int
}

func (o *open) GPUs() int               { return len(o.in) }
func (o *open) Accepts(gpu, _ int) bool { o.mu.Lock(); defer o.mu.Unlock(); return o.in[gpu] < o.slots }
func (o *open) Holds(int, int) bool     { return true }
func (o *open) InFlight(gpu int) int    { o.mu.Lock(); defer o.mu.Unlock(); return o.in[gpu] }
func (o *open) Start(int, int) float64  { return 0 }
func (o *open) Service(int) float64     { return 1 }
func (o *open) FinishTime(gpu int) float64 {
	return float64(o.InFlight(gpu))
}
func (o *open) Traffic(int) schedule.Traffic { return schedule.Quiet }
func (o *open) Utilization(int) float64      { return 0 }
func (o *open) Admit(d schedule.Decision, _ func(int) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.in[d.GPU]++
}
func (o *open) Prefetch(int, func(int) bool) {}
func (o *open) end(gpu int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.in[gpu]--
}

// Under each policy, requests that may run on some GPUs only run there, beside others that may run on all.
func TestRequestsThatMayNotRunEverywhere(t *testing.T) {
	for _, policy := range []string{"mqfq", "fcfs", "lb", "torpor", "lalbo3"} {
		synctest.Test(t, func(t *testing.T) {
			o := &open{slots: 2, in: make([]int, 4)}
			start := time.Now()
			q, err := NewQueue(Config{Policy: policy, GPUs: 4, Params: schedule.Params{Functions: 2, Deadline: []float64{9, 9}}}, o, func() float64 { return time.Since(start).Seconds() }, nil)
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for i := range 60 {
				a := Ask{Fn: i % 2}
				switch i % 3 {
				case 0:
					a.Only = []int{3}
				case 1:
					a.Only = []int{1, 2}
				}
				wg.Go(func() {
					turn, err := q.Wait(context.Background(), a)
					if err != nil {
						t.Error(err)
						return
					}
					if a.Only != nil && !slices.Contains(a.Only, turn.GPU) {
						t.Errorf("%s: a request for GPUs %v runs on %d", policy, a.Only, turn.GPU)
					}
					time.Sleep(time.Second)
					o.end(turn.GPU)
					turn.Done(1)
				})
			}
			wg.Wait()
			if waiting, running := q.Queued(); waiting+running != 0 {
				t.Errorf("%s: %d wait, %d run", policy, waiting, running)
			}
		})
	}
}

// Under each policy, a GPU that is back gets requests again, and the requests that it had are lost once.
func TestReturnGPU(t *testing.T) {
	for _, policy := range schedule.Names() {
		synctest.Test(t, func(t *testing.T) {
			o := &open{slots: 1, in: make([]int, 1)}
			start := time.Now()
			q, err := NewQueue(Config{Policy: policy, GPUs: 1, Params: schedule.Params{Functions: 1, Deadline: []float64{9}}}, o, func() float64 { return time.Since(start).Seconds() }, nil)
			if err != nil {
				t.Fatal(err)
			}
			first, err := q.Wait(context.Background(), Ask{})
			if err != nil {
				t.Fatal(err)
			}
			q.LoseGPU(0)
			o.end(0)
			first.Done(1)
			got := make(chan *Turn)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				turn, _ := q.Wait(ctx, Ask{})
				got <- turn
			}()
			synctest.Wait()
			if waiting, running := q.Queued(); waiting != 1 || running != 0 {
				t.Fatalf("%s: without a GPU %d wait, %d run", policy, waiting, running)
			}
			q.ReturnGPU(0)
			turn := <-got
			if turn == nil {
				t.Fatalf("%s: a GPU that is back gets nothing", policy)
			}
			turn.Done(1)
			if waiting, running := q.Queued(); waiting+running != 0 {
				t.Errorf("%s: %d wait, %d run", policy, waiting, running)
			}
		})
	}
}
