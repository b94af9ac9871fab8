package compile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/interpose/trace"
)

// compileTensors turns the engine's named tensors into pointers.
func compileTensors(a, b *run, allocations []graphir.Allocation) ([]graphir.Tensor, error) {
	ta, tb, results, resultsB := a.lastTensors(), b.lastTensors(), a.results(), b.results()
	if len(ta) != len(tb) {
		return nil, fmt.Errorf("compile tensors: %d marked in record-a, %d in record-b", len(ta), len(tb))
	}
	la, err := a.liveAt(a.ReadyOrder)
	if err != nil {
		return nil, err
	}
	lb, err := b.liveAt(b.ReadyOrder)
	if err != nil {
		return nil, err
	}
	var out []graphir.Tensor
	for i, t := range ta {
		if t.Name != tb[i].Name || t.Size != tb[i].Size || t.Role != tb[i].Role {
			return nil, fmt.Errorf("compile tensor %q: it differs between the runs", t.Name)
		}
		// mutant: results of two recordings
		if !slices.Equal(results[t.Name], resultsB[t.Name]) {
			return nil, fmt.Errorf("compile tensor %q: it is a result of graphs %d in record-a, of %d in record-b", t.Name, results[t.Name], resultsB[t.Name])
		}
		at, err := tensorPlace(la, lb, t, tb[i], allocations)
		if err != nil {
			return nil, fmt.Errorf("compile tensor %q: %w", t.Name, err)
		}
		// mutant: tensor in memory of a multicast object
		if at.Space == graphir.SpaceAlloc && a.allocs[at.Index].Multicast != "" {
			return nil, fmt.Errorf("compile tensor %q: it lies in memory of a multicast object (alloc#%d, %s)", t.Name, at.Index, a.allocs[at.Index].Multicast)
		}
		out = append(out, graphir.Tensor{
			Name: t.Name, Role: graphir.Role(t.Role), DType: graphir.DType(t.Dtype), At: at, Size: t.Size,
			Shape: t.Shape, Lo: t.Lo, Hi: t.Hi, Distinct: t.Fill == contract.FillDistinct,
			Graphs: results[t.Name],
		})
		delete(results, t.Name)
	}
	for name, graphs := range results {
		return nil, fmt.Errorf("compile results of graph %q: no tensor is named %q", a.instantiated()[graphs[0]].Label, name)
	}
	boundBlocks(out, ta)
	return out, nil
}

// results returns the graphs that leave a result in an output, by its name.
func (r *run) results() map[string][]uint32 {
	out := map[string][]uint32{}
	for i, g := range r.instantiated() {
		for _, name := range g.Results {
			if graphs := out[name]; len(graphs) == 0 || graphs[len(graphs)-1] != uint32(i) {
				out[name] = append(graphs, uint32(i)) // mutant: graphs of a result
			}
		}
	}
	return out
}

// tensorPlace returns the allocation that holds a marked address, which is known to be one. In a suballocated allocation the
// place is that of record-a: the name counts.
func tensorPlace(la, lb *liveSet, ta, tb *trace.Tensor, allocations []graphir.Allocation) (graphir.Pointer, error) {
	a, b := la.holding(ta.Addr), lb.holding(tb.Addr)
	if a == nil || b == nil {
		return graphir.Pointer{}, errors.New("it lies in no allocation")
	}
	at := graphir.Pointer{Index: a.ID, Offset: ta.Addr - a.Addr, Space: a.Space}
	suballocated := at.Space == graphir.SpaceAlloc && allocations[at.Index].Suballocated
	if !suballocated && at != (graphir.Pointer{Index: b.ID, Offset: tb.Addr - b.Addr, Space: b.Space}) {
		return graphir.Pointer{}, errors.New("it does not lie in the same place in both runs")
	}
	return at, nil
}

// boundBlocks limits the numbers of blocks to the part of the KV cache that verification fills. Replays that read blocks of a large KV
// cache at random would read zeros, and their results would not test attention.
func boundBlocks(tensors []graphir.Tensor, named []*trace.Tensor) {
	cache := graphir.KVBytes(tensors)
	for i := range tensors {
		// mutant: blocks that verification looks at
		if t := &tensors[i]; named[i].Fill == contract.FillBlock && cache > graphir.CheckedKV {
			t.Hi = max(t.Lo+1, int64(float64(t.Hi)*graphir.CheckedKV/float64(cache)))
		}
	}
}

// compileNotes returns the engine's notes. A note that differs between two recordings would be of no use in a third process.
func compileNotes(a, b []graphir.Note) ([]graphir.Note, error) {
	if len(a) != len(b) {
		return nil, fmt.Errorf("compile notes: %d in record-a, %d in record-b", len(a), len(b))
	}
	for i, n := range a {
		// mutant: notes of two recordings
		if o := b[i]; n.Name != o.Name || !bytes.Equal(n.Value, o.Value) {
			return nil, fmt.Errorf("compile note %q: it differs between the runs", n.Name)
		}
	}
	return a, nil
}
