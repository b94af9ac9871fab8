package compile

import (
	"slices"
	"strings"
	"testing"

	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

func TestNotes(t *testing.T) {
	type note struct{ name, value string }
	for _, tt := range []struct {
		name string
		a, b []note
		want []note
		err  string
	}{
		{"none", nil, nil, nil, ""},
		{"the last value, by name", []note{{"b", "1"}, {"a", "2"}, {"b", "3"}}, []note{{"a", "2"}, {"b", "3"}}, []note{{"a", "2"}, {"b", "3"}}, ""},
		{"another value", []note{{"a", "1"}}, []note{{"a", "2"}}, nil, `note "a": it differs`},
		{"another name", []note{{"a", "1"}}, []note{{"b", "1"}}, nil, `note "a": it differs`},
		{"one more", []note{{"a", "1"}}, []note{{"a", "1"}, {"b", "1"}}, nil, "1 in record-a, 2 in record-b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var runs [2]*recording.Recording
			for i, notes := range [][]note{tt.a, tt.b} {
				tp := newTape(byte(i + 1))
				tp.phase("capture")
				for _, n := range notes {
					tp.add(&trace.Note{Name: n.name, Value: []byte(n.value)})
				}
				tp.phase("ready")
				runs[i] = tp.recording(t)
			}
			notes, err := compileNotes(runs[0].Notes, runs[1].Notes)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			var got []note
			for _, n := range notes {
				got = append(got, note{n.Name, string(n.Value)})
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}
