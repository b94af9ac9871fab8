package compile

import (
	"cmp"
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

// pieces joins the recorder's content records, which are cut at its buffer size.
func (r *run) pieces() []piece {
	records := slices.Clone(r.contents)
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

// globalPieces are the contents of module variables. The recorder cuts them as it cuts buffers, in order.
func (r *run) globalPieces() []piece {
	ids := make(map[variable]uint32, len(r.globals))
	for i := range r.globals {
		ids[variable{r.globals[i].Module, r.globals[i].Name}] = r.globals[i].ID
	}
	var out []piece
	for _, s := range r.GlobalData {
		id, known := ids[variable{s.Module, s.Name}]
		if !known {
			continue
		}
		s.Alloc = id
		out = appendPart(out, graphir.SpaceGlobal, s)
	}
	slices.SortStableFunc(out, func(x, y piece) int { return cmp.Compare(x.alloc, y.alloc) })
	return out
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
