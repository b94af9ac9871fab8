package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// OneOf is the status file of one of several processes of a start, in the order of Place.
func OneOf(path string, place int) string { return fmt.Sprintf("%s.%d", path, place) }

// Place is which of the processes of its start has left the status, from 0, and how many they are: the ranks of one engine, or of several engines.
func (s *Status) Place() (place, of int) {
	ranks := max(1, s.Ranks)
	return s.Engine*ranks + s.Rank, max(1, s.Engines) * ranks
}

// Report stores the status of a process. One of several has a file of its own. Once all of them have one, it makes the start's from them: processes
// write in any order, and the last one sees all. So the start's file never speaks for fewer processes than there are.
func Report(path string, st *Status) error {
	place, of := st.Place()
	if of == 1 {
		return Write(path, st)
	}
	if err := Write(OneOf(path, place), st); err != nil {
		return err
	}
	all := make([]*Status, of)
	for i := range all {
		var err error
		if all[i], err = Read(OneOf(path, i)); err != nil {
			return nil // it is not ready yet
		}
	}
	return Write(path, OfAll(all))
}

// OfAll is the status of a start with several processes. It is restored only if all are: sticky and native come first. A phase of the start begins
// when the last process begins it, and a span is the longest one. All else is of the first process that decides the status, and of those, one that
// does not only follow another rank.
func OfAll(all []*Status) *Status {
	// mutant: engine that was not restored
	worst := slices.MaxFunc(all, func(a, b *Status) int { return severity(a) - severity(b) })
	of := *worst
	of.Rank, of.Engine, of.Follows = 0, 0, false
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
	switch {
	case st.Status == Restored:
		return 0
	case st.Status == Native && st.Follows:
		return 1
	case st.Status == Native:
		return 2
	}
	return 3
}

// details names the processes that were not restored, but not those that only follow another rank, unless all that remain say the same.
func details(all []*Status, worst *Status) string {
	var said []string
	for _, st := range all {
		// mutant: rank that only follows another
		if st.Status == Restored || st.Follows {
			continue
		}
		text := st.name() + " is " + st.Status
		for _, why := range []string{st.Reason, st.Detail} {
			if why != "" {
				text += ": " + why
			}
		}
		said = append(said, text)
	}
	same := func(st *Status) bool {
		return st.Follows || st.Status == worst.Status && st.Reason == worst.Reason && st.Detail == worst.Detail
	}
	if len(said) == 0 || !slices.ContainsFunc(all, func(st *Status) bool { return !same(st) }) {
		return worst.Detail
	}
	return strings.Join(said, "; ")
}

func (s *Status) name() string {
	var parts []string
	if s.Engines > 1 {
		parts = append(parts, fmt.Sprintf("engine %d of %d", s.Engine, s.Engines))
	}
	if s.Ranks > 1 {
		parts = append(parts, fmt.Sprintf("rank %d of %d", s.Rank, s.Ranks))
	}
	return strings.Join(parts, ", ")
}

// latest is when the last process began each phase that the worst one has. Phases stay in its order.
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
