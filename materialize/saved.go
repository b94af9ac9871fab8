package materialize

import (
	"cmp"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// savedPart is a record of what memory held at `ready`. Its bytes lie in the recording's file for them: workspaces of libraries
// can take gigabytes, and three recordings are held at once.
type savedPart struct {
	alloc  uint32 // a buffer's
	module uint32 // a variable's, as is name
	name   string
	offset uint64
	size   uint64
	at     int64 // in the file
}

// save keeps what a record says, but for its bytes.
func (r *Recording) save(s savedPart, data []byte) (savedPart, error) {
	s.size, s.at = uint64(len(data)), r.bytes.End()
	_, err := r.bytes.WriteAt(data, s.at)
	return s, err
}

// piece is one contiguous run of saved bytes of an allocation.
type piece struct {
	alloc  uint32
	space  graphir.Space
	offset uint64
	size   uint64
	parts  []savedPart
}

// data reads a piece's bytes, into buffer where they fit.
func (r *Recording) data(p *piece, buffer []byte) ([]byte, error) {
	out := slices.Grow(buffer[:0], int(p.size))[:p.size]
	at := uint64(0)
	for _, s := range p.parts {
		if _, err := r.bytes.ReadAt(out[at:at+s.size], s.at); err != nil {
			return nil, err
		}
		at += s.size
	}
	return out, nil
}

// pieces joins the recorder's content records, which are cut at its buffer size.
func (r *Recording) pieces() []piece {
	records := slices.Clone(r.contents)
	slices.SortStableFunc(records, func(x, y savedPart) int {
		// mutant: saved contents in order
		return cmp.Or(cmp.Compare(x.alloc, y.alloc), cmp.Compare(x.offset, y.offset))
	})
	var out []piece
	for _, s := range records {
		out = appendPart(out, graphir.SpaceAlloc, s)
	}
	return append(out, r.globalPieces()...)
}

// globalPieces is what module variables held. The recorder cuts them as it cuts buffers, in order.
func (r *Recording) globalPieces() []piece {
	ids := make(map[variable]uint32, len(r.globals))
	for i := range r.globals {
		ids[variable{r.globals[i].module, r.globals[i].name}] = r.globals[i].id
	}
	var out []piece
	for _, s := range r.globalData {
		id, known := ids[variable{s.module, s.name}]
		if !known {
			continue
		}
		s.alloc = id
		out = appendPart(out, graphir.SpaceGlobal, s)
	}
	slices.SortStableFunc(out, func(x, y piece) int { return cmp.Compare(x.alloc, y.alloc) })
	return out
}

// appendPart adds to the last piece what lies directly behind it.
func appendPart(out []piece, space graphir.Space, s savedPart) []piece {
	// mutant: contents that lie side by side
	if n := len(out); n > 0 && out[n-1].alloc == s.alloc && out[n-1].offset+out[n-1].size == s.offset {
		out[n-1].parts = append(out[n-1].parts, s)
		out[n-1].size += s.size
		return out
	}
	return append(out, piece{alloc: s.alloc, space: space, offset: s.offset, size: s.size, parts: []savedPart{s}})
}

// addSaved takes a record of what memory held.
func (r *Recording) addSaved(rec trace.Record) error {
	switch v := rec.(type) {
	case *trace.Content:
		s, err := r.save(savedPart{alloc: v.Alloc, offset: v.Offset}, v.Data)
		r.contents = append(r.contents, s)
		return err
	case *trace.GlobalData:
		s, err := r.save(savedPart{module: v.Module, name: v.Name, offset: v.Offset}, v.Data)
		r.globalData = append(r.globalData, s)
		return err
	}
	return nil
}
