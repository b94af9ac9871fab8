package main

import (
	"bytes"
	"strings"
	"testing"

	"medusa/materialize/compile"
)

// A word is placed against its neighbours in words, before, in or behind them.
func TestExplanationPlacesWords(t *testing.T) {
	var out bytes.Buffer
	near := []compile.Neighbour{{Alloc: 1, Space: "alloc", Addr: 0x1000, Size: 32, Distance: 8}, {Alloc: 2, Space: "alloc", Addr: 0x1010, Size: 32, Distance: -8},
		{Alloc: 3, Space: "alloc", Addr: 0xf00, Size: 32, Distance: 264}}
	if err := writeExplanation(&out, &compile.Explanation{Words: []compile.ExplainedWord{{A: 0x1008, NearA: near}}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"alloc#1 at 0x1000, 32 bytes: the word points to its byte 8\n", "the word points 8 bytes before its first byte\n",
		"the word points 233 bytes behind its last byte\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
