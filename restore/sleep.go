package restore

import (
	"errors"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/check"
	"medusa/restore/live"
	"medusa/restore/rebuild"
)

// rest is the state of restored graphs that the engine puts asleep.
type rest struct {
	asleep bool
	before *check.Sample // results of the graphs at that time; nil: they were unusable
	due    bool          // awake, and to be checked before the first launch
	same   bool          // the weights have to be as they were
}

// Sleep gives back all device memory of the restored graphs, and the graphs themselves. Call it before the engine unmaps memory, with no
// graph running. Then the engine may unmap memory that graphs refer to, and map as much at the same addresses again. Until Wake returns
// true no graph is usable. Errors are *Exit; if anything else fails, no graph is usable any more, and Usable says why.
func (s *Session) Sleep() (err error) {
	defer s.caught(&err)
	r := s.restored
	if r == nil || s.exit != nil || s.rest.asleep {
		return s.exitError()
	}
	s.rest = rest{asleep: true}
	if s.env.rank.several() {
		s.Invalidate(errors.New("several ranks sleep"))
	}
	if r.Usable() == nil {
		s.rest.before, err = s.sample(r, func(i int) bool { return r.Execs[i] != 0 })
		if err != nil {
			r.Invalidate(err)
		}
	}
	return s.onlyExit(errors.Join(err, r.Sleep()))
}

// Wake makes the graphs again from the artifact, without a capture or a forward, if all memory that they refer to is mapped. The memory has
// to hold its earlier contents. If some is not mapped, Wake returns false; call it again when more is mapped. Tensors of the capture phase
// may lie elsewhere afterwards. Before the first launch, the graphs are replayed on known data. If the weights are the same, the results
// are compared with those from before the sleep. same says that the weights have to be the same. Errors are as Sleep's.
func (s *Session) Wake(same bool) (awake bool, err error) {
	defer s.caught(&err)
	r := s.restored
	if r == nil || s.exit != nil || !s.rest.asleep {
		return s.exit == nil, s.exitError()
	}
	if !r.Mapped() {
		return false, nil
	}
	// mutant: canary that is due
	s.rest.asleep, s.rest.due, s.rest.same = false, s.rest.before != nil, same
	return true, s.onlyExit(r.Wake(s.env.Lazy))
}

// checkAwake is the check of graphs that have slept.
func (s *Session) checkAwake(r *rebuild.Graphs) error {
	if !s.rest.due || r.Usable() != nil {
		return nil
	}
	before, same := s.rest.before, s.rest.same
	s.rest = rest{}
	c, err := s.sample(r, func(i int) bool { return before.Results[s.source.spec().Graphs[i].Label] != "" })
	if err == nil {
		err = c.Compare(before, same)
	}
	if err != nil {
		r.Invalidate(err)
	}
	return s.onlyExit(err)
}

// sample replays the wanted graphs, and builds them first if necessary.
func (s *Session) sample(r *rebuild.Graphs, wanted func(graph int) bool) (*check.Sample, error) {
	labels := make(map[string]bool)
	for i, g := range s.source.spec().Graphs {
		if !wanted(i) {
			continue
		}
		if _, err := r.Built(i); err != nil {
			return nil, err
		}
		labels[g.Label] = true
	}
	gone, err := s.gone(r.Memory.Base)
	if err != nil {
		return nil, err
	}
	c, err := s.checker(r.Memory, r.Execs, false, gone)
	if err != nil {
		return nil, err
	}
	return c.Sample(func(label string) bool { return labels[label] })
}

// gone returns a function that says which of the engine's memory of the start no longer exists. Memory that was mapped again has
// another index, and the same place.
func (s *Session) gone(base []uint64) (func(object uint32) bool, error) {
	allocs, err := live.Allocations()
	sizes := make(map[uint64]uint64, len(allocs))
	for _, a := range allocs {
		if a.Live != 0 {
			sizes[a.Addr] = a.Size
		}
	}
	spec := s.source.spec()
	return func(object uint32) bool {
		if int(object) >= len(spec.Allocations) || spec.Allocations[object].Owner != graphir.OwnerEngine {
			return false
		}
		// mutant: memory that the engine has given back before a check
		return sizes[base[object]] != spec.Allocations[object].Size
	}, err
}

// onlyExit passes on errors after which the process has to end.
func (s *Session) onlyExit(err error) error {
	if cuda.Sticky(err) {
		return s.Failed(err)
	}
	return nil
}

func (s *Session) exitError() error {
	if s.exit != nil {
		return s.exit
	}
	return nil
}
