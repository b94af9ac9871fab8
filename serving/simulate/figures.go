package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"medusa/internal/yamlfile"
)

// Figure is a published result and how a scenario's outcome compares with it. Exactly one of the comparisons is used, seed by
// seed: one seed's variants share their arrivals.
//
//	change      percent by which Metric changes from the first of Variants to the second; Published within Points points
//	value       Metric of the one variant; Published within Points (points for a share, given in percent)
//	ratio       Metric of the first over that of the second; at least Least, at most Most
//	order       Metric rises from each variant to the next, exactly; with Or equal, does not fall
//	error       median relative error over the variants against a file of published values; at most Most
type Figure struct {
	ID        string   `yaml:"id"`
	Paper     string   `yaml:"paper"`     // paper and figure, table or section
	Claim     string   `yaml:"claim"`     // the paper's statement, in short
	Compare   string   `yaml:"compare"`   // change, value, ratio, order or error
	Metric    string   `yaml:"metric"`    // a name in the JSON of Summary, or name:function for a function's or model's
	Variants  []string `yaml:"variants"`  // names in compare
	Fails     []string `yaml:"fails"`     // value: variants that must not pass; if one does, the verdict is outside
	Published *float64 `yaml:"published"` // for change, value
	Points    *float64 `yaml:"points"`    // tolerance; default 5
	Least     *float64 `yaml:"least"`
	Most      *float64 `yaml:"most"`
	OrEqual   bool     `yaml:"or_equal"`
	Against   string   `yaml:"against"`  // error: CSV with a column variant and one named as the metric
	Constant  []string `yaml:"constant"` // error: last words of the rows whose median is the constant predictor
	Reason    string   `yaml:"reason"`   // the reason of a difference, or the reading of an ambiguous text
	Verdict   Verdict  `yaml:"verdict"`  // the expected result of the comparison; default within. Another result is an error
}

// Verdict is the position of a comparison's 95 % confidence interval relative to the tolerance.
type Verdict string

// The verdicts. The interval of a scenario without chance is a point.
const (
	Within    Verdict = "within"    // wholly inside the tolerance
	Outside   Verdict = "outside"   // wholly outside
	Undecided Verdict = "undecided" // across its edge
)

// Finding is a figure beside our result.
type Finding struct {
	Figure    Figure
	Published string
	Ours      string
	Verdict   Verdict
	Points    []PointError // of an error: the points, the largest error first
}

// Expected reports whether the verdict is the one that the scenario file names.
func (f *Finding) Expected() bool { return f.Verdict == cmp.Or(f.Figure.Verdict, Within) }

// metric reads one number from a summary by its JSON name, so that scenario files and results use the same names.
func metric(s *Summary, name string) (float64, error) {
	name, fn, ofFunction := strings.Cut(name, ":")
	var v any = s
	if ofFunction {
		all := append(slices.Clone(s.Functions), s.Models...)
		i := slices.IndexFunc(all, func(f FunctionSummary) bool { return f.Name == fn })
		if i < 0 {
			return 0, fmt.Errorf("read metric: no function or model %q", fn)
		}
		v = all[i]
	}
	short := *s
	if !ofFunction {
		// Lists are not metrics, and encoding them would be slow.
		short.Functions, short.Models, short.Series, short.Quantiles = nil, nil, nil, nil
		v = short
	}
	data, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("read metric: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return 0, fmt.Errorf("read metric: %w", err)
	}
	x, ok := fields[name].(float64)
	if !ok {
		return 0, fmt.Errorf("read metric: no metric %q", name)
	}
	return x, nil
}

// checkFigures finds the errors that can be found without a run.
func (s *Scenario) checkFigures() error {
	for i, f := range s.Figures {
		at := func(format string, args ...any) error {
			return &yamlfile.FieldError{Path: fmt.Sprintf("$.figures[%d]", i), Err: fmt.Errorf("check figure: "+format, args...)}
		}
		need := map[string]int{"change": 2, "value": 1, "ratio": 2, "order": 2, "error": 1}
		n, ok := need[f.Compare]
		exact := f.Compare == "change" || f.Compare == "value" || f.Compare == "ratio"
		switch {
		case f.ID == "" || f.Paper == "" || f.Claim == "":
			return at("needs id, paper and claim")
		case !ok:
			return at("unknown compare %q (change, value, ratio, order or error)", f.Compare)
		case f.Compare != "error" && (len(f.Variants) < n || (exact && len(f.Variants) != n)):
			return at("%s compares %d variants", f.Compare, n)
		case (f.Compare == "change" || f.Compare == "value") && f.Published == nil && f.Least == nil && f.Most == nil:
			return at("%s needs published, or least and most", f.Compare)
		case f.Compare == "ratio" && f.Least == nil && f.Most == nil:
			return at("ratio needs least or most")
		case f.Compare == "error" && (f.Against == "" || f.Most == nil):
			return at("error needs against and most")
		case len(f.Fails) > 0 && f.Compare != "value":
			return at("fails goes with value")
		case !slices.Contains([]Verdict{"", Within, Outside, Undecided}, f.Verdict):
			return at("unknown verdict %q (within, outside or undecided)", f.Verdict)
		case f.Verdict != "" && f.Verdict != Within && f.Reason == "":
			return at("a figure that does not reproduce needs a reason")
		}
		_, fn, _ := strings.Cut(f.Metric, ":")
		if _, err := metric(&Summary{Functions: []FunctionSummary{{Name: fn}}}, f.Metric); err != nil {
			return at("%v", err)
		}
		for _, v := range append(slices.Clone(f.Variants), f.Fails...) {
			if !slices.ContainsFunc(s.Compare, func(c Variant) bool { return c.Name == v }) {
				return at("no variant %q in compare", v)
			}
		}
	}
	return nil
}

// Findings compares a result with the scenario's figures.
func (s *Scenario) Findings(r *Result) ([]Finding, error) {
	var out []Finding
	for _, f := range s.Figures {
		found, err := s.find(f, r)
		if err != nil {
			return nil, fmt.Errorf("compare figure %s: %w", f.ID, err)
		}
		out = append(out, found)
	}
	return out, nil
}

func (s *Scenario) find(f Figure, r *Result) (Finding, error) {
	if f.Compare == "error" {
		return s.heldOut(f, r)
	}
	out := Finding{Figure: f}
	values, err := f.values(r, f.Variants)
	if err != nil {
		return out, err
	}
	rivals, err := f.values(r, f.Fails)
	if err != nil {
		return out, err
	}
	f.judge(&out, values, rivals)
	return out, nil
}

// values returns the metric's values, per variant and seed.
func (f Figure) values(r *Result, variants []string) ([][]float64, error) {
	out := make([][]float64, len(variants))
	for i, name := range variants {
		for _, o := range r.Variants {
			if o.Name != name {
				continue
			}
			for _, run := range o.Runs {
				v, err := metric(run, f.Metric)
				if err != nil {
					return nil, err
				}
				if f.isShare() {
					v *= 100
				}
				out[i] = append(out[i], v)
			}
		}
	}
	return out, nil
}
