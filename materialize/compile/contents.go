package compile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// piece is one contiguous run of saved bytes of an allocation.
type piece struct {
	alloc  uint32
	space  graphir.Space
	offset uint64
	size   uint64
	parts  []recording.Saved
}

// content compares one saved range of both runs. It changes a, which becomes the data. Bytes that differ and lead nowhere are remains
// of earlier work (scratch space of a library, say): they are stored as zero and marked, and verification runs with garbage there.
func (p *prover) content(pa *piece, a, b []byte) (all []graphir.Content, err error) {
	refuse := func(o uint64, err *WordError) ([]graphir.Content, error) {
		err.Where, err.Offset = pa.String(), pa.offset+o
		return nil, err
	}
	out := graphir.Content{Alloc: pa.alloc, Space: pa.space, Offset: pa.offset}
	start := uint64(0) // of out
	relocation := func(o uint64, f graphir.Relocation) uint64 {
		f.Offset = uint32(o - start)
		out.Relocations = append(out.Relocations, f)
		clear(a[o : o+uint64(f.Size())])
		return o + uint64(f.Size())
	}
	for o := uint64(0); o < uint64(len(a)); {
		// mutant: large buffers in pieces
		if o-start >= p.cut {
			out.Data = a[start:o:o]
			all = append(all, out)
			out, start = graphir.Content{Alloc: pa.alloc, Space: pa.space, Offset: pa.offset + o}, o
		}
		if (pa.offset+o)%tensorMapAlign == 0 {
			number, ptr, err := p.maps.at(p, a[o:], b[o:])
			if err != nil {
				return refuse(o, err)
			}
			if number != 0 {
				o = relocation(o, graphir.Relocation{Pointer: ptr, TensorMap: number})
				continue
			}
		}
		n := min(8-(pa.offset+o)%8, uint64(len(a))-o)
		if bytes.Equal(a[o:o+n], b[o:o+n]) && (n < 8 || p.outside(binary.LittleEndian.Uint64(a[o:]))) {
			o += n
			continue
		}
		if n == 8 {
			ptr, isPointer, err := p.word(binary.LittleEndian.Uint64(a[o:]), binary.LittleEndian.Uint64(b[o:]))
			if err != nil && err.Retry {
				return refuse(o, err)
			}
			// mutant: pointer discovered in saved contents
			if isPointer {
				o = relocation(o, graphir.Relocation{Pointer: ptr})
				continue
			}
			if err == nil {
				o += 8
				continue
			}
		}
		clear(a[o : o+n])
		if k, at := len(out.Unstable), o-start; k > 0 && out.Unstable[k-1].Offset+out.Unstable[k-1].Size == at {
			out.Unstable[k-1].Size += n
		} else {
			out.Unstable = append(out.Unstable, graphir.Range{Offset: at, Size: n})
		}
		o += n
	}
	out.Data = a[start:]
	return append(all, out), nil
}

func (p *piece) String() string { return fmt.Sprintf("saved buffer %s#%d", p.space, p.alloc) }

// outside reports that the word cannot point into a live allocation of either run.
func (p *prover) outside(v uint64) bool { return v < p.lo || v > p.hi }

// Permanent buffers (paper §4.3): memory that the capture phase allocated, that is still in use when the engine is ready
// and that a graph reaches. Temporaries are left out by the recorder, which knows the framework's free blocks; the engine
// fills memory that was allocated before the capture phase.

// compileContents saves the memory that the graphs reach, directly or through pointers inside saved buffers.
func compileContents(a, b addresses, spec *graphir.Spec, maps *tensorMaps, seen *uses) error {
	pa, pb := a.pieces(), b.pieces()
	if len(pa) != len(pb) {
		return fmt.Errorf("compile contents: %d saved ranges in record-a, %d in record-b", len(pa), len(pb))
	}
	p, err := proverAt(a, b, a.ReadyOrder, b.ReadyOrder, maps)
	if err != nil {
		return err
	}
	var all []graphir.Content
	var other []byte
	for i := range pa {
		x, y := &pa[i], &pb[i]
		if x.alloc != y.alloc || x.space != y.space || x.offset != y.offset || x.size != y.size {
			return fmt.Errorf("compile contents: saved range %d is alloc#%d+%d of %d bytes in record-a, alloc#%d+%d of %d in record-b",
				i, x.alloc, x.offset, x.size, y.alloc, y.offset, y.size)
		}
		if x.space == graphir.SpaceAlloc && spec.Allocations[x.alloc].Owner == graphir.OwnerEngine {
			continue // a program that marks no phase has no capture phase: the recorder saves all that it allocates
		}
		data, err := a.data(x, nil)
		if err == nil {
			other, err = b.data(y, other)
		}
		if err != nil {
			return fmt.Errorf("compile contents: read %s: %w", x, err)
		}
		saved, err := p.content(x, data, other)
		if err != nil {
			return err
		}
		all = append(all, saved...)
	}
	reached := seen.reachable(all)
	for _, c := range all {
		if reached[target{c.Space, c.Alloc}] {
			if c.Space == graphir.SpaceGlobal && a.variable(c.Alloc).ambiguous {
				use, used := seen.modules[spec.Globals[c.Alloc].Module]
				if !used {
					continue // no graph uses it
				}
				return &RefusedError{use.label, use.node, "kernel", fmt.Sprintf("variable %s is of a module whose image was loaded more than once", a.variable(c.Alloc).Name)}
			}
			if err := ofOthers(a, spec, all, &c); err != nil {
				return err
			}
			spec.Contents = append(spec.Contents, c)
		}
	}
	return nil
}

