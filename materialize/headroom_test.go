package materialize

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"medusa/interpose/trace"
	"medusa/materialize/recording"
	"medusa/test/tracewriter"
)

func place(i int) uint64 { return 0x7f0000000000 + uint64(i)*0x10000 }

// traceOf writes a trace, with its end or without.
func traceOf(t *testing.T, end bool, records ...trace.Record) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.trace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tracewriter.New(f)
	w.Write(&trace.Process{Protocol: 1, PID: 1})
	for _, r := range records {
		w.Write(r)
	}
	finish := w.Flush
	if end {
		finish = w.End
	}
	if err := finish(); err != nil {
		t.Fatal(err)
	}
	return path
}

func recorded(t *testing.T, records ...trace.Record) *recording.Recording {
	t.Helper()
	r, err := recording.Read(traceOf(t, true, records...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLibraryBytes(t *testing.T) {
	got := libraryBytes(recorded(t,
		&trace.Alloc{ID: 0, Kind: trace.AllocDevice, Addr: place(0), Size: 64 << 20}, // the engine's
		&trace.Phase{Name: "warmup"},
		&trace.Alloc{ID: 1, Kind: trace.AllocDevice, Addr: place(1000), Size: 4 << 20}, // a temporary
		&trace.Free{ID: 1, Kind: trace.AllocDevice},
		&trace.Alloc{ID: 2, Kind: trace.AllocDevice, Addr: place(2000), Size: 3 << 20},  // a library's workspace
		&trace.Alloc{ID: 3, Kind: trace.AllocDevice, Addr: place(3000), Size: 4},        // and its semaphore
		&trace.Alloc{ID: 4, Kind: trace.AllocDevice, Addr: place(4000), Size: 32 << 20}, // the framework's graph pool
		&trace.Block{Addr: place(4000) + 4096, Size: 512, Live: 1},
		&trace.Phase{Name: "ready"}))
	if got != 4<<20 {
		t.Errorf("%d bytes, want the workspace and its semaphore in whole pages: %d", got, 4<<20)
	}
}

func TestHeadroomTolerance(t *testing.T) {
	for _, tt := range []struct{ total, want uint64 }{{8 << 30, 32 << 20}, {80 << 30, 160 << 20}, {160 << 30, 320 << 20}} {
		if got := headroomTolerance(tt.total); got != tt.want {
			t.Errorf("of %d bytes: %d, want %d", tt.total, got, tt.want)
		}
	}
}

func TestMissingHeadroom(t *testing.T) {
	for _, tt := range []struct{ native, restored, shrunk, want uint64 }{
		{100 << 20, 100 << 20, 0, 0},
		{100 << 20, 101 << 20, 0, 0},
		{100 << 20, 99 << 20, 0, 2 << 20},
		{100 << 20, 98<<20 - 1, 0, 4 << 20},
		{100 << 20, 90 << 20, 10 << 20, 0},
		{100 << 20, 95 << 20, 10 << 20, 0},
		{100 << 20, 90 << 20, 8 << 20, 2 << 20},
	} {
		v := &verification{nativeFree: tt.native, restoredFree: tt.restored}
		if got := v.missingHeadroom(tt.shrunk); got != tt.want {
			t.Errorf("native %d restored %d shrunk %d: %d, want %d", tt.native, tt.restored, tt.shrunk, got, tt.want)
		}
	}
}

// Memory that the run profile allocated and did not divide into blocks is found without a look at each pair.
func TestManyBlocksInManyAllocations(t *testing.T) {
	const n = 60_000
	records := []trace.Record{&trace.Phase{Name: "profile"}}
	for i := range n {
		records = append(records, &trace.Alloc{ID: uint32(i), Kind: trace.AllocDevice, Addr: place(i), Size: 4096})
		if i%2 == 0 {
			records = append(records, &trace.Block{Addr: place(i) + 512, Size: 512})
		}
	}
	r := recorded(t, append(records, &trace.Phase{Name: "ready"})...)
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano())
	}
	before := used()
	if got, want := libraryBytes(r), roundUp(n/2*4096); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	if took := used() - before; took > time.Second {
		t.Errorf("it took %v of processor time", took)
	}
}
