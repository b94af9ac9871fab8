package simulate

import (
	"cmp"
	"slices"

	"medusa/serving/schedule"
)

// free returns fn's worker on g that can take one more request, or nil.
func (s *sim) free(g, fn int) *worker {
	for _, w := range s.gpus[g].workers { // fewer than a popular function has
		if w.fn == fn && w.state != stopping && (s.slots(fn) == 0 || w.seen < s.slots(fn)) {
			return w
		}
	}
	return nil
}

// slots are the batch slots of a worker of fn; 0: no limit.
func (s *sim) slots(fn int) int { return cmp.Or(s.fns[fn].Slots, s.spec.Slots) }

// begin starts a worker and makes room for it first. The caller has called Accepts.
func (s *sim) begin(g, fn, peer int) (*worker, startKind) {
	f := &s.fns[fn]
	for !s.fits(g, f.bytes) {
		s.evict(g)
	}
	// mutant: workers that are kept
	w := &worker{fn: fn, gpu: g, born: s.now, lastUsed: s.now, kept: f.Keep && len(f.workers) == 0}
	d, kind := s.source(w, peer)
	w.ready = s.now + d
	w.lastUsed = s.now
	f.loading += d
	f.workers = append(f.workers, w)
	s.gpus[g].workers = append(s.gpus[g].workers, w)
	s.gpus[g].used += f.bytes
	s.settle(w)
	s.workers++
	s.watch()
	s.agenda.push(event{at: w.ready, kind: loaded, worker: w})
	return w, kind
}

// source finds the nearest weights for a new worker, and the seconds until it serves.
func (s *sim) source(w *worker, peer int) (float64, startKind) {
	f := &s.fns[w.fn]
	g := &s.gpus[w.gpu]
	if peer != schedule.Anywhere && f.profile.Peer > 0 {
		for _, o := range s.gpus[peer].workers {
			if o.fn == w.fn && o.state == serving {
				o.locks++
				s.settle(o)
				w.source = o
				d := f.profile.Peer
				s.occupy(g, d, schedule.Peer)
				return d, fromPeer
			}
		}
	}
	if s.spec.HostWarm || s.adopt(w) {
		d := f.profile.Host * s.slowdown(w)
		s.occupy(g, d, schedule.Light+schedule.Traffic(f.class))
		return d, fromHost
	}
	first, later, fetch := s.coldTimes(g.node, w.fn)
	s.fetched(g.node, w.fn, fetch)
	s.occupy(g, first, schedule.Cold)
	if s.serves(g.node) {
		return later, cold
	}
	return first, cold
}

func (s *sim) occupy(g *gpu, d float64, t schedule.Traffic) {
	g.copying, g.traffic = s.now+d, t
}

// slowdown is the effect of copies from host memory by the GPU behind the same PCIe switch (Torpor, Table 3).
func (s *sim) slowdown(w *worker) float64 {
	if s.spec.Contention == nil || s.spec.Neighbours == nil {
		return 1
	}
	n := s.spec.Neighbours[w.gpu%s.spec.GPUs]
	if n < 0 {
		return 1
	}
	t := s.Traffic(w.gpu - w.gpu%s.spec.GPUs + n)
	if t < schedule.Light || t > schedule.Heavy {
		return 1
	}
	return s.spec.Contention[s.fns[w.fn].class][t-schedule.Light]
}

// adopt reports whether w's weights are in its node's host memory, and gives w an entry there. It takes over a waiting container
// of its function (a process swapped out), or the weights alone. Otherwise it makes a new entry, and drops the least recently
// used idle ones for it.
func (s *sim) adopt(w *worker) bool {
	n := &s.nodes[s.gpus[w.gpu].node]
	f := &s.fns[w.fn]
	switch {
	case s.spec.HostMemoryGB > 0:
		for _, c := range n.containers {
			if c.fn == w.fn && s.reaches(c, w.gpu) {
				c.lastUsed = s.now
				return f.profile.Host > 0
			}
		}
		if f.profile.WeightsGB > s.spec.HostMemoryGB {
			return false
		}
		for s.hosted(n)+f.profile.WeightsGB > s.spec.HostMemoryGB && s.dropContainer(n) {
		}
		n.containers = append(n.containers, &container{fn: w.fn, gpu: w.gpu, lastUsed: s.now})
	case s.spec.Pool > 0:
		for _, c := range n.containers {
			if c.fn == w.fn && c.worker == nil {
				c.worker, w.home, c.lastUsed = w, c, s.now
				return f.profile.Host > 0
			}
		}
		for len(n.containers) >= s.spec.Pool && s.dropContainer(n) {
		}
		w.home = &container{fn: w.fn, lastUsed: s.now, worker: w}
		n.containers = append(n.containers, w.home)
	}
	return false
}

// reaches reports whether a GPU may take its weights from c.
func (s *sim) reaches(c *container, gpu int) bool {
	// mutant: engines that sleep on one GPU
	return !s.spec.Sleepers || c.gpu == gpu
}

// hosted is the host memory in use, in GB.
func (s *sim) hosted(n *node) float64 {
	total := 0.0
	for _, c := range n.containers {
		total += s.fns[c.fn].profile.WeightsGB
	}
	return total
}

