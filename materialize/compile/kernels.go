package compile

import (
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// kernelTable builds the kernel-name table: every function that a graph uses, once, in order of first use, with the
// identity of its module.
type kernelTable struct {
	a, b     *run
	spec     *graphir.Spec
	modules  map[string]uint32 // module identity -> index
	kernels  map[uint32]uint32 // record-a's function id -> index
	equal    map[pair]uint32   // the same, for functions that were compared
	late     map[uint32]bool   // modules that a restored process does not load by itself
	deadline uint64            // record-a: a module loaded after this order is skipped online
}

// pair are the ids of a function in the two recordings.
type pair struct{ a, b uint32 }

func newKernelTable(a, b *run, spec *graphir.Spec, deadline uint64) *kernelTable {
	return &kernelTable{a: a, b: b, spec: spec, modules: map[string]uint32{}, kernels: map[uint32]uint32{}, equal: map[pair]uint32{}, late: map[uint32]bool{}, deadline: deadline}
}

func (t *kernelTable) module(m *recording.Module) uint32 {
	key := m.IdentityKey()
	if i, ok := t.modules[key]; ok {
		return i
	}
	out := graphir.Module{Kind: graphir.ModuleKind(m.Kind), Functions: slices.Clone(m.Names)}
	slices.Sort(out.Functions)
	if out.Kind != graphir.ModuleHidden {
		copy(out.ImageSHA256[:], m.SHA256)
		out.ImageSize = m.ImageSize
		out.DSO, out.BuildID, out.DSOOffset = recording.BaseName(m.DSO), m.BuildID, m.DSOOffset
	}
	i := uint32(len(t.spec.Modules))
	t.spec.Modules = append(t.spec.Modules, out)
	t.modules[key] = i
	t.late[i] = out.Kind == graphir.ModuleHidden || m.Loaded > t.deadline
	return i
}

// kernel returns the table index for the function of a node in record-a, whose twin in record-b must be the same kernel.
func (t *kernelTable) kernel(a, b uint32) (uint32, error) {
	if i, ok := t.equal[pair{a, b}]; ok {
		return i, nil
	}
	i, err := t.compare(t.a.Functions[a], t.b.Functions[b])
	if err == nil {
		t.equal[pair{a, b}] = i
	}
	return i, err
}

func (t *kernelTable) compare(fa, fb *trace.Function) (uint32, error) {
	ma, mb := t.a.Modules[fa.Module], t.b.Modules[fb.Module]
	if fa.Name != fb.Name || ma.IdentityKey() != mb.IdentityKey() {
		return 0, fmt.Errorf("kernel %s of %s in record-a, %s of %s in record-b (is an autotuner still choosing?)",
			fa.Name, ma.Describe(), fb.Name, mb.Describe())
	}
	if i, ok := t.kernels[fa.ID]; ok {
		return i, nil
	}
	if !slices.Equal(fa.Params, fb.Params) || !slices.Equal(fa.Attrs, fb.Attrs) {
		return 0, fmt.Errorf("kernel %s: parameter layout or function attributes differ between the runs", fa.Name)
	}
	k := graphir.Kernel{Name: fa.Name, Module: t.module(ma)}
	for _, p := range fa.Params {
		k.Params = append(k.Params, graphir.Param{Offset: p.Offset, Size: p.Size})
	}
	for _, at := range fa.Attrs {
		k.Attrs = append(k.Attrs, graphir.FuncAttr{ID: at.ID, Value: at.Value})
	}
	i := uint32(len(t.spec.Kernels))
	t.spec.Kernels = append(t.spec.Kernels, k)
	t.kernels[fa.ID] = i
	return i, nil
}
