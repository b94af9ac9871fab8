package compile

import (
	"bytes"
	"runtime"
	"slices"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// Workspaces of libraries take tens of megabytes for each stream: a recording keeps their contents in a file, and gives them back
// joined and in order, however it was cut.
func TestContentsStayInAFile(t *testing.T) {
	const parts, size = 32, 1 << 20
	tp := newTape(1)
	for i := range uint64(parts) {
		id := tp.alloc(0x7f0000000000+i*2*size, 2*size)
		for _, half := range []uint64{1, 0} {
			tp.add(&trace.Content{Alloc: id, Offset: half * size, Data: bytes.Repeat([]byte{byte(2*i + half)}, size)})
		}
	}
	path := tp.file(t, true)
	tp = nil
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	r, err := recording.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if after := heap(); after > before+4*size {
		t.Errorf("a recording with %d MiB of contents takes %d bytes", 2*parts, after-before)
	}
	pieces := newRun(r).pieces()
	if len(pieces) != parts {
		t.Fatalf("%d pieces, want one for each of %d allocations", len(pieces), parts)
	}
	for i := range pieces {
		data, err := newRun(r).data(&pieces[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		want := append(bytes.Repeat([]byte{byte(2 * i)}, size), bytes.Repeat([]byte{byte(2*i + 1)}, size)...)
		if pieces[i].alloc != uint32(i) || !bytes.Equal(data, want) {
			t.Errorf("piece %d: alloc#%d, %d bytes", i, pieces[i].alloc, len(data))
		}
	}
}

// recording.Saved bytes are joined if they lie directly behind each other in one allocation.
func TestAppendPart(t *testing.T) {
	var got []piece
	for _, s := range []recording.Saved{{Alloc: 1, Size: 8}, {Alloc: 1, Offset: 8, Size: 8}, {Alloc: 1, Offset: 24, Size: 8}, {Alloc: 2, Offset: 32, Size: 8}} {
		got = appendPart(got, graphir.SpaceAlloc, s)
	}
	var lie [][3]uint64
	for _, p := range got {
		lie = append(lie, [3]uint64{uint64(p.alloc), p.offset, p.size})
	}
	if want := [][3]uint64{{1, 0, 16}, {1, 24, 8}, {2, 32, 8}}; !slices.Equal(lie, want) {
		t.Errorf("pieces (allocation, offset, size) %v, want %v", lie, want)
	}
}