// dropContainer drops an idle container together with its worker.
func (s *sim) dropContainer(n *node) bool {
	var idle []*container
	s.scratch = s.scratch[:0]
	for _, c := range n.containers {
		if c.worker == nil || c.worker.idle() {
			idle = append(idle, c)
			s.scratch = append(s.scratch, schedule.Resident{Fn: c.fn, LastUsed: c.lastUsed, Anywhere: s.fns[c.fn].lastUsed, Replicas: len(s.fns[c.fn].workers), Heavy: s.fns[c.fn].class > 0})
		}
	}
	if len(idle) == 0 {
		return false
	}
	c := idle[s.evictor.Victim(s.now, s.scratch)]
	if c.worker != nil {
		s.remove(c.worker, true)
		return true
	}
	n.containers = slices.DeleteFunc(n.containers, func(x *container) bool { return x == c })
	return true
}

// serves reports whether any worker of the node has work.
func (s *sim) serves(node int) bool {
	for g := range s.gpus {
		if s.gpus[g].node != node {
			continue
		}
		for _, w := range s.gpus[g].workers {
			if w.state != loading && w.inFlight > 0 {
				return true
			}
		}
	}
	return false
}

// fits reports whether g has room for one more worker of the given size.
func (s *sim) fits(g int, bytes int64) bool {
	p := &s.gpus[g]
	return s.room(len(p.workers), p.used+bytes)
}

// canFit is fits after evicting every idle worker.
func (s *sim) canFit(g int, bytes int64) bool {
	p := &s.gpus[g]
	return s.fits(g, bytes) || (!s.spec.Static && s.room(p.pinned, p.pinnedBytes+bytes))
}

// room reports whether a GPU with that many workers can take one more, if that many bytes are then in use.
func (s *sim) room(workers int, bytes int64) bool {
	if s.spec.WorkersPerGPU > 0 && workers >= s.spec.WorkersPerGPU {
		return false
	}
	return s.memory == 0 || bytes <= s.memory
}

// settle updates whether w counts among the workers that cannot be evicted. It must be called after every change that affects
// idle.
func (s *sim) settle(w *worker) {
	pinned := w.state != gone && !w.idle()
	if pinned == w.pinned {
		return
	}
	w.pinned = pinned
	p, bytes, n := &s.gpus[w.gpu], s.fns[w.fn].bytes, 1
	if !pinned {
		bytes, n = -bytes, -1
	}
	p.pinned += n
	p.pinnedBytes += bytes
}

func (s *sim) evict(g int) {
	s.scratch, s.picked = s.scratch[:0], s.picked[:0]
	for _, w := range s.gpus[g].workers {
		if w.idle() {
			f := &s.fns[w.fn]
			s.picked = append(s.picked, w)
			s.scratch = append(s.scratch, schedule.Resident{
				Fn: w.fn, Bytes: f.bytes, LastUsed: w.lastUsed, Anywhere: f.lastUsed, Replicas: len(f.workers), Heavy: f.class > 0,
			})
		}
	}
	s.remove(s.picked[s.evictor.Victim(s.now, s.scratch)], false)
}

// remove removes a worker from its GPU and, if process is set, also from host memory.
func (s *sim) remove(w *worker, process bool) {
	p := &s.gpus[w.gpu]
	p.workers = slices.DeleteFunc(p.workers, func(x *worker) bool { return x == w })
	p.used -= s.fns[w.fn].bytes
	f := &s.fns[w.fn]
	f.workers = slices.DeleteFunc(f.workers, func(x *worker) bool { return x == w })
	f.held += s.now - w.born
	s.workers--
	w.state = gone
	s.settle(w)
	if c := w.home; c != nil {
		c.worker, w.home = nil, nil
		if process {
			n := &s.nodes[p.node]
			n.containers = slices.DeleteFunc(n.containers, func(x *container) bool { return x == c })
		}
	}
}

// prefetch copies weights for queues that have just become active, to a GPU on which they displace no other active queue's
// weights (MQFQ §4.3).
func (s *sim) prefetch() {
	if s.spec.Eviction != "sticky" {
		return
	}
	for _, fn := range s.core.Woken() {
		if len(s.fns[fn].workers) > 0 {
			continue
		}
		// The least loaded GPU is likely to have a free token first.
		best := -1
		for g := range s.gpus {
			if s.waits(g, fn) && s.spare(g, s.fns[fn].bytes) && (best < 0 || s.gpus[g].flying < s.gpus[best].flying) {
				best = g
			}
		}
		if best >= 0 {
			s.begin(best, fn, schedule.Anywhere)
		}
	}
}

// waits reports whether a container of fn waits in host memory for a GPU.
func (s *sim) waits(g, fn int) bool {
	return slices.ContainsFunc(s.nodes[s.gpus[g].node].containers, func(c *container) bool { return c.fn == fn && c.worker == nil && s.reaches(c, g) })
}

// spare is canFit without touching the workers of active queues.
func (s *sim) spare(g int, bytes int64) bool {
	workers, used := 0, bytes
	for _, w := range s.gpus[g].workers {
		if !w.idle() || s.core.Active(s.now, w.fn) {
			workers++
			used += s.fns[w.fn].bytes
		}
	}
	return s.room(workers, used)
}
