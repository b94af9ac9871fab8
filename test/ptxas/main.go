// Command ptxas checks PTX against NVIDIA's assembler, which it fetches from PyPI unless one is named.
//
// In: the table of texts that the simulated GPU refuses, the project's PTX files, the PTX in its C and Go sources, and a folder
// with texts that its tests load. Out: one line for each disagreement, and a summary. Fails: if the assembler accepts a text
// that the table calls wrong, or refuses any other. Each text is assembled for every target from its own on that the project
// claims.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// claimed are the targets for which the project's PTX is meant.
var claimed = []int{80, 86, 89, 90, 100, 103, 120, 121}

var targetLine = regexp.MustCompile(`(?m)^\s*\.target\s+sm_(\d+)([af]?)`)

// targets lists those that a text is to be assembled for: its own if only is set or it has a suffix.
func targets(text string, only bool) []string {
	m := targetLine.FindStringSubmatch(text)
	if m == nil {
		return []string{"sm_80"}
	}
	own, _ := strconv.Atoi(m[1])
	if only || m[2] != "" {
		return []string{"sm_" + m[1] + m[2]}
	}
	var to []string
	for _, t := range claimed {
		if t >= own {
			to = append(to, fmt.Sprint("sm_", t))
		}
	}
	return to
}

// assemble returns the assembler's first error about a text; empty if it accepts it.
func assemble(ptxas, scratch, text, target string) (string, error) {
	file, err := os.CreateTemp(scratch, "*.ptx")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(text); err != nil {
		return "", err
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	out, err := exec.Command(ptxas, "-arch", target, "-o", os.DevNull, file.Name()).CombinedOutput()
	if err == nil {
		return "", nil
	}
	said := strings.ReplaceAll(strings.TrimSpace(string(out)), file.Name(), "line ")
	if !strings.Contains(said, "ptxas") {
		return "", fmt.Errorf("run %s: %w: %s", ptxas, err, said)
	}
	return strings.SplitN(said, "\n", 2)[0], nil
}

// job is one text for one target.
type job struct {
	text
	target string
}

func run() error {
	ptxas := flag.String("ptxas", "", "the assembler; empty: fetched from PyPI")
	table := flag.String("table", "simgpu/test/ptx/refused.txt", "the texts that are refused, and right ones beside them")
	loaded := flag.String("loaded", "", "folder with PTX that tests load")
	python := flag.String("python", "python3", "a Python with pip and venv")
	root := flag.String("root", ".", "the project")
	flag.Parse()
	scratch, err := os.MkdirTemp("", "ptxas-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if *ptxas == "" {
		if *ptxas, err = fetch(*python, scratch); err != nil {
			return err
		}
	}
	texts, err := collect(*root, filepath.Join(*root, *table), *loaded)
	if err != nil {
		return err
	}
	jobs := make(chan job)
	var mu sync.Mutex
	var group sync.WaitGroup
	var runs, wrong, faults int
	var broken error
	for range 2 {
		group.Go(func() {
			for j := range jobs {
				said, err := assemble(*ptxas, scratch, j.body, j.target)
				mu.Lock()
				runs++
				switch {
				case err != nil:
					broken = err
				case j.wrong && said == "":
					faults++
					fmt.Printf("ptxas: %s for %s: accepted, but called wrong\n", j.name, j.target)
				case !j.wrong && said != "":
					faults++
					fmt.Printf("ptxas: %s for %s: %s\n", j.name, j.target, said)
				}
				mu.Unlock()
			}
		})
	}
	for _, t := range texts {
		if t.wrong {
			wrong++
		}
		for _, target := range targets(t.body, t.only) {
			jobs <- job{t, target}
		}
	}
	close(jobs)
	group.Wait()
	if broken != nil {
		return broken
	}
	if faults > 0 {
		return fmt.Errorf("%d disagreements", faults)
	}
	fmt.Printf("test-ptxas: PASS texts=%d wrong=%d runs=%d\n", len(texts), wrong, runs)
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "ptxas:", err)
		os.Exit(1)
	}
}
