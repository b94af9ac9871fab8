// Command reproduce runs every scenario of package simulate and holds the outcome against the published figures named in
// it. It prints a line per figure and the count as its last line. With -write it renews the tables of the page given.
//
// It ends with status 1 if a figure does not come out as its scenario file says it does.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"medusa/simulate"
)

func main() {
	scenarios := flag.String("scenarios", "simulate/scenarios", "folder of scenario files")
	write := flag.String("write", "", "page to renew")
	flag.Parse()
	if err := run(*scenarios, *write); err != nil {
		fmt.Fprintf(os.Stderr, "reproduce: %v\n", err)
		os.Exit(1)
	}
}

func run(scenarios, write string) error {
	all, err := collect(scenarios)
	if err != nil {
		return err
	}
	within, outside, surprises := 0, 0, 0
	for _, s := range all {
		for _, f := range s.findings {
			verdict := "within"
			if f.Within {
				within++
			} else {
				verdict = "outside"
				outside++
			}
			if f.Within == f.Figure.Outside {
				surprises++
				verdict += " (unexpected)"
			}
			fmt.Printf("%-8s %-26s published %s; ours %s\n", verdict, f.Figure.ID, f.Published, f.Ours)
		}
	}
	if write != "" {
		page, err := os.ReadFile(write)
		if err != nil {
			return fmt.Errorf("read page: %w", err)
		}
		renewed, err := renew(string(page), all)
		if err != nil {
			return err
		}
		if err := os.WriteFile(write, []byte(renewed), 0o644); err != nil {
			return fmt.Errorf("write page: %w", err)
		}
	}
	fmt.Printf("reproduce: %d within tolerance, %d outside\n", within, outside)
	if surprises > 0 {
		return fmt.Errorf("check figures: %d differ from what their scenario files say", surprises)
	}
	return nil
}

// outcome is one scenario that names figures, with the result of running it.
type outcome struct {
	file     string
	scenario *simulate.Scenario
	result   *simulate.Result
	findings []simulate.Finding
}

// collect runs all scenarios of a folder and returns them in the order of their names.
func collect(dir string) ([]outcome, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list scenarios: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("list scenarios: none in %s", dir)
	}
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
	r, err := simulate.Run(s, nil)
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

// tables puts each figure, ours, and the reason of a difference side by side.
func tables(all []outcome) string {
	var b strings.Builder
	within, outside := 0, 0
	for _, o := range all {
		fmt.Fprintf(&b, "\n### %s\n\n`simulate/scenarios/%s`", o.scenario.Title, o.file)
		if n := strings.TrimSpace(o.scenario.Notes); n != "" {
			fmt.Fprintf(&b, ". %s", n)
		}
		b.WriteString("\n\n")
		if len(o.findings) == 0 {
			own(&b, o.result)
			continue
		}
		b.WriteString("| | figure | claim | published | ours | difference, reading taken |\n|---|---|---|---|---|---|\n")
		for _, f := range o.findings {
			mark := "✓"
			if f.Within {
				within++
			} else {
				mark = "✗"
				outside++
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", mark, f.Figure.Paper, f.Figure.Claim, f.Published, f.Ours, f.Figure.Reason)
		}
	}
	return fmt.Sprintf("\n%d within tolerance, %d outside.\n", within, outside) + b.String() + "\n"
}

// own shows a scenario that reproduces nothing, since no paper has its result.
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
