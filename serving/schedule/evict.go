package schedule

// Resident is a worker on a GPU that may be evicted: it is idle, and no copy reads from it.
type Resident struct {
	Fn       int
	Bytes    int64
	LastUsed float64 // on this GPU
	Anywhere float64 // last use of the function on any GPU
	Replicas int     // GPUs that hold the function, this one included
	Heavy    bool    // swapping it over PCIe slows inference down
}

// Evictor picks the next worker to evict from a GPU. Evicting never copies back: the host copy of weights stays valid.
type Evictor interface {
	// Victim returns the index in idle of the worker to evict. idle is not empty and is ordered by function.
	Victim(now float64, idle []Resident) int
}

// LRU evicts the worker least recently used on the GPU, or with Global the one whose function was least recently used on
// any GPU (thesis §3.3).
type LRU struct{ Global bool }

// Victim implements [Evictor].
func (e LRU) Victim(_ float64, idle []Resident) int {
	return oldest(idle, func(r Resident) float64 {
		if e.Global {
			return r.Anywhere
		}
		return r.LastUsed
	}, func(Resident) bool { return true })
}

// HeavyLight is Torpor's eviction (§5.3): light models and second replicas first, then the only replica of a heavy model, each by
// least recent use. The caller leaves out locked workers. If all last heavy replicas on a GPU are locked, it has no victim, and
// the start must wait.
type HeavyLight struct{}

// Victim implements [Evictor].
func (HeavyLight) Victim(_ float64, idle []Resident) int {
	used := func(r Resident) float64 { return r.LastUsed }
	if i := oldest(idle, used, func(r Resident) bool { return !r.Heavy || r.Replicas > 1 }); i >= 0 {
		return i
	}
	return oldest(idle, used, func(Resident) bool { return true })
}

// Sticky is MQFQ-Sticky's eviction (§4.3): workers of queues that are not active first, each by least recent use.
type Sticky struct {
	// Active is the policy's ([Anticipator]).
	Active func(now float64, fn int) bool
}

// Victim implements [Evictor].
func (e Sticky) Victim(now float64, idle []Resident) int {
	used := func(r Resident) float64 { return r.LastUsed }
	if i := oldest(idle, used, func(r Resident) bool { return !e.Active(now, r.Fn) }); i >= 0 {
		return i
	}
	return oldest(idle, used, func(Resident) bool { return true })
}

func oldest(idle []Resident, used func(Resident) float64, ok func(Resident) bool) int {
	best := -1
	for i, r := range idle {
		if ok(r) && (best < 0 || used(r) < used(idle[best])) {
			best = i
		}
	}
	return best
}
