package materialize

import (
	"testing"

	"medusa/interpose/trace"
)

func TestLibraryBytes(t *testing.T) {
	tp := newTape(1)
	tp.alloc(placeA(0), 64<<20) // the engine's
	tp.phase("warmup")
	tp.free(tp.alloc(placeA(1000), 4<<20)) // a temporary
	tp.alloc(placeA(2000), 3<<20)          // a library's workspace
	tp.alloc(placeA(3000), 4)              // and its semaphore
	tp.alloc(placeA(4000), 32<<20)         // the framework's graph pool
	tp.add(&trace.Block{Addr: placeA(4000) + 4096, Size: 512, Live: 1})
	tp.phase("ready")
	if got := tp.recording(t).libraryBytes(); got != 4<<20 {
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
