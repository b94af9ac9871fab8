package gateway

import (
	"cmp"
	"slices"
	"sync"

	"medusa/serving/agent"
)

// Change is a state that an engine has entered.
type Change struct {
	Number int64       `json:"number"` // counts from 1
	At     float64     `json:"at"`     // seconds since the server's start
	GPU    string      `json:"gpu"`
	Model  string      `json:"model"`
	State  agent.State `json:"state"`
}

// history has the newest changes, and their number of each kind.
type history struct {
	mu      sync.Mutex
	newest  []Change
	number  int64
	entered map[entered]int
}

type entered struct {
	model string
	state agent.State
}

// newestChanges bounds the changes that are kept, and sent to a page that opens.
const newestChanges = 2000

func (h *history) add(c Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number++
	c.Number = h.number
	// mutant: changes that are kept
	if len(h.newest) == newestChanges {
		h.newest = slices.Delete(h.newest, 0, newestChanges/2)
	}
	h.newest = append(h.newest, c)
	if h.entered == nil {
		h.entered = map[entered]int{}
	}
	h.entered[entered{c.Model, c.State}]++
}

// since returns the changes with higher numbers that are kept.
func (h *history) since(number int64) []Change {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, _ := slices.BinarySearchFunc(h.newest, number+1, func(c Change, n int64) int { return cmp.Compare(c.Number, n) })
	return slices.Clone(h.newest[first:])
}

// last is the number of the newest change.
func (h *history) last() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.number
}

type changeCount struct {
	entered
	n int
}

// counts returns how often each model entered each state.
func (h *history) counts() []changeCount {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []changeCount
	for e, n := range h.entered {
		out = append(out, changeCount{e, n})
	}
	slices.SortFunc(out, func(a, b changeCount) int {
		return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.state, b.state))
	})
	return out
}
