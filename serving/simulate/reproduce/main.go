// Command reproduce runs every scenario of package simulate and compares the results with the published figures that the scenario
// names. It prints a line per figure and the count as its last line. With -write it renews the tables of the page.
//
// It exits with status 1 if a figure's verdict differs from the one in its scenario file, or if the page shows other numbers.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"medusa/serving/simulate"
)

func main() {
	scenarios := flag.String("scenarios", "serving/simulate/scenarios", "folder of scenario files")
	page := flag.String("page", "docs/reproduction.md", "page that shows the outcome")
	write := flag.Bool("write", false, "renew the page instead of comparing it")
	flag.Parse()
	if err := run(*scenarios, *page, *write); err != nil {
		fmt.Fprintf(os.Stderr, "reproduce: %v\n", err)
		os.Exit(1)
	}
}

func run(scenarios, page string, write bool) error {
	files, err := list(scenarios)
	if err != nil {
		return err
	}
	all, err := collect(files)
	if err != nil {
		return err
	}
	surprises := 0
	for _, s := range all {
		for _, f := range s.findings {
			verdict := string(f.Verdict)
			if !f.Expected() {
				surprises++
				verdict += " (unexpected)"
			}
			fmt.Printf("%-9s %-26s published %s; ours %s\n", verdict, f.Figure.ID, f.Published, f.Ours)
		}
	}
	stale, err := show(page, write, all)
	if err != nil {
		return err
	}
	fmt.Printf("reproduce: %s\n", score(all))
	if surprises > 0 {
		return fmt.Errorf("check figures: %d verdicts differ from those in their scenario files", surprises)
	}
	if stale {
		return fmt.Errorf("check %s: it shows other numbers (run make reproduce-page)", page)
	}
	return nil
}

// show renews the page, or reports that it is out of date.
func show(name string, write bool, all []outcome) (stale bool, err error) {
	page, err := os.ReadFile(name)
	if err != nil {
		return false, fmt.Errorf("read page: %w", err)
	}
	renewed, err := renew(string(page), all)
	if err != nil || !write {
		return renewed != string(page), err
	}
	if err := os.WriteFile(name, []byte(renewed), 0o644); err != nil {
		return false, fmt.Errorf("write page: %w", err)
	}
	return false, nil
}

// score counts the verdicts.
func score(all []outcome) string {
	n := map[simulate.Verdict]int{}
	for _, o := range all {
		for _, f := range o.findings {
			n[f.Verdict]++
		}
	}
	return fmt.Sprintf("%d within tolerance, %d outside, %d undecided", n[simulate.Within], n[simulate.Outside], n[simulate.Undecided])
}

// outcome is one scenario that names figures, with the result of running it.
type outcome struct {
	file     string
	scenario *simulate.Scenario
	result   *simulate.Result
	findings []simulate.Finding
}

// list names all scenarios of a folder in order.
func list(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list scenarios: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("list scenarios: none in %s", dir)
	}
	return files, nil
}

// collect runs scenarios and returns them in the order given.
func collect(files []string) ([]outcome, error) {
	out := make([]outcome, len(files))
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for i, file := range files {
		group.Go(func() (err error) {
			out[i], err = play(file)
			return err
		})
	}
	return out, group.Wait()
}

func play(file string) (outcome, error) {
	s, err := simulate.LoadScenario(file)
	if err != nil {
		return outcome{}, err
	}
	r, err := simulate.Run(s, nil, nil)
	if err != nil {
		return outcome{}, fmt.Errorf("run %s: %w", file, err)
	}
	found, err := s.Findings(r)
	if err != nil {
		return outcome{}, fmt.Errorf("run %s: %w", file, err)
	}
	return outcome{filepath.Base(file), s, r, found}, nil
}

const (
	begin = "<!-- begin generated: make reproduce-page -->"
	end   = "<!-- end generated -->"
)

// renew replaces the generated part of the page.
func renew(page string, all []outcome) (string, error) {
	i, j := strings.Index(page, begin), strings.Index(page, end)
	if i < 0 || j < i {
		return "", fmt.Errorf("renew page: no %q and %q", begin, end)
	}
	return page[:i+len(begin)] + "\n" + tables(all) + page[j:], nil
}

// tables returns the generated part: the count, and a section for each scenario.
func tables(all []outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s.\n", score(all))
	for _, o := range all {
		b.WriteString(section(o))
	}
	return b.String() + "\n"
}

// section shows each figure of a scenario, our value, and the reason of a difference.
func section(o outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n`serving/simulate/scenarios/%s`", o.scenario.Title, o.file)
	if n := strings.TrimSpace(o.scenario.Notes); n != "" {
		fmt.Fprintf(&b, ". %s", n)
	}
	b.WriteString("\n\n")
	if len(o.findings) == 0 {
		own(&b, o.result)
		return b.String()
	}
	b.WriteString("| | figure | claim | published | ours | difference, reading taken |\n|---|---|---|---|---|---|\n")
	for _, f := range o.findings {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", marks[f.Verdict], f.Figure.Paper, f.Figure.Claim, f.Published, f.Ours, f.Figure.Reason)
	}
	for _, f := range o.findings {
		if len(f.Points) > 0 {
			worst(&b, f)
		}
	}
	return b.String()
}

var marks = map[simulate.Verdict]string{simulate.Within: "✓", simulate.Outside: "✗", simulate.Undecided: "≈"}

// worst shows the points with the largest errors of the simulator, and the constant predictor's values for them.
func worst(b *strings.Builder, f simulate.Finding) {
	const rows = 5
	fmt.Fprintf(b, "\nThe %d worst points of %d, %s:\n\n| point | logged | simulated | error | constant | its error |\n|---|---|---|---|---|---|\n", rows, len(f.Points), f.Figure.Metric)
	for _, p := range f.Points[:min(rows, len(f.Points))] {
		constant, its := "", ""
		if p.Constant > 0 {
			constant, its = fmt.Sprintf("%.3f", p.Constant), fmt.Sprintf("%.1f %%", p.ConstantError()*100)
		}
		fmt.Fprintf(b, "| %s | %.3f | %.3f | %.1f %% | %s | %s |\n", p.Variant, p.Published, p.Ours, p.Error()*100, constant, its)
	}
}

// own shows a scenario without a published result.
func own(b *strings.Builder, r *simulate.Result) {
	b.WriteString("| variant | p50 TTFT s | p99 TTFT s | cold starts % | GPU seconds |\n|---|---|---|---|---|\n")
	for i := range r.Variants {
		o := &r.Variants[i]
		cell := func(format string, value func(*simulate.Summary) float64) string {
			e := o.Estimate(value)
			return fmt.Sprintf(format+" ± "+format, e.Mean, e.Half)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", o.Name,
			cell("%.2f", func(s *simulate.Summary) float64 { return s.TTFTP50 }),
			cell("%.1f", func(s *simulate.Summary) float64 { return s.TTFTP99 }),
			cell("%.1f", func(s *simulate.Summary) float64 { return s.ColdRatio * 100 }),
			cell("%.0f", func(s *simulate.Summary) float64 { return s.GPUSeconds }))
	}
}
