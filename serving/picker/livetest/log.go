package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// event is a line of a log of decisions, with the fields that the bounds need. This reader uses only the format, and no code of package
// dispatch.
type event struct {
	At     float64  `json:"t"`
	Arrive *numbers `json:"arrive"`
	Next   *struct {
		Decided *numbers `json:"decided"`
	} `json:"next"`
	Done *numbers `json:"done"`
	Lost *numbers `json:"lost"`
}

// numbers are the fields of a request. Not every line has all of them.
type numbers struct {
	ID      int     `json:"id"`
	Model   int     `json:"fn"`
	GPU     int     `json:"gpu"`
	Service float64 `json:"service_s"`
	Latency float64 `json:"latency_s"`
}

// ran is a request of a log that was answered.
type ran struct {
	numbers
	arrived, decided, done float64
	order                  int // of its arrival
}

// history are the requests of a log, in order of their decisions.
type history struct{ list []*ran }

// readLog demands that each request was answered. It leaves out the first ones by arrival, which started engines.
func readLog(path string, first int) (*history, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	known := map[int]*ran{}
	var h history
	answered := 0
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("read decisions: %w", err)
		}
		switch {
		case e.Arrive != nil:
			known[e.Arrive.ID] = &ran{numbers: *e.Arrive, arrived: e.At, order: len(known)}
		case e.Next != nil && e.Next.Decided != nil:
			r := known[e.Next.Decided.ID]
			r.GPU, r.decided = e.Next.Decided.GPU, e.At
			h.list = append(h.list, r)
		case e.Done != nil:
			r := known[e.Done.ID]
			r.Service, r.Latency, r.done = e.Done.Service, e.Done.Latency, e.At
			answered++
		case e.Lost != nil:
			return nil, fmt.Errorf("read decisions: request %d of m%d was lost", e.Lost.ID, e.Lost.Model)
		}
	}
	if answered != len(known) {
		return nil, fmt.Errorf("read decisions: %d of %d requests were answered", answered, len(known))
	}
	h.list = slices.DeleteFunc(h.list, func(r *ran) bool { return r.order < first })
	return &h, lines.Err()
}

// overtaken is the largest number of later requests that were decided while one waited.
func (h *history) overtaken() (most int) {
	for i, r := range h.list {
		n := 0
		for _, before := range h.list[:i] {
			if before.order > r.order {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// longest and shortest are the times from a decision to the end.
func (h *history) longest() (t float64) {
	for _, r := range h.list {
		t = max(t, r.done-r.decided)
	}
	return t
}

func (h *history) shortest() float64 {
	t := h.longest()
	for _, r := range h.list {
		t = min(t, r.done-r.decided)
	}
	return t
}

// service is the longest service of a model's requests.
func (h *history) service(model int) (t float64) {
	for _, r := range h.list {
		if r.Model == model {
			t = max(t, r.Service)
		}
	}
	return t
}

// inTime is the share of answers that took no longer than a deadline: of all requests, and of the model with the smallest share.
func (h *history) inTime(deadline float64) (all, least float64) {
	met, of := map[int]float64{}, map[int]float64{}
	for _, r := range h.list {
		of[r.Model]++
		if r.Latency <= deadline {
			met[r.Model]++
			all += 1 / float64(len(h.list))
		}
	}
	least = 1
	for m, n := range of {
		least = min(least, met[m]/n)
	}
	return all, least
}

// apart is the largest difference of the services of two models, each divided by its weight, in any interval during which requests of
// both waited all the time. A request gets its service in the last seconds before its end.
func (h *history) apart(a, b int, weight func(model int) float64) (most float64) {
	type change struct {
		at            float64
		rate, waiting [2]float64
	}
	var changes []change
	for _, r := range h.list {
		k := slices.Index([]int{a, b}, r.Model)
		if k < 0 {
			continue
		}
		add := func(at, rate, waiting float64) {
			c := change{at: at}
			c.rate[k], c.waiting[k] = rate, waiting
			changes = append(changes, c)
		}
		begun := max(r.decided, r.done-r.Service)
		add(r.arrived, 0, 1)
		add(r.decided, 0, -1)
		add(begun, 1/weight(r.Model), 0)
		add(r.done, -1/weight(r.Model), 0)
	}
	slices.SortStableFunc(changes, func(x, y change) int {
		if x.at < y.at {
			return -1
		}
		if x.at > y.at {
			return 1
		}
		return 0
	})
	var now change
	difference, least, highest := 0.0, 0.0, 0.0
	for i, c := range changes {
		difference += (now.rate[0] - now.rate[1]) * (c.at - now.at)
		if now.waiting[0] > 0 && now.waiting[1] > 0 {
			least, highest = min(least, difference), max(highest, difference)
			most = max(most, highest-least)
		}
		now.at = c.at
		for k := range 2 {
			now.rate[k], now.waiting[k] = now.rate[k]+c.rate[k], now.waiting[k]+c.waiting[k]
		}
		// All events of one moment count as one: there is no gap between a request that ends and the next one that is decided.
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		if now.waiting[0] <= 0 || now.waiting[1] <= 0 {
			difference, least, highest = 0, 0, 0
		}
	}
	return most
}
