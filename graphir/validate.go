package graphir

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// maxProblems bounds the memory for the problems of a badly damaged Spec.
const maxProblems = 1000

// Validate checks every reference and every order that the types promise. It returns nil or a *ValidationError that lists all
// violations by path, such as "graphs[3].nodes[17].relocations[0]: alloc 99 of 42". It reads the row groups; if one is damaged, it
// returns a *FormatError.
func (s *Spec) Validate() error {
	if s.Rows != nil {
		if err := s.EachGraph(func(int, *Graph) error { return nil }); err != nil {
			return err
		}
	}
	return s.validate()
}

// validate does not read row groups: a Cursor checks the graphs that it reads.
func (s *Spec) validate() error {
	v := &validator{spec: s, chains: s.Contiguous()}
	v.allocations()
	v.vacant()
	v.contiguous()
	v.sizes()
	v.sequence()
	v.modules()
	v.kernels()
	for i := range s.Graphs {
		v.graph(&s.Graphs[i], func() string { return fmt.Sprintf("graphs[%d]", i) }, uint32(len(s.Children)))
	}
	if s.Rows != nil {
		v.rows()
	}
	for i := range s.Children {
		v.graph(&s.Children[i], func() string { return fmt.Sprintf("children[%d]", i) }, uint32(i))
	}
	v.embedded()
	v.tables()
	v.contents()
	v.tensors()
	v.notes()
	v.triggers()
	v.exact()
	if v.total == 0 {
		return nil
	}
	return &ValidationError{Problems: v.problems, Total: v.total}
}

type validator struct {
	spec     *Spec
	chains   Contiguous
	problems []string
	total    int
}

func (v *validator) bad(path, format string, args ...any) {
	v.total++
	if len(v.problems) < maxProblems {
		v.problems = append(v.problems, path+": "+fmt.Sprintf(format, args...))
	}
}

func (v *validator) text(s string, path func() string) {
	if !utf8.ValidString(s) {
		v.bad(path(), "%q is not UTF-8", s)
	}
}

// inside handles the common case: a pointer into one allocation that has size bytes from there.
func (v *validator) inside(p Pointer, size uint64) bool {
	if p.Space != SpaceAlloc || int64(p.Index) >= int64(len(v.spec.Allocations)) {
		return false
	}
	whole := v.spec.Allocations[p.Index].Size
	return p.Offset <= whole && size <= whole-p.Offset
}

// pointer checks that the size bytes at p are inside its allocation. If size is 0, p may be one past the end.
func (v *validator) pointer(p Pointer, size uint64, path func() string) {
	if v.inside(p, size) {
		return
	}
	entries := v.spec.spaceSize(p.Space)
	if int64(p.Index) >= int64(entries) {
		v.bad(path(), "%s %d of %d", p.Space, p.Index, entries)
		return
	}
	if p.Space == SpaceTensor {
		if at := v.spec.Tensors[p.Index].At.Index; int64(at) < int64(len(v.spec.Allocations)) && !v.spec.Allocations[at].Suballocated {
			v.bad(path(), "tensor %d lies in an allocation that is not suballocated", p.Index)
		}
	}
	whole := v.spec.ObjectSize(v.spec.Target(p))
	if p.Space == SpaceAlloc && p.Offset <= whole {
		for _, next := range v.chains.Following(p.Index) {
			whole += v.spec.Allocations[next].Size
		}
	}
	// mutant: extent of a pointer
	if p.Offset > whole || size > whole-p.Offset {
		v.bad(path(), "bytes %d+%d of %s %d, which has %d", p.Offset, size, p.Space, p.Index, whole)
	}
}

