package status

import (
	"fmt"
	"maps"
	"strings"
)

// EngineFile is the status file of one of several engines that share nothing.
func EngineFile(path string, engine int) string { return fmt.Sprintf("%s.%d", path, engine) }

// WriteEngine stores the status of one of several engines in a file of its own. Once all of them have one, it makes the start's from them. Engines
// write in any order, and the last one sees all. So the start's file never speaks for fewer engines than there are.
func WriteEngine(path string, st *Status) error {
	if err := Write(EngineFile(path, st.Engine), st); err != nil {
		return err
	}
	all := make([]*Status, st.Engines)
	for engine := range all {
		var err error
		if all[engine], err = Read(EngineFile(path, engine)); err != nil {
			return nil // its engine is not ready yet
		}
	}
	return Write(path, OfEngines(all))
}

// OfEngines is the status of a start with several engines. It is restored only if all are: sticky and native come first. A phase of the start begins
// when the last engine begins it, and a span is the longest one. All else is of the first engine that decides the status.
func OfEngines(all []*Status) *Status {
	worst := all[0]
	for _, st := range all {
		// mutant: engine that was not restored
		if severity(st) > severity(worst) {
			worst = st
		}
	}
	of := *worst
	of.Engine, of.Engines = 0, len(all)
	of.Detail = details(all, worst)
	of.Spans, of.Milliseconds = make(map[string]float64), 0
	for _, st := range all {
		for name, ms := range st.Spans {
			of.Spans[name] = max(of.Spans[name], ms)
		}
	}
	for ms := range maps.Values(of.Spans) {
		of.Milliseconds += ms
	}
	of.Phases = latest(all, worst)
	return &of
}

func severity(st *Status) int {
	switch st.Status {
	case Restored:
		return 0
	case Native:
		return 1
	}
	return 2
}

// details names the engines that were not restored, unless all say the same.
func details(all []*Status, worst *Status) string {
	var differ bool
	var said []string
	for i, st := range all {
		differ = differ || st.Status != worst.Status || st.Reason != worst.Reason || st.Detail != worst.Detail
		if st.Status == Restored {
			continue
		}
		text := fmt.Sprintf("engine %d of %d is %s", i, len(all), st.Status)
		for _, why := range []string{st.Reason, st.Detail} {
			if why != "" {
				text += ": " + why
			}
		}
		said = append(said, text)
	}
	if !differ {
		return worst.Detail
	}
	return strings.Join(said, "; ")
}

// latest is when the last engine began each phase that the worst one has. Phases stay in its order.
func latest(all []*Status, worst *Status) []Phase {
	phases := append([]Phase(nil), worst.Phases...)
	for i := range phases {
		for _, st := range all {
			for _, p := range st.Phases {
				if p.Name == phases[i].Name {
					phases[i].Began = max(phases[i].Began, p.Began)
				}
			}
		}
		if i > 0 {
			phases[i].Began = max(phases[i].Began, phases[i-1].Began)
		}
	}
	return phases
}
