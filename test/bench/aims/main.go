// Command aims reads the output of benchmarks, passes it on, and ends with one line for each aim:
//
//	aim <name>: <measured> (goal <goal>) ok|short[, <absolute times>]
//
// In: benchmark output on standard input. Out: the same, then the aims. With -append FILE a section with machine, date,
// commit and all figures goes to the end of that Markdown file, in place of those of the same day. Fails: if the input or the
// file cannot be read or written. An aim without a measurement counts as short. The exit code is 0 even if an aim is short,
// since a noisy machine must not break a build (instruction counts guard against regressions).
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"medusa/test/bench"
)

// aim is one row of the table of aims: a metric of a benchmark and its upper bound.
type aim struct {
	name, benchmark, metric string
	goal                    float64
	unit                    string
}

var aims = []aim{
	{"compile of ten models", "Paper", "compile-s", 0.25, "s"},
	{"memory of compiling ten models", "Paper", "peak-MB", 300, "MB"},
	{"build over floor, 35 graphs of a 7B model", "Floor/llama2-7b", "over-floor", 1.05, ""},
	{"build over floor, 51 graphs of a 7B model", "Floor/vllm-51", "over-floor", 1.05, ""},
	{"build over floor, 128 graphs of 1,000 nodes", "Floor/foundry-128", "over-floor", 1.05, ""},
	{"build over floor, 256 graphs of 1,000 nodes", "Floor/foundry-256", "over-floor", 1.05, ""},
	{"own time of 35 graphs of a 7B model", "Own/llama2-7b", "own-ms", 5, "ms"},
	{"own time of 51 graphs of a 7B model", "Own/vllm-51", "own-ms", 5, "ms"},
	{"own time a node, from 128 to 256 graphs of 1,000 nodes", "Own/foundry-256", "own-ns/node-more", 150, "ns"},
	{"artifact to first program", "First", "first-ms", 5, "ms"},
	{"graph part of 12,000 to 16,000 nodes", "GraphPart", "graph-MB", 1, "MB"},
	{"decoding it", "GraphPart", "graph-decode-ms", 10, "ms"},
	{"graph part of the reference engine's 7B model", "Recorded", "graph-MB", 1, "MB"},
	{"decoding it as well", "Recorded", "graph-decode-ms", 10, "ms"},
	{"interposer per call, exact addresses", "ReplayCall/exact", "worst-ns/call", 100, "ns"},
	{"interposer in the start of a 7B model, exact addresses", "ReplayCall/exact", "us/start", 1000, "us"},
	{"interposer per call, relocated addresses", "ReplayCall/relocated", "worst-ns/call", 50, "ns"},
	{"interposer in the start of a 7B model, relocated addresses", "ReplayCall/relocated", "us/start", 1000, "us"},
	{"allocations of 64 MiB over the driver's own calls for a chosen address", "LargeMemory", "over-mapped", 1.1, ""},
	{"memory of 10,000,000 nodes over 1,000,000", "Large", "memory-ratio", 1.5, ""},
	{"time a node of 10,000,000 over 10,000", "Large", "time-ratio", 1.5, ""},
}

func main() {
	history := flag.String("append", "", "Markdown `file` that gets a section with this run")
	command := flag.String("command", "make bench", "what made the figures, for the file")
	commit := flag.String("commit", "", "what was measured, for the file")
	flag.Parse()
	results, machine, err := bench.ReadResults(os.Stdin, os.Stdout)
	if err == nil {
		fmt.Print(report(results))
		if *history != "" {
			err = appendTo(*history, section(time.Now().UTC(), *command, *commit, machine, results))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "aims:", err)
		os.Exit(1)
	}
}

func report(results []bench.Result) string {
	var b strings.Builder
	for _, a := range aims {
		value, ok := bench.Find(results, a.benchmark, a.metric)
		verdict, measured := "short", "nothing"
		if ok {
			measured = number(value, a.unit)
			if value <= a.goal {
				verdict = "ok"
			}
		}
		fmt.Fprintf(&b, "aim %s: %s (goal %s) %s%s\n", a.name, measured, number(a.goal, a.unit), verdict, a.times(results))
	}
	return b.String()
}

// times returns the times of which an over-floor ratio is made: build and floor.
func (a aim) times(results []bench.Result) string {
	build, ok := bench.Find(results, a.benchmark, "build-ns")
	floor, and := bench.Find(results, a.benchmark, "floor-ns")
	if !ok || !and {
		return ""
	}
	return fmt.Sprintf(", build %s, floor %s", number(build/1e6, "ms"), number(floor/1e6, "ms"))
}

func number(v float64, unit string) string {
	text := strconv.FormatFloat(v, 'g', 4, 64)
	if unit == "" {
		return text
	}
	return text + " " + unit
}

// section is one entry of the history.
func section(now time.Time, command, commit string, machine map[string]string, results []bench.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n`%s` of %s on %s, %s/%s; driver: a stub (test/bench/stub), no GPU.\n\n", heading(now), command, commit,
		machine["cpu"], machine["goos"], machine["goarch"])
	fmt.Fprintf(&b, "```\n%s```\n\n| benchmark | metric | value |\n|---|---|---|\n", report(results))
	for _, r := range results {
		for _, unit := range units(r) {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r.Name, unit, number(r.Metrics[unit], ""))
		}
	}
	return b.String()
}

func heading(now time.Time) string { return "## " + now.Format(time.DateOnly) }

// appendTo ends the file with an entry, whose first line is its heading. It removes earlier entries of the same day.
func appendTo(path, entry string) error {
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(replaceDay(string(data), entry)), 0o644)
	}
	if err != nil {
		return fmt.Errorf("append to history: %w", err)
	}
	return nil
}

func replaceDay(history, entry string) string {
	const start = "\n## "
	day, _, _ := strings.Cut(entry, "\n")
	parts := strings.Split(history, start)
	parts = slices.DeleteFunc(parts, func(part string) bool {
		title, _, _ := strings.Cut(part, "\n")
		return "## "+title == day
	})
	return strings.TrimRight(strings.Join(parts, start), "\n") + "\n\n" + entry
}

// units lists a result's metrics in order, without those that the testing package adds.
func units(r bench.Result) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.Metrics)), func(unit string) bool {
		return unit == "ns/op" || unit == "B/op" || unit == "allocs/op"
	})
}
