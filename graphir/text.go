package graphir

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the canonical text dump, one line per entry. It is complete except for the bytes of contents, of which it
// gives the digest. Equal Specs give equal text. It fails if the Spec is invalid (*ValidationError), or if w fails.
func (s *Spec) WriteText(w io.Writer) error {
	if err := s.Validate(); err != nil {
		return err
	}
	t := &textWriter{Writer: bufio.NewWriter(w), spec: s}
	t.tables()
	err := s.EachGraph(func(i int, g *Graph) error {
		t.graph("graph", i, g)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range s.Children {
		t.graph("child", i, &s.Children[i])
	}
	t.rest()
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write graph spec as text: %w", err)
	}
	return nil
}

// textWriter relies on bufio.Writer to keep the first error until Flush.
type textWriter struct {
	*bufio.Writer
	spec *Spec
}

func (t *textWriter) printf(format string, args ...any) { fmt.Fprintf(t, format, args...) }

func (t *textWriter) tables() {
	s := t.spec
	t.printf("medusa graph %d: %d allocations, %d steps, %d modules, %d kernels, %d graphs, %d contents, %d tensors, %d triggers\n",
		versionOf(s, s.grouped()), len(s.Allocations), len(s.Sequence), len(s.Modules), len(s.Kernels), len(s.Graphs), len(s.Contents),
		len(s.Tensors), len(s.Triggers))
	for i, a := range s.Allocations {
		live := ""
		if a.Live {
			live = " live"
		}
		if a.Suballocated {
			live += " suballocated"
		}
		if a.Thread != 0 {
			live += fmt.Sprintf(" thread=%d", a.Thread)
		}
		if a.ContiguousTo != 0 {
			live += fmt.Sprintf(" contiguous_to=%d", a.ContiguousTo-1)
		}
		t.printf("alloc %d: %s %s size=%d%s\n", i, a.Kind, a.Owner, a.Size, live)
	}
	if len(s.BlockMap) > 0 {
		t.printf("block map: %x\n", s.BlockMap)
	}
	t.sequence()
	for i := range s.Modules {
		m := &s.Modules[i]
		t.printf("module %d: %s image=%x size=%d dso=%q build_id=%q offset=%d\n", i, m.Kind, m.ImageSHA256, m.ImageSize,
			m.DSO, m.BuildID, m.DSOOffset)
		if m.Reload {
			t.printf("  reload\n")
		}
		for _, name := range m.Functions {
			t.printf("  function %q\n", name)
		}
	}
	for i := range s.Kernels {
		k := &s.Kernels[i]
		t.printf("kernel %d: %q module=%d params=[", i, k.Name, k.Module)
		for p, param := range k.Params {
			t.printf("%s%d+%d", space(p), param.Offset, param.Size)
		}
		t.printf("]")
		for _, a := range k.Attrs {
			t.printf(" attr%d=%d", a.ID, a.Value)
		}
		t.printf("\n")
	}
	t.laterTables()
}

// sequence writes runs of allocations as +first..last, and frees as -index.
func (t *textWriter) sequence() {
	steps := t.spec.Sequence
	t.printf("sequence:")
	for i := 0; i < len(steps); {
		first := steps[i]
		if first.Free {
			t.printf(" -%d", first.Alloc)
			i++
			continue
		}
		run := 1
		for i+run < len(steps) && !steps[i+run].Free {
			run++
		}
		if t.printf(" +%d", first.Alloc); run > 1 {
			t.printf("..%d", steps[i+run-1].Alloc)
		}
		i += run
	}
	t.printf("\n")
}

func (t *textWriter) rest() {
	s := t.spec
	for i := range s.Contents {
		c := &s.Contents[i]
		t.printf("content %d: %s size=%d sha256=%x", i, Pointer{Index: c.Alloc, Offset: c.Offset, Space: c.Space}, len(c.Data), sha256.Sum256(c.Data))
		for _, f := range c.Relocations {
			t.printf(" %d:%s", f.Offset, f.String())
		}
		for _, r := range c.Unstable {
			t.printf(" unstable=%d+%d", r.Offset, r.Size)
		}
		t.printf("\n")
	}
	for i := range s.Tensors {
		n := &s.Tensors[i]
		t.printf("tensor %d: %q %s %s at=%s size=%d shape=%d lo=%d hi=%d", i, n.Name, n.Role, n.DType, n.At, n.Size, n.Shape, n.Lo, n.Hi)
		if n.Distinct {
			t.printf(" distinct")
		}
		if len(n.Graphs) > 0 {
			t.printf(" graphs=%d", n.Graphs)
		}
		t.printf("\n")
	}
	for i, n := range s.Notes {
		t.printf("note %d: %q size=%d sha256=%x\n", i, n.Name, len(n.Value), sha256.Sum256(n.Value))
	}
	for i := range s.Triggers {
		n := &s.Triggers[i]
		t.printf("trigger %d: batch=%d launches=%d kernels=%d\n", i, n.Batch, n.Launches, n.Kernels)
	}
	t.exact()
}

// String returns alloc#i+offset, the notation of paper §4.1.
func (p Pointer) String() string { return fmt.Sprintf("%s#%d+%d", p.Space, p.Index, p.Offset) }

func (s Space) String() string { return name(uint8(s)+1, "alloc", "global", "host", "tensor") }

func (f *Relocation) String() string {
	if f.TensorMap != 0 {
		return fmt.Sprintf("tensormap#%d(%s)", f.TensorMap-1, f.Pointer)
	}
	return f.Pointer.String()
}

func (k AllocKind) String() string {
	return name(uint8(k), "device", "managed", "pinned", "registered", "async", "pool", "vmm", "pitch", "ipc")
}

func (o Owner) String() string { return name(uint8(o), "engine", "graph") }

func (k ModuleKind) String() string { return name(uint8(k), "loaded", "library", "hidden") }

func (r Role) String() string { return name(uint8(r), "weight", "kv", "input", "output", "scratch") }

func (d DType) String() string {
	return name(uint8(d), "f32", "f16", "bf16", "i32", "i64", "u8", "address")
}

// name returns the name of a value. Values count from 1.
func name(value uint8, names ...string) string {
	if value == 0 || int(value) > len(names) {
		return fmt.Sprintf("unknown(%d)", value)
	}
	return names[value-1]
}

func space(i int) string { return strings.Repeat(" ", min(i, 1)) }
