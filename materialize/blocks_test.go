package materialize

import (
	"errors"
	"strings"
	"testing"

	"medusa/interpose/trace"
)

// A framework's allocator divides allocation 0: a named tensor, a block nobody named, a block that was free.
func TestPointersIntoAFrameworksBlocks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		offset uint64
		mark   bool
		moved  bool // run B has another block map
		reason string
	}{
		{"named tensor", 512, true, true, ""},
		{"no named tensor", 1024, true, false, ""},
		{"no named tensor, another map", 1024, true, true, "no named tensor"},
		{"free block", 2048, true, false, "free when the capture phase began"},
		{"an engine without an allocator of its own", 1024, false, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := compilePair(t, func(tp *tape, at place) {
				tp.function(0, trace.ModuleModule, "k", 8)
				tp.alloc(at(0), 4096)
				tp.add(&trace.Tensor{Name: "w", Addr: at(0) + 512, Size: 512, Role: 1, Dtype: 6})
				if tt.mark {
					for i, live := range []uint8{1, 1, 0} {
						tp.add(&trace.Block{Addr: at(0) + uint64(i)*1024, Size: 1024, Live: live})
					}
				}
				if tt.moved && tp.seed != 1 {
					tp.add(&trace.Block{Addr: at(0) + 3072, Size: 1024})
				}
				tp.phase("warmup")
				if tt.mark {
					tp.add(&trace.Block{Addr: at(0) + 2048, Size: 1024, Live: 1}) // later: not what the phase began with
				}
				tp.phase("capture")
				tp.capture("g", 1, tp.kernel(0, at(0)+tt.offset))
				tp.phase("ready")
			})
			var refused *RefusedError
			if tt.reason == "" {
				if err != nil {
					t.Error(err)
				}
			} else if !errors.As(err, &refused) || !strings.Contains(refused.Reason, tt.reason) {
				t.Errorf("got %v, want a refusal about %q", err, tt.reason)
			}
		})
	}
}
