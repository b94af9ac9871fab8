package compile

import (
	"medusa/graphir"
	"medusa/materialize/recording"
)

// Mappings that a framework makes side by side in one reservation hold tensors that span them, and nobody knows how far a pointer's memory
// spans. So mappings that lay side by side in both recordings have to lie so again: engine-owned mappings are held
// against that online, capture-phase ones are made in one piece. Mappings that lay so in one recording only, lay so by chance.

// chainMappings finds the mappings that were live at ready and lay directly behind each other in both runs.
func chainMappings(a, b *run, spec *graphir.Spec) error {
	before, err := b.mappingsBefore()
	if err != nil {
		return err
	}
	mine, err := a.mappingsBefore()
	if err != nil {
		return err
	}
	a.joined, b.joined = map[uint32]uint32{}, map[uint32]uint32{}
	for i, at := range mine {
		if other, ok := before[i]; !ok || other != at {
			continue
		}
		a.joined[i], b.joined[i] = at, at
		if spec.Allocations[i].Owner == spec.Allocations[at].Owner {
			spec.Allocations[i].Behind = at + 1
		}
	}
	return nil
}

// mappingsBefore returns, for each mapping that was live at ready, the one that it lay directly behind.
func (r *run) mappingsBefore() (map[uint32]uint32, error) {
	live, err := r.liveAt(r.ReadyOrder)
	if err != nil {
		return nil, err
	}
	out := map[uint32]uint32{}
	x := &recording.Allocation{}
	live.each(func(y *recording.Allocation) {
		if x.Kind == graphir.AllocVMM && y.Kind == graphir.AllocVMM && x.Addr+x.Size == y.Addr {
			out[y.ID] = x.ID
		}
		x = y
	})
	return out, nil
}
