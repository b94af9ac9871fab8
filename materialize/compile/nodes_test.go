package compile

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// Every record of a node has a row, and every type of node that the IR knows is made by one.
func TestEveryNodeTypeHasARow(t *testing.T) {
	made := map[graphir.NodeType]bool{}
	spec, err := os.ReadFile("../../interpose/trace.spec")
	if err != nil {
		t.Fatal(err)
	}
	records := regexp.MustCompile(`(?m)^record (\w+) +(\d+) graph:u32 node:u64`).FindAllStringSubmatch(string(spec), -1)
	for _, r := range records {
		if r[1] == "host_data" || r[1] == "host_changed" { // host memory that a node reads
			continue
		}
		if kind, _ := strconv.Atoi(r[2]); kind >= len(nodeTypes) || nodeTypes[kind].compile == nil {
			t.Errorf("%s: no row", r[1])
		}
	}
	if len(records) < 7 {
		t.Errorf("found %d records of nodes", len(records))
	}
	for i := range nodeTypes {
		if nodeTypes[i].compile == nil {
			continue
		}
		row := &nodeTypes[i]
		if row.kind == nil || row.words == nil || row.compare == nil {
			t.Errorf("%s: an incomplete row", trace.Type(i))
		}
		for _, n := range row.makes {
			made[n] = true
		}
	}
	for n := range 256 {
		if known := !strings.HasPrefix(graphir.NodeType(n).String(), "unknown"); known != made[graphir.NodeType(n)] {
			t.Errorf("%s: known to the IR: %v, made by a row: %v", graphir.NodeType(n), known, made[graphir.NodeType(n)])
		}
	}
}
