package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// calls adds requests to a crowd, and returns the order in which it calls them.
func calls(asks ...Ask) (order []int) {
	c := &crowd{next: map[string]float64{}}
	all := make([]*waiter, len(asks))
	for i, a := range asks {
		all[i] = &waiter{Ask: a, arrived: float64(i)}
		c.join(100+i, all[i])
	}
	for len(c.waiting) > 0 {
		order = append(order, slices.Index(all, c.call(c.tickets[len(c.tickets)/2], 0)))
	}
	return order
}

// Without flows and deadlines, the oldest request comes first. Flows take turns, and within a flow the earliest deadline comes first.
func TestCrowd(t *testing.T) {
	for _, row := range []struct {
		name string
		asks []Ask
		want []int
	}{
		{"equals", make([]Ask, 5), []int{0, 1, 2, 3, 4}},
		{"flows", []Ask{{Flow: "a"}, {Flow: "a"}, {Flow: "a"}, {Flow: "a"}, {Flow: "b"}, {Flow: "b"}}, []int{0, 4, 1, 5, 2, 3}},
		{"deadlines", []Ask{{}, {Deadline: 9}, {Deadline: 9}, {Deadline: 3}, {}}, []int{3, 1, 2, 0, 4}},
		{"flows before deadlines", []Ask{{Flow: "a", Deadline: 1}, {Flow: "a", Deadline: 1}, {Flow: "b"}}, []int{0, 2, 1}},
	} {
		if got := calls(row.asks...); !slices.Equal(got, row.want) {
			t.Errorf("%s: called %v, want %v", row.name, got, row.want)
		}
	}
}

// A flow that comes back has no credit for its absence. The debt of a flow does not grow while it alone is served.
func TestFlowThatWasAway(t *testing.T) {
	c := &crowd{next: map[string]float64{}}
	id := 0
	join := func(flow string) {
		c.join(id, &waiter{Ask: Ask{Flow: flow}, arrived: float64(id)})
		id++
	}
	call := func() string { return c.call(c.tickets[0], 0).Flow }
	for range 100 {
		join("a")
		call()
	}
	for range 4 {
		join("a")
		join("b")
	}
	got := ""
	for range 8 {
		got += call()
	}
	if got != "babababa" && got != "abababab" && got != "baababab" {
		t.Errorf("the flows are called %s", got)
	}
	if len(c.next) > 2 {
		t.Errorf("%d flows are remembered", len(c.next))
	}
}

// Clients that invent flows take bounded memory, and cannot hold up another flow for ever.
func TestInventedFlows(t *testing.T) {
	c := &crowd{next: map[string]float64{}}
	id := 0
	join := func(flow string) *waiter {
		w := &waiter{Ask: Ask{Flow: flow}, arrived: float64(id)}
		c.join(id, w)
		id++
		return w
	}
	join("honest")
	c.call(0, 0)
	honest := join("honest")
	for n := 0; ; n++ {
		join(fmt.Sprint("invented ", n))
		if c.call(c.tickets[0], 0) == honest {
			return
		}
		if n > 10*maxFlows || len(c.next) > maxFlows+1 {
			t.Fatalf("after %d invented flows it waits; %d flows are remembered", n, len(c.next))
		}
	}
}

// For any order of arrivals, departures and calls, there is a ticket for each request, and each is called once. While one request of a
// flow waits, no other flow is served more than twice.
func TestCrowdAtRandom(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := &crowd{next: map[string]float64{}}
		var in []*waiter
		passed := map[string]int{} // by two flows: how often one was served while one request of the other waited
		drop := func(w *waiter) {
			in = slices.DeleteFunc(in, func(x *waiter) bool { return x == w })
			for flow := range 4 {
				delete(passed, w.Flow+fmt.Sprint(" ", flow))
			}
		}
		for id := range 2000 {
			switch k := rng.IntN(10); {
			case k < 5:
				w := &waiter{Ask: Ask{Flow: fmt.Sprint(rng.IntN(4)), Deadline: float64(rng.IntN(3))}, arrived: float64(id)}
				c.join(id, w)
				in = append(in, w)
			case k < 6 && len(in) > 0:
				w := in[rng.IntN(len(in))]
				_, was := c.leave(w)
				_, again := c.leave(w)
				if !was || again {
					t.Fatalf("seed %d: a request that waits leaves: %v, and again: %v", seed, was, again)
				}
				drop(w)
			case len(in) > 0:
				w := c.call(c.tickets[rng.IntN(len(c.tickets))], 0)
				if !slices.Contains(in, w) {
					t.Fatalf("seed %d: a request is called that does not wait", seed)
				}
				drop(w)
				for flow := range 4 {
					x := fmt.Sprint(flow)
					if x == w.Flow || !slices.ContainsFunc(in, func(v *waiter) bool { return v.Flow == x }) {
						continue
					}
					if passed[x+" "+w.Flow]++; passed[x+" "+w.Flow] > 2 {
						t.Fatalf("seed %d: flow %s is served three times while a request of %s waits", seed, w.Flow, x)
					}
				}
			}
			if len(c.tickets) != len(in) || len(c.waiting) != len(in) || !slices.IsSorted(c.tickets) {
				t.Fatalf("seed %d: %d tickets and %d requests, %d wait", seed, len(c.tickets), len(c.waiting), len(in))
			}
		}
	}
}
