package simulate

import (
	"fmt"
	"io"
	"text/tabwriter"

	"medusa/internal/printable"
)

// columnsOf are the table's columns: title, format and value.
var columnsOf = []struct {
	title  string
	format string
	value  func(*Summary) float64
}{
	{"TTFT p50 s", "%.3f", func(s *Summary) float64 { return s.TTFTP50 }},
	{"p90", "%.3f", func(s *Summary) float64 { return s.TTFTP90 }},
	{"p99", "%.3f", func(s *Summary) float64 { return s.TTFTP99 }},
	{"req/s", "%.2f", func(s *Summary) float64 { return s.Throughput }},
	{"cold %", "%.1f", func(s *Summary) float64 { return s.ColdRatio * 100 }},
	{"GPU s", "%.0f", func(s *Summary) float64 { return s.GPUSeconds }},
	{"Jain", "%.3f", func(s *Summary) float64 { return s.Jain }},
	{"SLO %", "%.1f", func(s *Summary) float64 { return s.SLO * 100 }},
}

// WriteTable writes one row per variant, and with functions one per function below it. With several seeds a value is the mean and the half width of
// its 95 % confidence interval.
func (r *Result) WriteTable(w io.Writer, functions bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "variant\t")
	for _, c := range columnsOf {
		fmt.Fprintf(t, "%s\t", c.title)
	}
	fmt.Fprintln(t)
	for i := range r.Variants {
		o := &r.Variants[i]
		printable.Fprintf(t, "%s\t", o.Name)
		for _, c := range columnsOf {
			e := o.Estimate(c.value)
			fmt.Fprintf(t, c.format, e.Mean)
			if len(o.Runs) > 1 {
				fmt.Fprintf(t, " ±"+c.format, e.Half)
			}
			fmt.Fprint(t, "\t")
		}
		fmt.Fprintln(t)
		if !functions {
			continue
		}
		// The functions are those of the first seed. JSON has their spread.
		for _, f := range o.Runs[0].Functions {
			printable.Fprintf(t, "%s\t", f.Name)
			s := &Summary{Spread: f.Spread}
			for _, c := range columnsOf {
				if c.title == "Jain" {
					fmt.Fprint(t, "\t")
					continue
				}
				fmt.Fprintf(t, c.format+"\t", c.value(s))
			}
			fmt.Fprintln(t)
		}
	}
	for i := range r.Variants {
		if s := r.Variants[i].Runs[0]; s.Served < s.Requests {
			printable.Fprintf(t, "%s: %d of %d requests could never run\t\n", r.Variants[i].Name, s.Requests-s.Served, s.Requests)
		}
	}
	return t.Flush()
}

// WriteJSON writes the whole result.
func (r *Result) WriteJSON(w io.Writer) error {
	return printable.JSON(w, r)
}
