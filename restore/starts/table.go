package starts

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"medusa/internal/printable"
)

// WriteTable writes the report as one table: a row per stage, a column per mode, medians in milliseconds.
func (r *Report) WriteTable(w io.Writer) error {
	printable.Fprintf(w, "%s; %s; medians of %d starts each\n\n", r.Device, r.Machine, r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(first string, cell func(Start) string) {
		printable.Fprintf(t, "%s\t", first)
		for _, s := range r.Starts {
			printable.Fprintf(t, "%s\t", cell(s))
		}
		fmt.Fprintln(t)
	}
	row("ms", func(s Start) string { return s.Mode })
	for _, name := range r.stageNames() {
		row(name, func(s Start) string {
			i := slices.IndexFunc(s.Stages, func(x Stage) bool { return x.Name == name })
			if i < 0 {
				return "-"
			}
			return s.Stages[i].text()
		})
	}
	row("total", func(s Start) string { return s.Total.text() })
	row("native / this", func(s Start) string { return fmt.Sprintf("%.2f ± %.2f", s.Ratio, s.RatioSpread) })
	if err := t.Flush(); err != nil {
		return err
	}
	note := ""
	if strings.Contains(r.Device, "Simulated") {
		note = "\nsimulated: these times say nothing about a GPU\n"
	}
	_, err := io.WriteString(w, note)
	return err
}

func (s Stage) text() string { return fmt.Sprintf("%.1f ± %.0f%%", s.Milliseconds, 100*s.Spread) }

// stageNames lists the stages of all modes in the order of their first appearance.
func (r *Report) stageNames() []string {
	var names []string
	for _, s := range r.Starts {
		for _, x := range s.Stages {
			if !slices.Contains(names, x.Name) {
				names = append(names, x.Name)
			}
		}
	}
	return names
}
