package main

import (
	"strings"
	"testing"
)

const output = `goos: linux
cpu: Some CPU
BenchmarkFloor/foundry-128-2  	1	321.0 ns/op	62330595 floor-ns	1.2 over-floor
BenchmarkFirst  	1	321.0 ns/op	4.5 first-ms
PASS
`

func TestAims(t *testing.T) {
	var copied strings.Builder
	results, machine, err := read(strings.NewReader(output), &copied)
	if err != nil || copied.String() != output || machine["cpu"] != "Some CPU" {
		t.Fatalf("%v %v %q", err, machine, copied.String())
	}
	text := report(results)
	for _, want := range []string{
		"aim restore over floor: 1.2 (goal 1.15) short\n",
		"aim artifact to first program: 4.5 ms (goal 5 ms) ok\n",
		"aim interposer per call: nothing (goal 50 ns) short\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
	if got := strings.Count(text, "\n"); got != len(aims) {
		t.Errorf("%d lines for %d aims", got, len(aims))
	}
}