// pieces joins the recorder's content records, which are cut at its buffer size. Memory of one run only has no pieces: no pointer leads there.
func (r *run) pieces() []piece {
	records := slices.Clone(r.Contents)
	for i := range records {
		records[i].Alloc = r.number(records[i].Alloc)
	}
	records = slices.DeleteFunc(records, func(s recording.Saved) bool { return int(s.Alloc) >= r.kept })
	slices.SortStableFunc(records, func(x, y recording.Saved) int {
		// mutant: saved contents in order
		return cmp.Or(cmp.Compare(x.Alloc, y.Alloc), cmp.Compare(x.Offset, y.Offset))
	})
	var out []piece
	for _, s := range records {
		out = appendPart(out, graphir.SpaceAlloc, s)
	}
	return append(out, r.globalPieces()...)
}

// appendPart adds to the last piece the bytes directly behind it.
func appendPart(out []piece, space graphir.Space, s recording.Saved) []piece {
	// mutant: contents that lie side by side
	if n := len(out); n > 0 && out[n-1].alloc == s.Alloc && out[n-1].offset+out[n-1].size == s.Offset {
		out[n-1].parts = append(out[n-1].parts, s)
		out[n-1].size += s.Size
		return out
	}
	return append(out, piece{alloc: s.Alloc, space: space, offset: s.Offset, size: s.Size, parts: []recording.Saved{s}})
}

// globalPieces are the contents of module variables. The recorder cuts them as it cuts buffers, in order.
func (r *run) globalPieces() []piece {
	ids := make(map[savedName]uint32, len(r.variables))
	for i := range r.variables {
		ids[savedName{r.variables[i].Module, r.variables[i].Name}] = r.variables[i].ID
	}
	var out []piece
	for _, s := range r.GlobalData {
		id, known := ids[savedName{s.Module, s.Name}]
		if !known {
			continue
		}
		s.Alloc = id
		out = appendPart(out, graphir.SpaceGlobal, s)
	}
	slices.SortStableFunc(out, func(x, y piece) int { return cmp.Compare(x.alloc, y.alloc) })
	return out
}

// data reads a piece's bytes, into buffer if they fit.
func (r *run) data(p *piece, buffer []byte) ([]byte, error) {
	out := slices.Grow(buffer[:0], int(p.size))[:p.size]
	at := uint64(0)
	for _, s := range p.parts {
		if err := r.ReadSaved(s, out[at:at+s.Size]); err != nil {
			return nil, err
		}
		at += s.Size
	}
	return out, nil
}

// ofOthers refuses saved memory that leads to another process's memory, of which only its owner knows which memory that is, or to memory
// of a multicast object.
func ofOthers(a addresses, spec *graphir.Spec, all []graphir.Content, c *graphir.Content) error {
	for _, f := range c.Relocations {
		if f.Pointer.Space != graphir.SpaceAlloc {
			continue
		}
		al, what := &a.allocs[f.Pointer.Index], "another process's memory"
		if al.Multicast != "" {
			what = "memory of a multicast object"
		}
		// mutant: memory of another process, by way of saved memory
		if al.Kind == graphir.AllocIPC || al.Multicast != "" {
			at := leadsTo(spec, all, target{c.Space, c.Alloc})
			return &RefusedError{at.label, at.node, nodeTypeName(uint32(at.kind)), fmt.Sprintf("%s#%d+%d, which it reaches, refers to %s (alloc#%d)",
				c.Space, c.Alloc, c.Offset+uint64(f.Offset), what, f.Pointer.Index)}
		}
	}
	return nil
}

// maxContent bounds a Content's data: the offsets of its relocations have 32 bits, and a larger buffer becomes several.
const maxContent = 1 << 30
