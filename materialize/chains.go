package materialize

import "medusa/graphir"

// Mappings that a framework makes side by side in one reservation hold tensors that span them, and what a pointer's memory
// spans nobody knows. So whatever lay side by side in both recordings has to lie so again: engine-owned mappings are held
// against that online, capture-phase ones are made in one piece. What lay so in one recording only, lay so by chance.

// chainMappings finds the mappings that were live at ready and lay directly behind each other in both runs.
func chainMappings(a, b *Recording, spec *graphir.Spec) {
	before := b.mappingsBefore()
	a.joined, b.joined = map[uint32]uint32{}, map[uint32]uint32{}
	for i, at := range a.mappingsBefore() {
		if other, ok := before[i]; !ok || other != at {
			continue
		}
		a.joined[i], b.joined[i] = at, at
		if spec.Allocations[i].Owner == spec.Allocations[at].Owner {
			spec.Allocations[i].Behind = at + 1
		}
	}
}

// mappingsBefore returns, for each mapping that was live at ready, the one that it lay directly behind.
func (r *Recording) mappingsBefore() map[uint32]uint32 {
	live := r.liveAt(r.readyOrder).byAddr
	out := map[uint32]uint32{}
	for k := 1; k < len(live); k++ {
		x, y := live[k-1], live[k]
		if x.kind == graphir.AllocVMM && y.kind == graphir.AllocVMM && x.addr+x.size == y.addr {
			out[y.id] = x.id
		}
	}
	return out
}
