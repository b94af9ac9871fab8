package schedule

// tokens are the D-tokens of MQFQ §4.2 and §4.4: each GPU runs at most d requests at once, fewer while its utilisation is
// above limit.
type tokens struct {
	d       int
	limit   float64 // utilisation cap; 0 means none
	running []int
	used    []float64 // estimated utilisation between polls
	polled  float64
}

// pollEvery is the seconds between two readings of the utilisation (MQFQ §5).
const pollEvery = 0.2

// firstGrant is the utilisation assumed for a request on an idle GPU until the next reading.
const firstGrant = 0.5

func (t *tokens) poll(now float64, c Cluster) {
	if t.running == nil {
		t.running = make([]int, c.GPUs())
		t.used = make([]float64, c.GPUs())
		t.polled = now - pollEvery
	}
	if t.limit == 0 || now-t.polled < pollEvery {
		return
	}
	t.polled = now
	for g := range t.used {
		t.used[g] = c.Utilization(g)
	}
}

func (t *tokens) free(g int) bool {
	if t.running[g] >= t.d {
		return false
	}
	return t.limit == 0 || t.running[g] == 0 || t.used[g] <= t.limit
}

// place picks the GPU for fn: one with a free token on which a worker of fn waits, or else the least loaded one with a free token
// (sticky late binding, MQFQ §4.4).
func (t *tokens) place(c Cluster, fn int) (gpu int, ok bool) {
	gpu = -1
	held := false
	for g := range t.running {
		if !t.free(g) || !c.Accepts(g, fn) {
			continue
		}
		h := c.Holds(g, fn)
		if gpu < 0 || (h && !held) || (h == held && t.running[g] < t.running[gpu]) {
			gpu, held = g, h
		}
	}
	return gpu, gpu >= 0
}

func (t *tokens) take(g int) {
	// Assume that a new request needs as much as each running one (MQFQ §4.4: 1/D of the GPU).
	if t.running[g] > 0 {
		t.used[g] += t.used[g] / float64(t.running[g])
	} else {
		t.used[g] += firstGrant
	}
	t.running[g]++
}

func (t *tokens) release(g int) {
	t.used[g] -= t.used[g] / float64(t.running[g])
	t.running[g]--
}
