package main

import (
	"os"
	"runtime"

	"medusa/internal/cuda"
)

// allocateByThreads makes the weights on two threads, in the order that schedule gives ("21211": the second thread's first
// step, then the first's, ...). Each thread's own order is always the same: the first makes a spare buffer and two weights
// (with twins: only these), the second the other two.
func (z *zoo) allocateByThreads(schedule string, twins bool) error {
	ctx, err := cuda.CurrentContext()
	if err != nil {
		return err
	}
	var spare cuda.DevicePtr
	steps := map[rune][]func() error{}
	add := func(thread rune, p *cuda.DevicePtr, bytes uint64) {
		steps[thread] = append(steps[thread], func() (err error) {
			*p, err = cuda.MemAlloc(bytes)
			return err
		})
	}
	if !twins {
		add('1', &spare, 1024)
	}
	if os.Getenv("ZOO_EVENTS") == "threads" { // each thread makes one, of which a graph records the first thread's
		for thread, e := range map[rune]*cuda.Event{'1': &z.external, '2': new(cuda.Event)} {
			steps[thread] = append(steps[thread], func() (err error) {
				*e, err = cuda.EventCreate(cuda.EventDisableTiming | 1 /* CU_EVENT_BLOCKING_SYNC: no other event has it */)
				return err
			})
		}
	}
	add('1', &z.weights[0], size)
	add('1', &z.weights[1], size)
	add('2', &z.weights[2], size)
	add('2', &z.weights[3], size)
	work := map[rune]chan func() error{'1': make(chan func() error), '2': make(chan func() error)}
	done := make(chan error)
	for _, jobs := range work {
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with its work
			err := ctx.SetCurrent()
			for job := range jobs {
				if err == nil {
					err = job()
				}
				done <- err
			}
		}()
	}
	for _, thread := range schedule {
		if len(steps[thread]) == 0 {
			continue
		}
		work[thread] <- steps[thread][0]
		if err := <-done; err != nil {
			return err
		}
		steps[thread] = steps[thread][1:]
	}
	for _, jobs := range work {
		close(jobs)
	}
	return nil
}
