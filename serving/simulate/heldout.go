package simulate

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"medusa/internal/yamlfile"
)

// PointError compares a published value with the simulated one, and with a constant: the median of the published values that
// calibrated the simulator, for all rates. If the constant is as close, the simulator's closeness is no evidence for it.
type PointError struct {
	Variant                   string
	Published, Ours, Constant float64 // Constant is 0 if the figure names no rows for it
}

// Error is the relative error of our value.
func (p *PointError) Error() float64 { return math.Abs(p.Ours/p.Published - 1) }

// ConstantError is the relative error of the constant.
func (p *PointError) ConstantError() float64 { return math.Abs(p.Constant/p.Published - 1) }

// heldOut judges the median error over all variants against the published table.
func (s *Scenario) heldOut(f Figure, r *Result) (Finding, error) {
	out := Finding{Figure: f, Published: fmt.Sprintf("median error ≤ %.0f %%", *f.Most*100), Verdict: Within}
	published, err := readPublished(filepath.Join(s.dir, f.Against), f.Against, f.Metric)
	if err != nil {
		return out, err
	}
	var errs, constants []float64
	nearer := 0
	for i := range r.Variants {
		o := &r.Variants[i]
		p := PointError{Variant: o.Name}
		var ok bool
		if p.Published, ok = published[o.Name]; !ok {
			return out, fmt.Errorf("read published values: %s has no row %q", f.Against, o.Name)
		}
		if p.Ours, err = metric(o.Runs[0], f.Metric); err != nil {
			return out, err
		}
		if p.Constant, err = f.constant(o.Name, published); err != nil {
			return out, err
		}
		errs, constants = append(errs, p.Error()), append(constants, p.ConstantError())
		if p.Error() < p.ConstantError() {
			nearer++
		}
		out.Points = append(out.Points, p)
	}
	slices.Sort(errs)
	slices.Sort(constants)
	slices.SortStableFunc(out.Points, func(a, b PointError) int { return cmp.Compare(b.Error(), a.Error()) })
	median := quantile(errs, 0.5)
	if median > *f.Most {
		out.Verdict = Outside
	}
	out.Ours = fmt.Sprintf("%.1f %% over %d points", median*100, len(errs))
	if len(f.Constant) > 0 {
		out.Ours += fmt.Sprintf("; constant predictor %.1f %%; ours is nearer at %d", quantile(constants, 0.5)*100, nearer)
	}
	out.Ours += fmt.Sprintf("; worst %.0f %%", errs[len(errs)-1]*100)
	return out, nil
}

// constant is the median of the published rows that the figure lists and that differ from name only in the last word.
func (f Figure) constant(name string, published map[string]float64) (float64, error) {
	if len(f.Constant) == 0 {
		return 0, nil
	}
	series := name[:strings.LastIndex(name, " ")+1]
	var values []float64
	for _, word := range f.Constant {
		v, ok := published[series+word]
		if !ok || series+word == name {
			return 0, fmt.Errorf("make constant predictor of %s: no row %q, or it is the one predicted", name, series+word)
		}
		values = append(values, v)
	}
	slices.Sort(values)
	return quantile(values, 0.5), nil
}

// readPublished reads one column of a CSV file by the names in its first column.
func readPublished(path, name, column string) (map[string]float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read published values: %w", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, csvError(name, err)
	}
	at := -1
	if len(rows) > 0 {
		at = slices.Index(rows[0], column)
	}
	if at < 1 {
		return nil, fmt.Errorf("read published values: %s has no column %s", name, column)
	}
	out := map[string]float64{}
	for i, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[at], 64)
		if err != nil || v == 0 {
			return nil, &yamlfile.Error{File: name, Line: i + 2, Column: 1, Err: fmt.Errorf("read published values: %q is no measurement", row[at])}
		}
		out[row[0]] = v
	}
	return out, nil
}
