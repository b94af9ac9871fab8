package bench

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Result is a line of benchmark output: its metrics by unit.
type Result struct {
	Name    string
	Metrics map[string]float64
}

// ReadResults parses lines such as "BenchmarkName-2  1  12 ns/op  3.4 metric", and copies everything to out. machine is
// the head of the output: goos, goarch and cpu.
func ReadResults(in io.Reader, out io.Writer) (results []Result, machine map[string]string, err error) {
	machine = map[string]string{}
	s := bufio.NewScanner(in)
	for s.Scan() {
		fmt.Fprintln(out, s.Text())
		if key, value, ok := strings.Cut(s.Text(), ": "); ok && (key == "goos" || key == "goarch" || key == "cpu") {
			machine[key] = value
		}
		words := strings.Fields(s.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(words[0], "Benchmark")
		if cut := strings.LastIndexByte(name, '-'); cut > 0 {
			if _, err := strconv.Atoi(name[cut+1:]); err == nil {
				name = name[:cut]
			}
		}
		r := Result{Name: name, Metrics: map[string]float64{}}
		for i := 2; i+1 < len(words); i += 2 {
			value, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return nil, nil, fmt.Errorf("read benchmark %s: %w", name, err)
			}
			r.Metrics[words[i+1]] = value
		}
		results = append(results, r)
	}
	return results, machine, s.Err()
}

// Find returns a metric of a benchmark.
func Find(results []Result, benchmark, metric string) (float64, bool) {
	for _, r := range results {
		if v, ok := r.Metrics[metric]; ok && r.Name == benchmark {
			return v, true
		}
	}
	return 0, false
}