func (v *validator) allocations() {
	if n := len(v.spec.BlockMap); n != 0 && n != 32 {
		v.bad("block_map", "%d bytes", n)
	}
	if len(v.spec.Allocations) > math.MaxInt32 {
		v.bad("allocations", "%d of them", len(v.spec.Allocations))
	}
	for i, a := range v.spec.Allocations {
		if a.Kind < AllocDevice || a.Kind > AllocIPC {
			v.bad(fmt.Sprintf("allocations[%d].kind", i), "unknown kind %d", a.Kind)
		}
		if a.Owner != OwnerEngine && a.Owner != OwnerGraph {
			v.bad(fmt.Sprintf("allocations[%d].owner", i), "unknown owner %d", a.Owner)
		}
	}
}

func (v *validator) vacant() {
	if len(v.spec.Vacant) > 0 && len(v.spec.BlockMap) == 0 {
		v.bad("vacant", "%d pieces of memory without a block map", len(v.spec.Vacant))
	}
	var last Vacancy
	for i, p := range v.spec.Vacant {
		path := fmt.Sprintf("vacant[%d]", i)
		if int64(p.Alloc) >= int64(len(v.spec.Allocations)) {
			v.bad(path, "alloc %d of %d", p.Alloc, len(v.spec.Allocations))
			continue
		}
		// mutant: vacant memory of the engine's
		if a := v.spec.Allocations[p.Alloc]; a.Owner != OwnerEngine || !a.Suballocated {
			v.bad(path, "alloc %d is not suballocated by the engine", p.Alloc)
		} else if p.Size == 0 || p.Offset > a.Size || p.Size > a.Size-p.Offset {
			v.bad(path, "bytes %d+%d of alloc %d, which has %d", p.Offset, p.Size, p.Alloc, a.Size)
		}
		if i > 0 && (p.Alloc < last.Alloc || p.Alloc == last.Alloc && p.Offset < last.Offset+last.Size) {
			v.bad(path, "alloc %d+%d is not contiguous to alloc %d+%d", p.Alloc, p.Offset, last.Alloc, last.Offset+last.Size)
		}
		last = p
	}
}

func (v *validator) sequence() {
	const never = -1
	freed := make([]int, len(v.spec.Allocations))
	for i := range freed {
		freed[i] = never
	}
	made := 0
	for i, step := range v.spec.Sequence {
		path := func() string { return fmt.Sprintf("sequence[%d]", i) }
		switch {
		case int64(step.Alloc) >= int64(len(freed)):
			v.bad(path(), "alloc %d of %d", step.Alloc, len(freed))
		case !step.Free:
			if int64(step.Alloc) != int64(made) {
				v.bad(path(), "allocates %d, next is %d", step.Alloc, made)
			}
			made++
		case int64(step.Alloc) >= int64(made):
			v.bad(path(), "frees alloc %d before it is allocated", step.Alloc)
		case freed[step.Alloc] != never:
			v.bad(path(), "frees alloc %d again, after sequence[%d]", step.Alloc, freed[step.Alloc])
		default:
			freed[step.Alloc] = i
		}
	}
	if made != len(freed) {
		v.bad("sequence", "allocates %d of %d allocations", made, len(freed))
	}
	for i, a := range v.spec.Allocations {
		if a.Live != (freed[i] == never) {
			v.bad(fmt.Sprintf("allocations[%d].live", i), "%t, against the sequence", a.Live)
		}
	}
}

func (v *validator) modules() {
	for i := range v.spec.Modules {
		m := &v.spec.Modules[i]
		path := func(field string) func() string {
			return func() string { return fmt.Sprintf("modules[%d].%s", i, field) }
		}
		if m.Kind < ModuleLoaded || m.Kind > ModuleHidden {
			v.bad(path("kind")(), "unknown kind %d", m.Kind)
		}
		v.text(m.DSO, path("dso"))
		v.text(m.BuildID, path("build_id"))
		for k, name := range m.Functions {
			v.text(name, path("functions"))
			if k > 0 && m.Functions[k-1] >= name {
				v.bad(path("functions")(), "%q behind %q (names are sorted and unique)", name, m.Functions[k-1])
			}
		}
	}
}

