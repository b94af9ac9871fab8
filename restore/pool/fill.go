package pool

import (
	"context"
	"slices"
	"time"

	"medusa/internal/printable"
)

// Pauses after imports that failed.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// fill keeps as many processes as the file asks for. One process imports at a time. None imports soon after a start, because the engine
// needs the machine then.
func (p *Pool) fill(ctx context.Context) {
	pause := firstPause
	for {
		e := p.next(ctx)
		if e == nil {
			return
		}
		if p.make(e) {
			pause = firstPause
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

// make adds a process. If that fails, the log has the reason.
func (p *Pool) make(e *Engine) bool {
	began := time.Now()
	err := p.add(e)
	if err == nil {
		p.count(e, func(n *Counts) { n.ImportSeconds = time.Since(began).Seconds() })
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.counts[e].Failed++
		printable.Fprintf(p.log, "medusa: pool: engine %s: %v\n", e.Name, err)
	}
	return false
}

// next waits until an engine lacks processes and the quiet time is over. The engine that lacks most comes first.
func (p *Pool) next(ctx context.Context) *Engine {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed {
		var best *Engine
		for i := range p.spec.Engines {
			e := &p.spec.Engines[i]
			if p.lacks(e) > 0 && (best == nil || p.lacks(e) > p.lacks(best)) {
				best = e
			}
		}
		quiet := p.spec.quiet - time.Since(p.last)
		if best != nil && quiet <= 0 {
			return best
		}
		if best != nil {
			timer := time.AfterFunc(quiet, func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.changed.Broadcast()
			})
			p.changed.Wait()
			timer.Stop()
			continue
		}
		p.changed.Wait()
	}
	return nil
}

func (p *Pool) lacks(e *Engine) int {
	return e.Size - len(p.waiting[e])
}

// add starts a process and lets it import.
func (p *Pool) add(e *Engine) error {
	w, err := startWaiter(e)
	if err != nil {
		return err
	}
	if p.made == nil {
		w.lower()
	}
	p.mu.Lock()
	p.filling[w] = true
	closed := p.closed
	p.mu.Unlock()
	if closed {
		w.close()
		<-w.gone
		return nil
	}
	err = w.awaitReady()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.filling, w)
	if err != nil || p.closed {
		w.close()
		<-w.gone
		return err
	}
	p.waiting[e] = append(p.waiting[e], w)
	p.counts[e].Imported++
	go p.watch(w)
	p.changed.Broadcast()
	return nil
}

// watch removes a process that ends while it waits.
func (p *Pool) watch(w *waiter) {
	<-w.gone
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.waiting[w.engine]
	if i := slices.Index(list, w); i >= 0 {
		p.waiting[w.engine] = slices.Delete(list, i, i+1)
		p.counts[w.engine].Failed++
		w.close()
		p.changed.Broadcast()
	}
}
