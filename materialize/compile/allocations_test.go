package compile_test

import (
	"path/filepath"
	"testing"

	"medusa/graphir"
	"medusa/test/bench"
)

// mostAllocations bounds the allocations of the Go allocator for compiling a node of two traces, and encoding it.
const mostAllocations = 2

// Times on shared machines hide a regression of half; Go allocations of fixed inputs do not.
func TestCompileAllocations(t *testing.T) {
	dir := t.TempDir()
	w := bench.Paper()[3]
	writeTraces(t, dir, w)
	n := testing.AllocsPerRun(1, func() {
		spec, err := compilePair(filepath.Join(dir, w.Name+".A"), filepath.Join(dir, w.Name+".B"))
		if err == nil {
			_, err = graphir.EncodeDetached(spec, nil)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if per := n / float64(w.Nodes); per > mostAllocations {
		t.Errorf("compiling %d nodes makes %.1f allocations each, at most %d", w.Nodes, per, mostAllocations)
	} else {
		t.Logf("%.2f a node", per)
	}
}
