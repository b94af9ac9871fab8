package main

import (
	"strings"
	"testing"
	"time"

	"medusa/test/bench"
)

const output = `goos: linux
cpu: Some CPU
BenchmarkFloor/foundry-128-2  	1	321.0 ns/op	74796714 build-ns	62330595 floor-ns	1.2 over-floor
BenchmarkFirst  	1	321.0 ns/op	4.5 first-ms
PASS
`

func TestAims(t *testing.T) {
	var copied strings.Builder
	results, machine, err := bench.ReadResults(strings.NewReader(output), &copied)
	if err != nil || copied.String() != output || machine["cpu"] != "Some CPU" {
		t.Fatalf("%v %v %q", err, machine, copied.String())
	}
	text := report(results)
	for _, want := range []string{
		"aim build over floor, 128 graphs of 1,000 nodes: 1.2 (goal 1.05) short, build 74.8 ms, floor 62.33 ms\n",
		"aim artifact to first program: 4.5 ms (goal 5 ms) ok\n",
		"aim interposer per call, exact addresses: nothing (goal 100 ns) short\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
	if got := strings.Count(text, "\n"); got != len(aims) {
		t.Errorf("%d lines for %d aims", got, len(aims))
	}
}

// The history keeps one entry a day, and the text before the first.
func TestHistory(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2026, 11, d, 12, 0, 0, 0, time.UTC) }
	results := func(v float64) []bench.Result {
		return []bench.Result{{Name: "First", Metrics: map[string]float64{"first-ms": v}}}
	}
	entry := func(d int, v float64) string { return section(day(d), "make bench", "abc", nil, results(v)) }
	history := "# Benchmarks\n\n## History\n\nText.\n"
	for _, e := range []string{entry(1, 1), entry(2, 2), entry(2, 3), entry(3, 4), entry(3, 5)} {
		history = replaceDay(history, e)
	}
	if want := "# Benchmarks\n\n## History\n\nText.\n\n" + entry(1, 1) + "\n" + entry(2, 3) + "\n" + entry(3, 5); history != want {
		t.Errorf("history\n%s\nwant\n%s", history, want)
	}
}
