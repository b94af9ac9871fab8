package simulate

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Figure is a published result and how a scenario's outcome compares with it. Exactly one of the comparisons is used:
//
//	change      percent by which Metric changes from the first of Variants to the second; Published within Points points
//	value       Metric of the one variant; Published within Points (points for a share, given in percent)
//	ratio       Metric of the first over that of the second; at least Least, at most Most
//	order       Metric rises from each variant to the next, exactly; with Or equal, does not fall
//	error       median relative error over the variants against a file of published values; at most Most
type Figure struct {
	ID        string   `yaml:"id"`
	Paper     string   `yaml:"paper"`     // paper and figure, table or section
	Claim     string   `yaml:"claim"`     // what the paper says, in short
	Compare   string   `yaml:"compare"`   // change, value, ratio, order or error
	Metric    string   `yaml:"metric"`    // a name in the JSON of Summary, or name:function for a function's or model's
	Variants  []string `yaml:"variants"`  // names in compare
	Published *float64 `yaml:"published"` // for change, value
	Points    *float64 `yaml:"points"`    // tolerance; default 5
	Least     *float64 `yaml:"least"`
	Most      *float64 `yaml:"most"`
	OrEqual   bool     `yaml:"or_equal"`
	Against   string   `yaml:"against"` // error: CSV with a column variant and one named as the metric
	Reason    string   `yaml:"reason"`  // of a difference, or the reading of an ambiguous text
	Outside   bool     `yaml:"outside"` // known not to reproduce; the test then fails if it does
}

// Finding is a figure beside our result.
type Finding struct {
	Figure    Figure `json:"figure"`
	Published string `json:"published"`
	Ours      string `json:"ours"`
	Within    bool   `json:"within"`
}

// metric reads one number out of a summary by its JSON name, so that scenario files and results share their vocabulary.
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
		// The lists are no metrics, and encoding them would take long.
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

// checkFigures finds faults that do not need a run.
func (s *Scenario) checkFigures() error {
	for i, f := range s.Figures {
		at := func(format string, args ...any) error {
			return &FieldError{Path: fmt.Sprintf("$.figures[%d]", i), Err: fmt.Errorf("check figure: "+format, args...)}
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
		}
		_, fn, _ := strings.Cut(f.Metric, ":")
		if _, err := metric(&Summary{Functions: []FunctionSummary{{Name: fn}}}, f.Metric); err != nil {
			return at("%v", err)
		}
		for _, v := range f.Variants {
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
	out := Finding{Figure: f}
	if f.Compare == "error" {
		worst, n, err := s.medianError(f, r)
		if err != nil {
			return out, err
		}
		out.Published = fmt.Sprintf("median error ≤ %.0f %%", *f.Most*100)
		out.Ours = fmt.Sprintf("%.1f %% over %d points", worst*100, n)
		out.Within = worst <= *f.Most
		return out, nil
	}
	values := make([]float64, len(f.Variants))
	for i, name := range f.Variants {
		for _, o := range r.Variants {
			if o.Name != name {
				continue
			}
			var err error
			values[i] = o.Estimate(func(s *Summary) float64 {
				v, e := metric(s, f.Metric)
				if e != nil {
					err = e
				}
				return v
			}).Mean
			if err != nil {
				return out, err
			}
		}
	}
	f.judge(&out, values)
	return out, nil
}

// judge fills in the finding from the values of the variants.
func (f Figure) judge(out *Finding, values []float64) {
	points := 5.0
	if f.Points != nil {
		points = *f.Points
	}
	within := func(v float64) bool {
		if f.Published != nil && math.Abs(v-*f.Published) > points {
			return false
		}
		return (f.Least == nil || v >= *f.Least) && (f.Most == nil || v <= *f.Most)
	}
	switch f.Compare {
	case "change":
		v := (values[1]/values[0] - 1) * 100
		out.Ours, out.Within, out.Published = fmt.Sprintf("%+.1f %%", v), within(v), f.target("%+.4g %%")
	case "value":
		v := values[0]
		if strings.HasSuffix(strings.Split(f.Metric, ":")[0], "_ratio") {
			v *= 100
			out.Ours, out.Published = fmt.Sprintf("%.1f %%", v), f.target("%.4g %%")
		} else {
			out.Ours, out.Published = fmt.Sprintf("%.4g", v), f.target("%.4g")
		}
		out.Within = within(v)
	case "ratio":
		v := values[0] / values[1]
		out.Ours, out.Within, out.Published = fmt.Sprintf("%.2f×", v), within(v), f.target("%.4g×")
	case "order":
		out.Within = true
		var ours []string
		for i, v := range values {
			ours = append(ours, fmt.Sprintf("%s %.3g", f.Variants[i], v))
			if i > 0 && (v < values[i-1] || (v == values[i-1] && !f.OrEqual)) {
				out.Within = false
			}
		}
		sign := " < "
		if f.OrEqual {
			sign = " ≤ "
		}
		out.Published, out.Ours = strings.Join(f.Variants, sign), strings.Join(ours, ", ")
	}
}

// target writes what a value is compared with.
func (f Figure) target(format string) string {
	switch {
	case f.Published != nil:
		return fmt.Sprintf(format, *f.Published)
	case f.Least != nil && f.Most != nil:
		return fmt.Sprintf(format+" to "+format, *f.Least, *f.Most)
	case f.Least != nil:
		return "≥ " + fmt.Sprintf(format, *f.Least)
	}
	return "≤ " + fmt.Sprintf(format, *f.Most)
}

// medianError is the median over all variants of the relative error against the published table.
func (s *Scenario) medianError(f Figure, r *Result) (median float64, n int, err error) {
	file, err := os.Open(filepath.Join(s.dir, f.Against))
	if err != nil {
		return 0, 0, fmt.Errorf("read published values: %w", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return 0, 0, csvError(f.Against, err)
	}
	column := -1
	if len(rows) > 0 {
		column = slices.Index(rows[0], f.Metric)
	}
	if column < 1 {
		return 0, 0, fmt.Errorf("read published values: %s has no column %s", f.Against, f.Metric)
	}
	published := map[string]float64{}
	for i, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[column], 64)
		if err != nil || v == 0 {
			return 0, 0, &FileError{File: f.Against, Line: i + 2, Column: 1, Err: fmt.Errorf("read published values: %q is no measurement", row[column])}
		}
		published[row[0]] = v
	}
	var errs []float64
	for i := range r.Variants {
		o := &r.Variants[i]
		want, ok := published[o.Name]
		if !ok {
			return 0, 0, fmt.Errorf("read published values: %s has no row %q", f.Against, o.Name)
		}
		var got float64
		if got, err = metric(o.Runs[0], f.Metric); err != nil {
			return 0, 0, err
		}
		errs = append(errs, math.Abs(got/want-1))
	}
	slices.Sort(errs)
	return quantile(errs, 0.5), len(errs), nil
}
