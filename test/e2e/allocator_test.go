package e2e

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/materialize/compile"
	"medusa/restore/status"
	"medusa/test/testenv"
)

// A framework's allocator that places blocks otherwise than when recorded: named tensors are found by name, a block
// without a name is a reason to start natively.
func TestCachingAllocator(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	for _, tt := range []struct {
		mode, ties string
		restored   bool
	}{
		{"caching", "low", true}, {"caching", "high", true},
		{"unnamed", "low", true}, {"unnamed", "high", false},
	} {
		t.Run(tt.mode+" "+tt.ties, func(t *testing.T) {
			t.Setenv("ZOO_ALLOCATOR", tt.mode)
			path, art := materialized(t, zoo)
			_, want := zooOutput(t, must(t, nil, "zoo"))
			p, st := restored(t, []string{"ZOO_TIES=" + tt.ties}, path, zoo)
			isRestored, got := zooOutput(t, p)
			if isRestored != tt.restored || got != want {
				t.Errorf("restored %v (%s %s), outputs as native: %v; want restored %v", isRestored, st.Reason, st.Detail, got == want, tt.restored)
			}
			if !tt.restored && (st.Status != status.Native || !strings.Contains(st.Detail, "block maps")) {
				t.Errorf("status %+v", st)
			}
			if byMap := len(art.Spec.BlockMap) > 0; byMap != (tt.mode == "unnamed") {
				t.Errorf("depends on the block map: %v", byMap)
			}
		})
	}
}

// The two recordings may place blocks differently, as long as every pointer leads to a tensor with a name.
func TestRecordingsWithOtherBlockMaps(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	for mode, fine := range map[string]bool{"caching": true, "unnamed": false} {
		spec, err := compiled(t, record(t, recordRun{variables: []string{"ZOO_ALLOCATOR=" + mode, "ZOO_TIES=low"}}, zoo),
			recordRun{variables: []string{"ZOO_ALLOCATOR=" + mode, "ZOO_TIES=high"}}, zoo)
		if fine && (err != nil || len(spec.BlockMap) != 0 || !bytes.Contains([]byte(specText(spec)), []byte("tensor#"))) {
			t.Errorf("%s: %v", mode, err)
		}
		var word *compile.WordError
		if !fine && (!errors.As(err, &word) || word.Retry) {
			t.Errorf("%s: error %v, want one that names the word", mode, err)
		}
	}
}

func specText(spec *graphir.Spec) string {
	var text bytes.Buffer
	if err := spec.WriteText(&text); err != nil {
		return err.Error()
	}
	return text.String()
}

// Memory that would have two owners in a restored start, and memory that it could not write, is refused when materializing, by name.
func TestMemoryOfTwoOwners(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo, path := testenv.Path(t, "build", "zoo"), filepath.Join(t.TempDir(), "x.medusa")
	for variable, reason := range map[string]string{
		"ZOO_ALLOCATOR=freed": `graph "fork": node 4 (memcpy): it refers to alloc#0+28672, in a block that was free when the capture phase began`,
		"ZOO_METADATA=hidden": `graph "nested": the engine rewrites alloc#12+0, memory of the capture phase, between replays`,
	} {
		p := start(t, []string{variable}, "medusa", "materialize", "-o", path, "--", zoo)
		if p.code != 1 || !strings.Contains(p.stderr, reason) {
			t.Errorf("%s: exit %d, %q; want %q", variable, p.code, p.stderr, reason)
		}
	}
}

// An address of a free block, in a by-value struct, is taken for old contents of a stack only if a launch does not follow it.
func TestOldAddressInAStruct(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo := testenv.Path(t, "build", "zoo")
	t.Run("followed", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.medusa")
		p := start(t, []string{"ZOO_ALLOCATOR=followed"}, "medusa", "materialize", "-o", path, "--", zoo)
		for _, part := range []string{`graph "fork" node 8 kernel axpy parameter 0: byte 0 is`, "free when the capture phase began and at ready; it is no padding"} {
			if p.code != 1 || !strings.Contains(p.stderr, part) {
				t.Errorf("exit %d, %q; want %q", p.code, p.stderr, part)
			}
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("artifact: %v", err)
		}
	})
	t.Run("left", func(t *testing.T) {
		t.Setenv("ZOO_ALLOCATOR", "left")
		path, art := materialized(t, zoo)
		if k := art.Spec.Graphs[0].Nodes[8].Kernel(); k == nil || len(k.Relocations) != 1 || !bytes.Equal(k.Params[:8], make([]byte, 8)) {
			t.Errorf("node 8: %+v", k)
		}
		_, want := zooOutput(t, must(t, nil, "zoo"))
		p, _ := restored(t, nil, path, zoo)
		if isRestored, got := zooOutput(t, p); !isRestored || got != want {
			t.Errorf("restored %v, outputs as native: %v", isRestored, got == want)
		}
	})
}

// Memory of the capture phase that the engine writes between replays is handed to a restored engine under its name.
func TestNamedMetadata(t *testing.T) {
	t.Setenv("ZOO_METADATA", "named")
	zoo := testenv.Path(t, "build", "zoo")
	path, _ := materialized(t, zoo)
	_, want := zooOutput(t, must(t, nil, "zoo"))
	p, _ := restored(t, nil, path, zoo)
	if isRestored, got := zooOutput(t, p); !isRestored || got != want {
		t.Errorf("restored %v, outputs as native: %v", isRestored, got == want)
	}
}
