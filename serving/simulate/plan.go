package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// Plan says which artifacts to keep on which node, and how many warm workers to keep.
type Plan struct {
	BudgetGB float64     `json:"budget_gb"` // of each node
	Spread   bool        `json:"spread"`
	Choices  []Choice    `json:"artifacts"`
	Nodes    []NodePlan  `json:"nodes"`
	Warm     []WarmCount `json:"warm"`
}

// Choice is one model, best first.
type Choice struct {
	Model  string  `json:"model"`
	Rate   float64 `json:"rate"`    // requests per second of all its functions
	Saved  float64 `json:"saved_s"` // seconds a restored start saves
	SizeGB float64 `json:"size_gb"`
	Value  float64 `json:"value"` // Rate × Saved ÷ SizeGB
	Nodes  []int   `json:"nodes"` // nodes that get it
}

// NodePlan is one node's artifacts, as cluster.prebaked of a scenario takes them.
type NodePlan struct {
	Models []string `json:"models"`
	UsedGB float64  `json:"used_gb"`
}

// WarmCount is the number of workers of a function to keep warm, cluster-wide.
type WarmCount struct {
	Function string  `json:"function"`
	Load     float64 `json:"load"` // mean requests in service
	Workers  int     `json:"workers"`
}

// MakePlan plans for a scenario. It takes artifacts in the order of rate × seconds saved ÷ size while they fit, which is the
// optimum except for the last one (a fractional knapsack). If the policy sees artifacts, it starts a model on a node with its
// artifact. Then a first copy anywhere has the whole value and the k-th copy a k-th of it, so copies spread over the nodes. Under
// any other policy a start may be on any node, so every node gets the same artifacts. The number of warm workers of a function is
// the smallest for which a request finds no free slot with a probability of at most miss (Erlang's loss formula over batch
// slots).
func MakePlan(s *Scenario, budgetGB, miss float64) (*Plan, error) {
	if !(budgetGB >= 0) || !(miss > 0 && miss < 1) {
		return nil, errors.New("make plan: the budget must not be negative, and the miss probability lie between 0 and 1")
	}
	functions := s.deployed()
	rates := s.meanRates(functions)
	p := &Plan{BudgetGB: budgetGB, Spread: strings.HasPrefix(s.Policy.Name, "lalb"), Nodes: make([]NodePlan, s.Cluster.Nodes)}
	perModel := map[string]float64{}
	for i, f := range functions {
		perModel[f.Model] += rates[i]
	}
	for model, rate := range perModel {
		c, err := choice(s, model, rate)
		if err != nil {
			return nil, fmt.Errorf("make plan: %w", err)
		}
		p.Choices = append(p.Choices, c)
	}
	slices.SortFunc(p.Choices, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Model, b.Model))
	})
	for p.place() {
	}
	for i, f := range functions {
		m := s.profiles.Models[f.Model]
		service, slots := m.Service, max(s.Cluster.Slots, 1)
		if m.Engine != nil {
			service = m.Engine.Prefill + meanOutput*(m.Engine.Decode+m.Engine.DecodeRequest*float64(slots)/2)
		}
		load := rates[i] * service
		p.Warm = append(p.Warm, WarmCount{Function: f.Name, Load: load, Workers: workersFor(load, slots, miss)})
	}
	return p, nil
}

// place adds the best copy that still fits on some node, on the node with the most room.
func (p *Plan) place() bool {
	best, at, value := -1, -1, 0.0
	for i, c := range p.Choices {
		v := c.Value
		if p.Spread {
			v /= float64(len(c.Nodes) + 1)
		}
		if v <= value {
			continue
		}
		if n := p.roomiest(c); n >= 0 {
			best, at, value = i, n, v
		}
	}
	if best < 0 {
		return false
	}
	c, n := &p.Choices[best], &p.Nodes[at]
	c.Nodes = append(c.Nodes, at)
	n.Models = append(n.Models, c.Model)
	n.UsedGB += c.SizeGB
	return true
}

// roomiest returns the node with the most room that has room for c and lacks c, or -1.
func (p *Plan) roomiest(c Choice) int {
	at := -1
	for i, n := range p.Nodes {
		if n.UsedGB+c.SizeGB <= p.BudgetGB && !slices.Contains(c.Nodes, i) && (at < 0 || n.UsedGB < p.Nodes[at].UsedGB) {
			at = i
		}
	}
	return at
}

func choice(s *Scenario, model string, rate float64) (Choice, error) {
	m := s.profiles.Models[model]
	native, err := m.load(nativeStart, s.Cluster.Prestarted)
	if err != nil {
		return Choice{}, fmt.Errorf("model %s: %w", model, err)
	}
	restored, err := m.load(restoredStart, s.Cluster.Prestarted)
	if err != nil {
		return Choice{}, fmt.Errorf("model %s: %w", model, err)
	}
	c := Choice{Model: model, Rate: rate, Saved: native - restored, SizeGB: m.ArtifactGB}
	if c.SizeGB <= 0 {
		return c, fmt.Errorf("model %s: no artifact_gb in the profiles", model)
	}
	c.Value = c.Rate * c.Saved / c.SizeGB
	return c, nil
}

// meanRates returns the requests per second of each function, over the whole workload.
func (s *Scenario) meanRates(functions []Function) []float64 {
	if s.Workload.Kind == "poisson" || s.Workload.Kind == "zipf" || s.Workload.Kind == "azure" {
		return s.Workload.rates(functions)
	}
	requests := s.Workload.requests(functions, s.Seed)
	out := make([]float64, len(functions))
	if len(requests) == 0 {
		return out
	}
	span := math.Max(requests[len(requests)-1].arrival, 1)
	for _, r := range requests {
		out[r.fn] += 1 / span
	}
	return out
}

// workersFor returns the smallest number of workers with these slots whose slots are all busy with at most the given probability.
func workersFor(load float64, slots int, miss float64) int {
	if load == 0 {
		return 0
	}
	limit := int(load) + 10*slots + int(10*math.Sqrt(load)) + 10
	return 1 + sort.Search(limit, func(n int) bool { return erlang(load, (n+1)*slots) <= miss })
}

// erlang is the probability that all servers are busy, by the usual recursion.
func erlang(load float64, servers int) float64 {
	b := 1.0
	for i := 1; i <= servers; i++ {
		b = load * b / (float64(i) + load*b)
	}
	return b
}
