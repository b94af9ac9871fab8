package materialize

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// Permanent buffers (paper §4.3): memory that the capture phase allocated, that is still in use when the engine is ready
// and that a graph reaches. Temporaries are left out by the recorder, which knows the framework's free blocks; what was
// allocated before the capture phase is the engine's to fill.

// piece is one contiguous run of saved bytes of an allocation.
type piece struct {
	alloc  uint32
	space  graphir.Space
	offset uint64
	data   []byte
}

// pieces joins the recorder's content records, which are cut at its buffer size.
func pieces(r *Recording) []piece {
	recs := slices.Clone(r.contents)
	slices.SortStableFunc(recs, func(x, y *trace.Content) int {
		if x.Alloc != y.Alloc {
			return int(x.Alloc) - int(y.Alloc)
		}
		return compareU64(x.Offset, y.Offset)
	})
	var out []piece
	for _, c := range recs {
		if n := len(out); n > 0 && out[n-1].alloc == c.Alloc && out[n-1].offset+uint64(len(out[n-1].data)) == c.Offset {
			out[n-1].data = append(out[n-1].data, c.Data...)
			continue
		}
		out = append(out, piece{alloc: c.Alloc, offset: c.Offset, data: bytes.Clone(c.Data)})
	}
	return append(out, r.globalPieces()...)
}

// globalPieces is what module variables held. The recorder cuts them as it cuts buffers, in order.
func (r *Recording) globalPieces() []piece {
	var out []piece
	for _, v := range r.globalData {
		k := slices.IndexFunc(r.globals, func(g global) bool { return g.module == v.Module && g.name == v.Name })
		if k < 0 {
			continue
		}
		id := r.globals[k].id
		if n := len(out); n > 0 && out[n-1].alloc == id && uint64(len(out[n-1].data)) == v.Offset {
			out[n-1].data = append(out[n-1].data, v.Data...)
			continue
		}
		out = append(out, piece{alloc: id, space: graphir.SpaceGlobal, data: bytes.Clone(v.Data)})
	}
	slices.SortStableFunc(out, func(x, y piece) int { return int(x.alloc) - int(y.alloc) })
	return out
}

func compareU64(x, y uint64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// compileContents saves what the graphs reach, directly or through pointers inside saved buffers.
func compileContents(a, b *Recording, spec *graphir.Spec, maps *tensorMaps, seen *uses) error {
	pa, pb := pieces(a), pieces(b)
	if len(pa) != len(pb) {
		return fmt.Errorf("compile contents: %d saved ranges in run A, %d in run B", len(pa), len(pb))
	}
	p := newProver(a.liveAt(a.readyOrder), b.liveAt(b.readyOrder), maps)
	all := make([]graphir.Content, len(pa))
	for i := range pa {
		if pa[i].alloc != pb[i].alloc || pa[i].space != pb[i].space || pa[i].offset != pb[i].offset || len(pa[i].data) != len(pb[i].data) {
			return fmt.Errorf("compile contents: saved range %d is alloc#%d+%d of %d bytes in run A, alloc#%d+%d of %d in run B",
				i, pa[i].alloc, pa[i].offset, len(pa[i].data), pb[i].alloc, pb[i].offset, len(pb[i].data))
		}
		c, err := p.content(pa[i], pb[i].data)
		if err != nil {
			return err
		}
		all[i] = c
	}
	reached := seen.reachable(all)
	for _, c := range all {
		if reached[target{c.Space, c.Alloc}] {
			if c.Space == graphir.SpaceGlobal && a.global(c.Alloc).ambiguous {
				use, used := seen.modules[spec.Globals[c.Alloc].Module]
				if !used {
					continue // no graph can tell
				}
				return &RefusedError{use.label, use.node, "kernel", fmt.Sprintf("variable %s is of a module whose image was loaded more than once", a.global(c.Alloc).name)}
			}
			spec.Contents = append(spec.Contents, c)
		}
	}
	return nil
}

// content compares one saved range of both runs. Bytes that differ and lead nowhere are what earlier work left behind
// (scratch space of a library, say): they are stored as zero and marked, and verification runs with garbage there.
func (p *prover) content(pa piece, b []byte) (graphir.Content, error) {
	a := pa.data
	out := graphir.Content{Alloc: pa.alloc, Space: pa.space, Offset: pa.offset, Data: bytes.Clone(a)}
	for o := uint64(0); o < uint64(len(a)); {
		if (pa.offset+o)%tensorMapAlign == 0 {
			number, ptr, err := p.maps.at(p, a[o:], b[o:])
			if err != nil {
				err.Where, err.Offset = pa.String(), pa.offset+o
				return out, err
			}
			if number != 0 {
				out.Fixups = append(out.Fixups, graphir.Fixup{Offset: uint32(o), Pointer: ptr, TensorMap: number})
				clear(out.Data[o : o+graphir.TensorMapBytes])
				o += graphir.TensorMapBytes
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
				err.Where, err.Offset = pa.String(), pa.offset+o
				return out, err
			}
			if isPointer {
				out.Fixups = append(out.Fixups, graphir.Fixup{Offset: uint32(o), Pointer: ptr})
				clear(out.Data[o : o+8])
				o += 8
				continue
			}
			if err == nil {
				o += 8
				continue
			}
		}
		clear(out.Data[o : o+n])
		if k := len(out.Unstable); k > 0 && out.Unstable[k-1].Offset+out.Unstable[k-1].Size == o {
			out.Unstable[k-1].Size += n
		} else {
			out.Unstable = append(out.Unstable, graphir.Range{Offset: o, Size: n})
		}
		o += n
	}
	return out, nil
}

// outside reports that the word cannot point into a live allocation of either run.
func (p *prover) outside(v uint64) bool { return v < p.lo || v > p.hi }

func (p piece) String() string { return fmt.Sprintf("saved buffer %s#%d", p.space, p.alloc) }
