package materialize

import (
	"errors"
	"strings"
	"testing"

	"medusa/interpose/trace"
)

func TestMarks(t *testing.T) {
	graph := func(id uint32, order uint64, label string) *capture {
		return &capture{Graph: &trace.Graph{ID: id, Label: label}, order: order, execs: 1}
	}
	unused := graph(9, 20, "")
	unused.execs = 0
	identity := []*trace.Identity{{Key: "engine.name", Value: "x"}, {Key: "engine.version", Value: "1"}}
	phases := []phase{{"structure", 1, 0}, {"warmup", 10, 0}, {"capture", 15, 0}, {"ready", 90, 0}}
	for _, row := range []struct {
		name string
		r    *Recording
		want string
	}{
		{"as it should be", &Recording{identity: identity, phases: phases, graphs: []*capture{graph(0, 20, "a"), graph(1, 30, "b")}}, ""},
		{"no graphs", &Recording{identity: identity, phases: phases}, ""},
		{"a capture that is never launched", &Recording{identity: identity, phases: phases, graphs: []*capture{unused}}, ""},
		{"a graph of every start", &Recording{identity: identity, phases: phases, graphs: []*capture{graph(0, 5, ""), graph(1, 30, "b")}}, ""},
		{"a labelled graph of every start", &Recording{identity: identity, phases: phases, graphs: []*capture{graph(0, 5, "b"), graph(1, 30, "b")}}, ""},
		{"no identity", &Recording{phases: phases}, "stated no identity"},
		{"identity twice", &Recording{identity: append(identity, identity[0]), phases: phases}, "engine.name occurs twice"},
		{"no label", &Recording{identity: identity, phases: phases, graphs: []*capture{graph(3, 30, "")}}, "graph 3 has no label"},
		{"one label twice", &Recording{identity: identity, phases: phases, graphs: []*capture{graph(0, 20, "a"), graph(1, 30, "a")}}, `label "a"`},
		{"captured too early", &Recording{identity: identity, phases: phases, graphs: []*capture{graph(0, 5, "a")}}, `"a" was captured before phase warmup`},
		{"no phases", &Recording{identity: identity, graphs: []*capture{graph(0, 5, "a")}}, `"a" was captured before phase warmup`},
	} {
		err := row.r.checkMarks()
		var marks *MarksError
		if row.want == "" && err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if row.want != "" && (!errors.As(err, &marks) || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}
