package status

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

func TestOfAll(t *testing.T) {
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
		var all []*Status
		for i, st := range tt.all {
			of := *st
			of.Engine, of.Engines = i, len(tt.all)
			all = append(all, &of)
		}
		tt.want.Engines = len(tt.all)
		if got := OfAll(all); !reflect.DeepEqual(*got, tt.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, *got, tt.want)
		}
	}
}

// Ranks start alike, and one of them is the cause: the start's status has its reason, whatever the others say of it.
func TestOfRanks(t *testing.T) {
	cause := Status{Status: Native, Reason: "memory", Detail: "full", Rank: 1, Ranks: 2}
	follows := Status{Status: Native, Reason: "memory", Detail: "rank 1 starts natively: full", Follows: true, Ranks: 2}
	silent := Status{Status: Native, Reason: "engine", Detail: "rank 2 did not reach built within 6s", Follows: true, Ranks: 2}
	for name, tt := range map[string]struct {
		all                  []*Status
		reason, detail, kind string
	}{
		"the second is the cause": {[]*Status{&follows, &cause}, "memory", "full", Native},
		"the cause is gone":       {[]*Status{&silent, &silent}, "engine", "rank 2 did not reach built within 6s", Native},
		"two causes": {[]*Status{{Status: Native, Reason: "driver_error", Detail: "lost", Ranks: 2}, &cause}, "driver_error",
			"rank 0 of 2 is native: driver_error: lost; rank 1 of 2 is native: memory: full", Native},
		"of two engines": {[]*Status{{Status: Restored, Ranks: 2, Engines: 2}, {Status: Restored, Rank: 1, Ranks: 2, Engines: 2},
			{Status: Native, Follows: true, Detail: "rank 1 starts natively: full", Ranks: 2, Engine: 1, Engines: 2}, {Status: Native, Reason: "memory", Detail: "full", Rank: 1, Ranks: 2, Engine: 1, Engines: 2}},
			"memory", "engine 1 of 2, rank 1 of 2 is native: memory: full", Native},
	} {
		got := OfAll(tt.all)
		if got.Reason != tt.reason || got.Detail != tt.detail || got.Status != tt.kind || got.Rank != 0 || got.Follows || got.Ranks != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for want, st := range []Status{{}, {Rank: 1, Ranks: 2}, {Ranks: 2, Engine: 1, Engines: 2}, {Rank: 1, Ranks: 2, Engine: 1, Engines: 2}} {
		if place, of := st.Place(); place != want || of != max(1, st.Ranks)*max(1, st.Engines) {
			t.Errorf("%+v: place %d of %d", st, place, of)
		}
	}
}

// The start has a status once all engines have one, in any order, and a later one of an engine counts.
func TestReport(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		path := filepath.Join(t.TempDir(), "status.json")
		for i, engine := range order {
			if _, err := os.Stat(path); err == nil {
				t.Errorf("a status after %d of 2 engines", i)
			}
			if err := Report(path, &Status{Status: Restored, Engine: engine, Engines: 2}); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []string{Restored, Sticky} {
			if st, err := Read(path); err != nil || st.Status != want || st.Engines != 2 {
				t.Errorf("%v: %+v, %v", order, st, err)
			}
			if err := Report(path, &Status{Status: Sticky, Engine: 1, Engines: 2}); err != nil {
				t.Fatal(err)
			}
		}
		if st, err := Read(OneOf(path, 0)); err != nil || st.Status != Restored {
			t.Errorf("engine 0: %+v, %v", st, err)
		}
		names, err := filepath.Glob(path + "*")
		if want := []string{path, path + ".0", path + ".1"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("files %q, %v", names, err)
		}
	}
}
