package serve

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"medusa/runners/reference/engine"
)

// ErrEnded says that the engine works on no requests any more.
var ErrEnded = errors.New("answer request: the engine has ended")

// ErrAsleep says that the engine has to be woken first.
var ErrAsleep = errors.New("the engine sleeps (wake it first)")

// PromptError is a prompt that the engine cannot take.
type PromptError struct{ Cause error }

func (e *PromptError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *PromptError) Unwrap() error { return e.Cause }

// Loop lets many goroutines use an engine, which belongs to one thread. Requests join and leave between two steps.
type Loop struct {
	e      *engine.Engine
	orders chan func(*Batch)
	ended  chan struct{}
	asleep atomic.Int32

	resizing sync.Mutex    // one after the other
	wanted   atomic.Uint64 // bytes of an elastic KV cache
}

// NewLoop makes a Loop. It computes no step before Run.
func NewLoop(e *engine.Engine) *Loop {
	return &Loop{e: e, orders: make(chan func(*Batch)), ended: make(chan struct{})}
}

// Run works until ctx ends or a step fails. It runs on the engine's thread. Requests that are then on their way get ErrEnded.
func (l *Loop) Run(ctx context.Context) error {
	defer close(l.ended)
	b := NewBatch(l.e)
	defer b.drop()
	for {
		if b.Idle() {
			select {
			case order := <-l.orders:
				order(b)
			case <-ctx.Done():
				return nil
			}
		}
		for more := true; more; {
			select {
			case order := <-l.orders:
				order(b)
			case <-ctx.Done():
				return nil
			default:
				more = false
			}
		}
		if err := b.Step(); err != nil {
			return err
		}
	}
}

// Ended is closed when Run has returned.
func (l *Loop) Ended() <-chan struct{} { return l.ended }

// Do calls order on the engine's thread, between two steps, and waits for it.
func (l *Loop) Do(order func(*Batch)) error {
	done := make(chan struct{})
	select {
	case l.orders <- func(b *Batch) { order(b); close(done) }:
		<-done
		return nil
	case <-l.ended:
		return ErrEnded
	}
}

// Asleep is the level at which the engine sleeps, or 0.
func (l *Loop) Asleep() int { return int(l.asleep.Load()) }

// Sleep puts the engine asleep once no request is left, and returns the bytes of device memory that are free then.
func (l *Loop) Sleep(ctx context.Context, level int) (freed uint64, err error) {
	for busy := true; busy; {
		ended := l.Do(func(b *Batch) {
			if busy = !b.Idle(); !busy {
				freed, err = l.e.Sleep(level)
				l.asleep.Store(int32(l.e.Asleep()))
			}
		})
		if err := cmp.Or(ended, ctx.Err()); err != nil {
			return 0, err
		}
	}
	return freed, err
}

// Wake wakes the engine.
func (l *Loop) Wake() (err error) {
	ended := l.Do(func(*Batch) {
		err = l.e.Wake()
		l.asleep.Store(int32(l.e.Asleep()))
	})
	return cmp.Or(ended, err)
}

// Resize gives an elastic KV cache another number of bytes, and returns its new size. Requests that run keep their blocks, so a resize to a
// smaller cache waits until they leave. If ctx ends before, or on error, the cache has its old size.
func (l *Loop) Resize(ctx context.Context, bytes uint64) (engine.KVSize, error) {
	size, err := l.resize(ctx, bytes)
	if err == nil {
		l.wanted.Store(bytes)
	}
	return size, err
}

func (l *Loop) resize(ctx context.Context, bytes uint64) (size engine.KVSize, err error) {
	l.resizing.Lock()
	defer l.resizing.Unlock()
	for done := false; !done; {
		ended := l.Do(func(b *Batch) {
			if err = ctx.Err(); err != nil {
				b.Keep()
				return
			}
			if done, err = b.Resize(bytes); done {
				size, err = l.e.KVSize()
			}
		})
		if err := cmp.Or(ended, err); err != nil {
			return engine.KVSize{}, err
		}
	}
	return size, nil
}

// KVSize describes the memory of an elastic KV cache.
func (l *Loop) KVSize() (size engine.KVSize, err error) {
	ended := l.Do(func(*Batch) { size, err = l.e.KVSize() })
	return size, cmp.Or(ended, err)
}

// Answer continues a prompt and calls each with every token, on the caller's goroutine. A slow caller does not delay others. If
// ctx ends, the prompt leaves the batch.
func (l *Loop) Answer(ctx context.Context, prompt []int, limits Limits, each func(id int) error) (Reason, error) {
	limits.MaxTokens = min(limits.MaxTokens, l.e.MaxModelLen())
	tokens := make(chan int, limits.MaxTokens) // room for all, so that the engine never waits for a client
	var reason Reason
	job := &Job{Prompt: prompt, Limits: limits, Token: func(id int) { tokens <- id }, Ended: func(r Reason) { reason = r; close(tokens) }}
	var err error
	if ended := l.Do(func(b *Batch) { err = b.Add(job) }); ended != nil {
		return "", ended
	}
	if errors.Is(err, ErrAsleep) {
		return "", err
	}
	if err != nil {
		return "", &PromptError{err}
	}
	leave := func(why error) (Reason, error) {
		_ = l.Do(func(b *Batch) { b.Remove(job) }) // a loop that has ended has no jobs
		return "", why
	}
	for {
		select {
		case id, more := <-tokens:
			if !more {
				return reason, nil
			}
			if err := each(id); err != nil {
				return leave(err)
			}
		case <-ctx.Done():
			return leave(ctx.Err())
		case <-l.ended:
			return "", ErrEnded
		}
	}
}
