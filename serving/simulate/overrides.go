package simulate

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/parser"

	"medusa/internal/yamlfile"
	"medusa/serving/schedule"
)

// Overrides are values of the command line that replace, or add to, those of a scenario file. Zero values keep the file's.
type Overrides struct {
	Profiles string
	Models   []string // one function each, equally popular unless the workload is zipf
	Policy   string
	Strategy string
	Trace    string
	Rate     float64
	Duration float64
	GPUs     int
	Nodes    int
	Slots    int
	Seed     uint64
	Seeds    int
	Compare  []string // policies, strategies, or both joined by +
}

// Load reads a scenario file, or starts from an empty scenario if path is empty, and applies the overrides. Files named in
// overrides are relative to the working directory.
func Load(path string, o Overrides) (*Scenario, error) {
	// A scenario without a file: one model at a time on a GPU, 16 batch slots, an hour of Poisson arrivals.
	s := &Scenario{
		Title: "Simulation", Strategy: nativeStart, Policy: PolicySpec{Name: "lalbo3", D: 16},
		Cluster:  ClusterSpec{Nodes: 1, GPUs: 1, WorkersPerGPU: 1, Slots: 16},
		Workload: Workload{Kind: "poisson", Duration: 3600},
	}
	if path != "" {
		var err error
		if s, err = LoadScenario(path); err != nil {
			return nil, err
		}
	} else if o.Profiles == "" || len(o.Models) == 0 {
		return nil, errors.New("build scenario: without a file it needs profiles and models")
	}
	if err := s.apply(o); err != nil {
		return nil, err
	}
	if err := s.finish(); err != nil {
		var field *yamlfile.FieldError
		if path != "" || !errors.As(err, &field) {
			return nil, err
		}
		return nil, field.Err
	}
	return s, nil
}

func (s *Scenario) apply(o Overrides) error {
	set := func(to *string, v string) {
		if v != "" {
			*to = v
		}
	}
	fromHere := func(file string) (string, error) {
		at, err := filepath.Abs(file)
		if err != nil {
			return "", fmt.Errorf("find %s: %w", file, err)
		}
		base, err := filepath.Abs(s.dir)
		if err != nil {
			return "", fmt.Errorf("find %s: %w", s.dir, err)
		}
		return filepath.Rel(base, at)
	}
	if o.Profiles != "" {
		file, err := fromHere(o.Profiles)
		if err != nil {
			return err
		}
		s.Profiles = file
	}
	if o.Trace != "" {
		file, err := fromHere(o.Trace)
		if err != nil {
			return err
		}
		s.Workload.Kind, s.Workload.File = "trace", file
	}
	set(&s.Policy.Name, o.Policy)
	if o.Strategy != "" {
		s.Strategy = Strategy(o.Strategy)
	}
	if len(o.Models) > 0 {
		s.Functions = nil
		for _, m := range o.Models {
			s.Functions = append(s.Functions, Function{Name: m})
		}
	}
	override(&s.Workload.Rate, o.Rate)
	override(&s.Workload.Duration, o.Duration)
	override(&s.Cluster.GPUs, o.GPUs)
	override(&s.Cluster.Nodes, o.Nodes)
	override(&s.Cluster.Slots, o.Slots)
	override(&s.Seed, o.Seed)
	override(&s.Seeds, o.Seeds)
	if len(o.Compare) > 0 {
		s.Compare, s.Figures = nil, nil
		for _, c := range o.Compare {
			v, err := parseVariant(c)
			if err != nil {
				return err
			}
			s.Compare = append(s.Compare, v)
		}
	}
	return nil
}

func override[T comparable](to *T, v T) {
	var zero T
	if v != zero {
		*to = v
	}
}

// parseVariant reads "lalbo3", "restored" or "lalbo3+restored".
func parseVariant(text string) (Variant, error) {
	var fields []string
	for part := range strings.SplitSeq(text, "+") {
		switch {
		case slices.Contains(schedule.Names(), part):
			fields = append(fields, "policy: {name: "+part+"}")
		case slices.Contains(strategies(), Strategy(part)):
			fields = append(fields, "strategy: "+part)
		default:
			return Variant{}, fmt.Errorf("read comparison %q: %q is neither a policy (%s) nor a strategy (%s)", text, part,
				strings.Join(schedule.Names(), ", "), strings.Join([]string{"native", "async", "no-graphs", "kv-only", "restored"}, ", "))
		}
	}
	file, err := parser.ParseBytes([]byte("{"+strings.Join(fields, ", ")+"}"), 0)
	if err != nil {
		return Variant{}, fmt.Errorf("read comparison %q: %w", text, err)
	}
	return Variant{Name: text, With: file.Docs[0].Body}, nil
}
