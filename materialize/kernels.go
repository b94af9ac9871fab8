package materialize

import (
	"fmt"
	"slices"
	"strings"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// kernelTable builds the kernel-name table: every function that a graph uses, once, in order of first use, with the
// identity of its module.
type kernelTable struct {
	a, b     *Recording
	spec     *graphir.Spec
	modules  map[string]uint32 // module identity -> index
	kernels  map[uint32]uint32 // run A's function id -> index
	late     map[uint32]bool   // modules that a restored process does not load by itself
	maps     *tensorMaps
	blocks   *blocks
	prover   *prover         // of parameters, at the moment of the last node
	fixups   []graphir.Fixup // of one node at a time
	deadline uint64          // run A: what loads after this order is skipped online
}

// identityKey tells modules apart across processes: by image where the load was seen, or by its place in a shared object
// with a build-id, else by their functions' names.
func (m *module) identityKey() string {
	if m.key != "" {
		return m.key
	}
	switch {
	case m.Kind == trace.ModuleHidden:
		m.key = "names:" + strings.Join(m.names, "\n")
	case len(m.SHA256) == 0:
		m.key = fmt.Sprintf("place:%s+%d", m.BuildID, m.DSOOffset)
	default:
		m.key = "image:" + string(m.SHA256)
	}
	return m.key
}

// kernel returns the table index for the function of a node in run A, whose twin in run B must be the same kernel.
func (t *kernelTable) kernel(fa, fb *trace.Function) (uint32, error) {
	ma, mb := t.a.modules[fa.Module], t.b.modules[fb.Module]
	if fa.Name != fb.Name || ma.identityKey() != mb.identityKey() {
		return 0, fmt.Errorf("kernel %s of %s in run A, %s of %s in run B (is an autotuner still choosing?)",
			fa.Name, ma.describe(), fb.Name, mb.describe())
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

func (t *kernelTable) module(m *module) uint32 {
	key := m.identityKey()
	if i, ok := t.modules[key]; ok {
		return i
	}
	out := graphir.Module{Kind: graphir.ModuleKind(m.Kind), Functions: slices.Clone(m.names)}
	slices.Sort(out.Functions)
	if out.Kind != graphir.ModuleHidden {
		copy(out.ImageSHA256[:], m.SHA256)
		out.ImageSize = m.ImageSize
		out.DSO, out.BuildID, out.DSOOffset = baseName(m.DSO), m.BuildID, m.DSOOffset
	}
	i := uint32(len(t.spec.Modules))
	t.spec.Modules = append(t.spec.Modules, out)
	t.modules[key] = i
	t.late[i] = out.Kind == graphir.ModuleHidden || m.loaded > t.deadline
	return i
}

func (m *module) describe() string {
	if m.Kind == trace.ModuleHidden {
		return fmt.Sprintf("hidden module with %d functions", len(m.names))
	}
	if m.DSO != "" {
		return fmt.Sprintf("the module at %#x of %s", m.DSOOffset, baseName(m.DSO))
	}
	return fmt.Sprintf("module %x", m.SHA256[:min(4, len(m.SHA256))])
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
