package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Plan says which artifacts to keep on every node and how many warm workers to keep.
type Plan struct {
	BudgetGB  float64     `json:"budget_gb"`
	UsedGB    float64     `json:"used_gb"`
	SavedRate float64     `json:"seconds_saved_per_second"` // if every request started cold; the order of the choice, not a forecast
	Choices   []Choice    `json:"artifacts"`
	Warm      []WarmCount `json:"warm"`
}

// Choice is one artifact, best first.
type Choice struct {
	Model   string  `json:"model"`
	Rate    float64 `json:"rate"`    // requests per second of all its functions
	Saved   float64 `json:"saved_s"` // seconds a restored start saves
	SizeGB  float64 `json:"size_gb"`
	Value   float64 `json:"value"` // Rate × Saved ÷ SizeGB
	Keep    bool    `json:"keep"`
	Comment string  `json:"comment,omitempty"`
}

// WarmCount is the number of workers of a function to keep warm, cluster-wide.
type WarmCount struct {
	Function string  `json:"function"`
	Load     float64 `json:"load"` // mean requests in service
	Workers  int     `json:"workers"`
}

// MakePlan plans for a scenario: the artifacts in the order of rate × seconds saved ÷ size while they fit the budget, which is
// the optimum but for the last one (a fractional knapsack), and for each function the fewest workers with which a request
// finds no free slot with a probability of at most miss (Erlang's loss formula over batch slots).
func MakePlan(s *Scenario, budgetGB, miss float64) (*Plan, error) {
	if !(budgetGB >= 0) || !(miss > 0 && miss < 1) {
		return nil, errors.New("make plan: the budget must not be negative, and the miss probability lie between 0 and 1")
	}
	functions := s.deployed()
	rates := s.meanRates(functions)
	p := &Plan{BudgetGB: budgetGB}
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
	for i := range p.Choices {
		c := &p.Choices[i]
		switch {
		case c.Saved <= 0:
			c.Comment = "saves nothing"
		case p.UsedGB+c.SizeGB > budgetGB:
			c.Comment = "no room"
		default:
			c.Keep = true
			p.UsedGB += c.SizeGB
			p.SavedRate += c.Rate * c.Saved
		}
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

func choice(s *Scenario, model string, rate float64) (Choice, error) {
	m := s.profiles.Models[model]
	native, err := m.load(Native, s.Cluster.Prestarted)
	if err != nil {
		return Choice{}, fmt.Errorf("model %s: %w", model, err)
	}
	restored, err := m.load(Restored, s.Cluster.Prestarted)
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

// meanRates is requests per second per function, over the whole workload.
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

// workersFor is the fewest workers of so many slots whose slots are all taken with at most the given probability.
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