func (v *validator) kernels() {
	for i := range v.spec.Kernels {
		k := &v.spec.Kernels[i]
		path := fmt.Sprintf("kernels[%d]", i)
		v.text(k.Name, func() string { return path + ".name" })
		if int64(k.Module) >= int64(len(v.spec.Modules)) {
			v.bad(path, "module %d of %d", k.Module, len(v.spec.Modules))
		} else if names := v.spec.Modules[k.Module].Functions; len(names) > 0 {
			if _, found := slices.BinarySearch(names, k.Name); !found {
				v.bad(path, "module %d has no function %q", k.Module, k.Name)
			}
		}
		end := uint64(0)
		for p, param := range k.Params {
			if uint64(param.Offset) < end {
				v.bad(fmt.Sprintf("%s.params[%d]", path, p), "offset %d overlaps the parameter before it, which ends at %d",
					param.Offset, end)
			}
			end = max(end, uint64(param.Offset)+uint64(param.Size))
		}
	}
}

func (v *validator) tensors() {
	for i := range v.spec.Tensors {
		t := &v.spec.Tensors[i]
		path := func(field string) func() string {
			return func() string { return fmt.Sprintf("tensors[%d].%s", i, field) }
		}
		v.text(t.Name, path("name"))
		if t.Role < RoleWeight || t.Role > RoleScratch {
			v.bad(path("role")(), "unknown role %d", t.Role)
		}
		if t.DType < F32 || t.DType > Address {
			v.bad(path("dtype")(), "unknown type %d", t.DType)
		}
		// mutant: addresses that would be filled
		if t.DType == Address && t.Role != RoleWeight {
			v.bad(path("dtype")(), "addresses in a tensor that is no weight")
		}
		v.pointer(t.At, t.Size, path("at"))
		if t.At.Space != SpaceAlloc {
			v.bad(path("at")(), "a tensor in a %s", t.At.Space)
		}
		for _, n := range t.Shape {
			if n < 0 {
				v.bad(path("shape")(), "negative size %d", n)
			}
		}
		for k, g := range t.Graphs {
			switch {
			case int64(g) >= int64(len(v.spec.Graphs)):
				v.bad(path("graphs")(), "graph %d of %d", g, len(v.spec.Graphs))
			case k > 0 && g <= t.Graphs[k-1]:
				v.bad(path("graphs")(), "graph %d behind %d", g, t.Graphs[k-1])
			case t.Role != RoleOutput:
				v.bad(path("graphs")(), "a result in a tensor that is no output")
			}
		}
	}
}

func (v *validator) notes() {
	names := make(map[string]bool, len(v.spec.Notes))
	for i := range v.spec.Notes {
		name := v.spec.Notes[i].Name
		path := func() string { return fmt.Sprintf("notes[%d].name", i) }
		v.text(name, path)
		if names[name] {
			v.bad(path(), "%q comes twice", name)
		}
		names[name] = true
	}
}

// rows checks the facts on which a Cursor relies.
func (v *validator) rows() {
	for i, object := range v.spec.Rows.referred {
		if int64(object) >= int64(v.spec.Objects()) {
			v.bad(fmt.Sprintf("referred[%d]", i), "object %d of %d", object, v.spec.Objects())
		}
	}
}

func (v *validator) triggers() {
	batches := make(map[int64]bool, len(v.spec.Graphs))
	for i := range v.spec.Graphs {
		batches[v.spec.Graphs[i].Batch] = true
	}
	for i := range v.spec.Triggers {
		t := &v.spec.Triggers[i]
		if !batches[t.Batch] {
			v.bad(fmt.Sprintf("triggers[%d].batch", i), "no graph has batch %d", t.Batch)
		}
		for k, kernel := range t.Kernels {
			if int64(kernel) >= int64(len(v.spec.Kernels)) {
				v.bad(fmt.Sprintf("triggers[%d].kernels[%d]", i, k), "kernel %d of %d", kernel, len(v.spec.Kernels))
			}
		}
	}
}
