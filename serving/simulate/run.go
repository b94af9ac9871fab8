package simulate

import (
	"fmt"
	"math"

	"medusa/serving/dispatch"
)

// Result is a scenario's result: one entry per variant, or a single entry named after the policy and strategy.
type Result struct {
	Title    string    `json:"title"`
	Variants []Outcome `json:"variants"`
}

// Outcome is one variant over all seeds.
type Outcome struct {
	Name     string     `json:"name"`
	Policy   string     `json:"policy"`
	Strategy Strategy   `json:"strategy"`
	Runs     []*Summary `json:"runs"`
}

// Run simulates every variant with every seed. If progress is not nil, Run calls it about every thousand requests with the number
// of requests done and the number known so far. decisions, if not nil, is the log of all runs; the caller closes it.
func Run(s *Scenario, progress func(done, total int), decisions *dispatch.Log) (*Result, error) {
	out := &Result{Title: s.Title}
	variants := []*Scenario{s}
	names := []string{fmt.Sprintf("%s, %s", s.Policy.Name, s.Strategy)}
	if len(s.Compare) > 0 {
		variants, names = nil, nil
		for i, c := range s.Compare {
			v, err := s.variant(i)
			if err != nil {
				return nil, err
			}
			variants, names = append(variants, v), append(names, c.Name)
		}
	}
	done, total := 0, 0
	for i, v := range variants {
		o := Outcome{Name: names[i], Policy: v.Policy.Name, Strategy: v.Strategy}
		for k := range uint64(max(v.Seeds, 1)) {
			requests := v.Workload.requests(v.deployed(), v.Seed+k)
			total += len(requests)
			sm, err := newSim(v, requests, v.Seed+k, decisions)
			if err != nil {
				return nil, fmt.Errorf("run variant %s: %w", o.Name, err)
			}
			if progress != nil {
				base := done
				sm.progress = func(n int) { progress(base+n, total) }
			}
			sm.run()
			done += len(requests)
			o.Runs = append(o.Runs, sm.summarize(v.Seed+k))
		}
		out.Variants = append(out.Variants, o)
	}
	return out, nil
}

// Estimate is a mean over seeds and the half width of its 95 % confidence interval (Student's t; 0 for one seed and for equal
// values).
type Estimate struct {
	Mean float64 `json:"mean"`
	Half float64 `json:"half_width"`
}

// Estimate estimates a value over the runs.
func (o *Outcome) Estimate(value func(*Summary) float64) Estimate {
	values := make([]float64, len(o.Runs))
	for i, r := range o.Runs {
		values[i] = value(r)
	}
	return estimate(values)
}

func estimate(values []float64) Estimate {
	n := float64(len(values))
	mean, sum := 0.0, 0.0
	for _, v := range values {
		mean += v
	}
	mean /= n
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	if n < 2 {
		return Estimate{Mean: mean}
	}
	half := student(int(n)-1) * math.Sqrt(sum/(n-1)/n)
	if half < 1e-9*math.Abs(mean) {
		half = 0 // equal values: the rest is rounding
	}
	return Estimate{Mean: mean, Half: half}
}

// student is the 97.5 % quantile of Student's t distribution, by the Cornish-Fisher expansion beyond the first few
// degrees of freedom.
func student(df int) float64 {
	if exact := []float64{0, 12.706, 4.303, 3.182, 2.776}; df < len(exact) {
		return exact[df]
	}
	const z = 1.959964
	n := float64(df)
	z3, z5, z7 := math.Pow(z, 3), math.Pow(z, 5), math.Pow(z, 7)
	return z + (z3+z)/(4*n) + (5*z5+16*z3+3*z)/(96*n*n) + (3*z7+19*z5+17*z3-15*z)/(384*n*n*n)
}
