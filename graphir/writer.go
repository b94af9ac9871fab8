package graphir

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/proto"

	"medusa/graphir/graphpb"
)

// Storage stores row groups, for example an *os.File.
type Storage interface {
	io.WriterAt
	io.ReaderAt
}

// Writer takes graphs one at a time. It keeps a small set in memory as it is. Once the set is too large for that, it encodes the
// graphs.
type Writer struct {
	storage  Storage
	full     int64 // decoded bytes of a group
	tables   *tables
	graphs   []Graph // all of them; nodes and edges only of those not encoded
	template []uint32
	first    int   // of the graphs that are not in a group yet
	bytes    int64 // their decoded size
	rows     rowsToWrite
	groups   []rowGroup
	end      int64 // of the storage
	offsets  []int64
	referred [SpaceTensor + 1][]bool // by space and entry of its table
}

// NewWriter returns a writer whose row groups go to storage. If it is nil, they stay in memory.
func NewWriter(storage Storage) *Writer {
	if storage == nil {
		storage = &memoryStorage{}
	}
	return &Writer{storage: storage, full: maxGroup, tables: newTables(), rows: rowsToWrite{&graphpb.RowGroup{}, 0, rowEncoder{latest: map[uint32]prediction{}}}}
}

// Add appends a graph. Its nodes and edges belong to the writer until Finish or the next error.
func (w *Writer) Add(g *Graph) error {
	bytes := g.bytes()
	if bytes > maxGroup {
		return fmt.Errorf("encode graph %d: its %d nodes take %d bytes decoded (at most %d)", len(w.graphs), len(g.Nodes), bytes, maxGroup)
	}
	// mutant: row groups are encoded as soon as they are full
	if w.overflows(bytes) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.graphs, w.bytes = append(w.graphs, *g), w.bytes+bytes
	if len(w.groups) == 0 {
		return nil
	}
	return w.encode(len(w.graphs) - 1)
}

// overflows reports whether a graph is to begin the next group. One that is larger than a full group has one to itself.
func (w *Writer) overflows(bytes int64) bool {
	// mutant: a group begins with a graph
	return w.bytes > 0 && w.bytes+bytes > w.full
}

// bytes returns the graph's share of maxGroup.
func (g *Graph) bytes() int64 {
	var e extent
	for i := range g.Nodes {
		if p := g.Nodes[i].Params; p != nil {
			e.add(p.extent())
		}
	}
	return decodedBytes(len(g.Nodes), len(g.Edges), e)
}

// rowsToWrite are encoded graphs that are not in a group yet.
type rowsToWrite struct {
	pb   *graphpb.RowGroup
	size int
	rowEncoder
}

// flush writes all graphs that are not in a group yet.
func (w *Writer) flush() error {
	for i := len(w.template); i < len(w.graphs); i++ {
		if err := w.encode(i); err != nil {
			return err
		}
	}
	w.bytes = 0
	return w.write()
}

// encode encodes the next graph as a row. If the pending rows are large, it writes them as a group first.
func (w *Writer) encode(i int) error {
	if w.rows.size > maxGroupEncoded/4 {
		if err := w.write(); err != nil {
			return err
		}
	}
	g, rows := &w.graphs[i], &w.rows
	template, err := w.tables.template(g)
	if err != nil {
		return fmt.Errorf("encode graph %d: %w", i, err)
	}
	row := rows.encode(w.tables.plans[template], g, template, len(rows.pb.Graphs))
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(row)
	if err != nil {
		return fmt.Errorf("encode graph %d: %w", i, err)
	}
	rows.pb.Graphs, rows.size = append(rows.pb.Graphs, data), rows.size+len(data)
	refer := w.refer
	for n := range g.Nodes {
		g.Nodes[n].Pointers(refer)
	}
	w.template = append(w.template, template)
	g.Nodes, g.Edges = nil, nil
	return nil
}

func (w *Writer) refer(p Pointer) {
	if p.Space > SpaceTensor {
		return // validation reports it
	}
	seen := &w.referred[p.Space]
	if n := int(p.Index) + 1; n > len(*seen) {
		*seen = append(*seen, make([]bool, n-len(*seen))...)
	}
	(*seen)[p.Index] = true
}

func (w *Writer) write() error {
	count := len(w.rows.pb.Graphs)
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(w.rows.pb)
	if err == nil && len(data) > maxGroupEncoded {
		err = fmt.Errorf("%d bytes (at most %d)", len(data), maxGroupEncoded)
	}
	if err == nil {
		_, err = w.storage.WriteAt(data, w.end)
	}
	if err != nil {
		return fmt.Errorf("write row group %d: %w", len(w.groups), err)
	}
	w.groups = append(w.groups, rowGroup{w.first, count, len(data), sha256.Sum256(data)})
	w.offsets = append(w.offsets, w.end)
	w.first, w.end = w.first+count, w.end+int64(len(data))
	w.rows.pb, w.rows.size = &graphpb.RowGroup{}, 0
	w.rows.begin()
	return nil
}

// Finish sets the Spec's graphs: a small set with its nodes, a large set without them and with Rows. The storage must not change
// as long as Rows are read.
func (w *Writer) Finish(s *Spec) error {
	s.Graphs, s.Rows = w.graphs, nil
	if len(w.groups) == 0 {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	groups, offsets, storage := w.groups, w.offsets, w.storage
	s.Rows = &Rows{plans: w.tables.plans, template: w.template, groups: groups, read: func(i int, buffer []byte) ([]byte, error) {
		buffer = slices.Grow(buffer[:0], groups[i].size)[:groups[i].size]
		if _, err := storage.ReadAt(buffer, offsets[i]); err != nil && err != io.EOF {
			return nil, fmt.Errorf("read row group %d: %w", i, err)
		}
		return buffer, nil
	}}
	for space := range w.referred { // objects are numbered in this order
		for i, is := range w.referred[space] {
			if is && i < s.spaceSize(Space(space)) {
				s.Rows.referred = append(s.Rows.referred, s.Object(Space(space), uint32(i)))
			}
		}
	}
	return nil
}

// Change passes every graph to change, which may alter the values of its nodes. If there are row groups, Change writes them anew
// to storage.
func (s *Spec) Change(storage Storage, change func(i int, g *Graph)) error {
	if s.Rows == nil {
		for i := range s.Graphs {
			change(i, &s.Graphs[i])
		}
		return nil
	}
	w := NewWriter(storage)
	err := s.EachGraph(func(i int, g *Graph) error {
		g = g.clone()
		change(i, g)
		return w.Add(g)
	})
	if err != nil {
		return err
	}
	return w.Finish(s)
}

// memoryStorage is a Storage that only grows.
type memoryStorage struct{ data []byte }

func (m *memoryStorage) WriteAt(p []byte, off int64) (int, error) {
	m.data = append(m.data[:off], p...)
	return len(p), nil
}

func (m *memoryStorage) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(m.data)) {
		return 0, io.EOF
	}
	n := copy(p, m.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
