package status

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

func TestOfEngines(t *testing.T) {
	restored := Status{Status: Restored, Graphs: 4, Spans: map[string]float64{"read": 1, "build": 5}, Phases: []Phase{{"import", 0}, {"weights", 3}, {"ready", 7}}}
	slow := Status{Status: Restored, Graphs: 4, Spans: map[string]float64{"read": 2, "build": 4}, Phases: []Phase{{"import", 0}, {"weights", 2}, {"ready", 8}}}
	native := Status{Status: Native, Reason: "memory", Detail: "full", Phases: []Phase{{"import", 0}, {"weights", 1}, {"capture", 2}, {"ready", 9}}}
	sticky := Status{Status: Sticky, Detail: "lost"}
	for name, tt := range map[string]struct {
		all  []*Status
		want Status
	}{
		"all restored": {[]*Status{&restored, &slow}, Status{Status: Restored, Graphs: 4, Milliseconds: 7, Spans: map[string]float64{"read": 2, "build": 5},
			Phases: []Phase{{"import", 0}, {"weights", 3}, {"ready", 8}}}},
		"one native": {[]*Status{&restored, &native}, Status{Status: Native, Reason: "memory", Detail: "engine 1 of 2 is native: memory: full",
			Milliseconds: 6, Spans: restored.Spans, Phases: []Phase{{"import", 0}, {"weights", 3}, {"capture", 3}, {"ready", 9}}}},
		"alike": {[]*Status{&native, &native}, Status{Status: Native, Reason: "memory", Detail: "full", Spans: map[string]float64{}, Phases: native.Phases}},
		"one lost its device": {[]*Status{&native, &sticky, &restored}, Status{Status: Sticky,
			Detail: "engine 0 of 3 is native: memory: full; engine 1 of 3 is sticky: lost", Milliseconds: 6, Spans: restored.Spans}},
	} {
		tt.want.Engines = len(tt.all)
		if got := OfEngines(tt.all); !reflect.DeepEqual(*got, tt.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, *got, tt.want)
		}
	}
}

// The start has a status once all engines have one, in any order, and a later one of an engine counts.
func TestWriteEngine(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		path := filepath.Join(t.TempDir(), "status.json")
		for i, engine := range order {
			if _, err := os.Stat(path); err == nil {
				t.Errorf("a status after %d of 2 engines", i)
			}
			if err := WriteEngine(path, &Status{Status: Restored, Engine: engine, Engines: 2}); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []string{Restored, Sticky} {
			if st, err := Read(path); err != nil || st.Status != want || st.Engines != 2 {
				t.Errorf("%v: %+v, %v", order, st, err)
			}
			if err := WriteEngine(path, &Status{Status: Sticky, Engine: 1, Engines: 2}); err != nil {
				t.Fatal(err)
			}
		}
		if st, err := Read(EngineFile(path, 0)); err != nil || st.Status != Restored {
			t.Errorf("engine 0: %+v, %v", st, err)
		}
		names, err := filepath.Glob(path + "*")
		if want := []string{path, path + ".0", path + ".1"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("files %q, %v", names, err)
		}
	}
}
