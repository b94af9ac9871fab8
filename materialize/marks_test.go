package materialize

import (
	"errors"
	"strings"
	"testing"

	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

func TestMarks(t *testing.T) {
	graph := func(id uint32, order uint64, label string) *recording.Capture {
		return &recording.Capture{Graph: &trace.Graph{ID: id, Label: label}, Order: order, Execs: 1}
	}
	unused := graph(9, 20, "")
	unused.Execs = 0
	identity := []*trace.Identity{{Key: "engine.name", Value: "x"}, {Key: "engine.version", Value: "1"}}
	phases := []recording.Phase{{Name: "structure", Order: 1}, {Name: "warmup", Order: 10}, {Name: "capture", Order: 15}, {Name: "ready", Order: 90}}
	for _, row := range []struct {
		name string
		r    *recording.Recording
		want string
	}{
		{"as it should be", &recording.Recording{Identity: identity, Phases: phases, Graphs: []*recording.Capture{graph(0, 20, "a"), graph(1, 30, "b")}}, ""},
		{"no graphs", &recording.Recording{Identity: identity, Phases: phases}, ""},
		{"a capture that is never launched", &recording.Recording{Identity: identity, Phases: phases, Graphs: []*recording.Capture{unused}}, ""},
		{"a graph of every start", &recording.Recording{Identity: identity, Phases: phases, Graphs: []*recording.Capture{graph(0, 5, ""), graph(1, 30, "b")}}, ""},
		{"a labelled graph of every start", &recording.Recording{Identity: identity, Phases: phases, Graphs: []*recording.Capture{graph(0, 5, "b"), graph(1, 30, "b")}}, ""},
		{"no identity", &recording.Recording{Phases: phases}, "stated no identity"},
		{"identity twice", &recording.Recording{Identity: append(identity, identity[0]), Phases: phases}, "engine.name occurs twice"},
		{"no label", &recording.Recording{Identity: identity, Phases: phases, Graphs: []*recording.Capture{graph(3, 30, "")}}, "graph 3 has no label"},
		{"one label twice", &recording.Recording{Identity: identity, Phases: phases, Graphs: []*recording.Capture{graph(0, 20, "a"), graph(1, 30, "a")}}, `label "a"`},
		{"captured too early", &recording.Recording{Identity: identity, Phases: phases, Graphs: []*recording.Capture{graph(0, 5, "a")}}, `"a" was captured before phase warmup`},
		{"no phases", &recording.Recording{Identity: identity, Graphs: []*recording.Capture{graph(0, 5, "a")}}, `"a" was captured before phase warmup`},
	} {
		err := checkMarks(row.r)
		var marks *MarksError
		if row.want == "" && err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if row.want != "" && (!errors.As(err, &marks) || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}
