package compile

import (
	"maps"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// Mappings that a framework makes side by side in one reservation hold tensors that span them, and a pointer does not say how far its
// memory extends. So mappings that lay side by side in both recordings have to lie so again: engine-owned mappings are checked for that
// online, capture-phase ones are made in one piece. Mappings that lay so in one recording only did so by chance.

// neighbours gives, for each mapping that lay contiguous to another in both runs, that other.
type neighbours map[uint32]uint32

// findContiguous looks at the mappings that were live at ready.
func findContiguous(a, b *run) (neighbours, error) {
	before, err := b.mappingsBefore()
	if err != nil {
		return nil, err
	}
	mine, err := a.mappingsBefore()
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(mine, func(i, at uint32) bool {
		other, ok := before[i]
		return !ok || other != at
	})
	return mine, nil
}

// mappingsBefore returns, for each mapping that was live at ready, the one that it lay contiguous to.
func (r *run) mappingsBefore() (neighbours, error) {
	live, err := r.liveAt(r.ReadyOrder)
	if err != nil {
		return nil, err
	}
	out := neighbours{}
	x := &recording.Allocation{}
	live.each(func(y *recording.Allocation) {
		if x.Kind == graphir.AllocVMM && y.Kind == graphir.AllocVMM && x.Addr+x.Size == y.Addr {
			out[y.ID] = x.ID
		}
		x = y
	})
	return out, nil
}

// note sets ContiguousTo for pairs that have one owner.
func (c neighbours) note(allocations []graphir.Allocation) {
	for i, at := range c {
		if allocations[i].Owner == allocations[at].Owner {
			allocations[i].ContiguousTo = at + 1
		}
	}
}

// continuesEngine reports whether the allocation is a mapping of the capture phase in a range that begins with mappings of
// the engine's, which a restored process makes itself.
func (c neighbours) continuesEngine(allocations []graphir.Allocation, alloc uint32) bool {
	for own := allocations[alloc].Owner; own == graphir.OwnerGraph; {
		at, ok := c[alloc]
		if !ok {
			return false
		}
		if allocations[at].Owner != own {
			return true
		}
		alloc = at
	}
	return false
}
