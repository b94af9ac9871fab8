package engine

import (
	"errors"
	"runtime"
	"testing"

	"medusa/internal/cuda"
	"medusa/restore"
	"medusa/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// A graph computes with the last mapped block of an elastic cache, and with the next one the device stops it. It loses its context by that,
// so no other test of this package uses the device.
func TestUnmappedBlock(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	t.Setenv("VBLAS_LIB", testenv.Path(t, "build/lib/libvendorblas.so"))
	session, err := restore.FromEnv(restore.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	const row = 6 * kvPage // of three layers
	e, err := New(Options{Model: "../models/tiny", BatchSizes: []int{1}, MaxModelLen: 64, PageSize: 4096, KV: KVElastic, KVCacheBytes: 4 * row,
		KVMappedBytes: 2 * row}, session)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Ready(nil); err != nil {
		t.Fatal(err)
	}
	if len(e.graphs) != 1 || e.KVBlocks() != 8 {
		t.Fatalf("%d graphs, %d blocks", len(e.graphs), e.KVBlocks())
	}
	s, err := e.NewSequence([]int{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	s.blocks = []int32{7}
	if _, err := e.Prefill([]*Sequence{s}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Decode([]*Sequence{s}); err != nil {
		t.Fatal(err)
	}
	s.blocks[0] = 8
	_, err = e.Decode([]*Sequence{s})
	var result cuda.Result
	if !errors.As(err, &result) || result != cuda.IllegalAddress {
		t.Errorf("decode with an unmapped block: %v", err)
	}
}

// Retired blocks are not handed out, come back if the resize is not made, and go if it is.
func TestRetiredBlocks(t *testing.T) {
	c := &kvCache{blocks: 1}
	c.resized(8) // the null block included
	high := int32(0)
	for range 6 {
		high, _ = c.take()
	}
	if high != 6 || c.retire(5) {
		t.Fatalf("block %d is in use", high)
	}
	if _, err := c.take(); err == nil {
		t.Error("a block was handed out that is about to go")
	}
	c.resized(c.blocks)
	if id, err := c.take(); err != nil || id != 7 {
		t.Errorf("after a resize that was not made: %d, %v", id, err)
	}
	c.give([]int32{7})
	if c.retire(5) {
		t.Error("blocks 5 and 6 are in use")
	}
	c.give([]int32{5, 6, 1})
	if !c.retire(5) {
		t.Error("no block from 5 on is in use")
	}
	c.resized(5)
	if id, err := c.take(); err != nil || id != 1 || len(c.free) != 0 {
		t.Errorf("after the resize: %d, %v, %v free", id, err, c.free)
	}
}
