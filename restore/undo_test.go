package restore

import (
	"fmt"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/interpose"
	"medusa/restore/status"
)

// What a restore gives back is what it made, whatever kind and address an artifact claims for it.
func TestMemoryGoesBackAsItWasMade(t *testing.T) {
	region := interpose.DefaultRegion
	env := append([]string{fmt.Sprintf("MEDUSA_EXACT=%#x:%#x", region.Base, region.Size)}, restoreEnv...)
	native := start{env: env[:1]}.run(t)
	refused := func(s *graphir.Spec) { s.Graphs[2].Nodes[1].Kernel().Block[0] = 5000 }
	for _, kind := range []graphir.AllocKind{graphir.AllocDevice, graphir.AllocManaged, graphir.AllocPinned, graphir.AllocAsync, graphir.AllocPool,
		graphir.AllocVMM, graphir.AllocPitch} {
		for how, later := range map[string]func(*graphir.Spec){"restored": func(*graphir.Spec) {}, "native": refused} {
			o := start{env: env, change: func(s *graphir.Spec) {
				s.Region = graphir.Region(region)
				tmp := &s.Allocations[allocTmp]
				tmp.Kind, tmp.Address = kind, region.Base+1<<20
				later(s)
			}}.run(t)
			if o.exit != 0 || !strings.Contains(o.stdout, "served: correct") || o.status == nil || o.status.Status != how {
				t.Errorf("%s memory, %s: exit %d, status %+v", kind, how, o.exit, o.status)
			}
			if o.leaks != native.leaks {
				t.Errorf("%s memory, %s: left behind %q, a native start leaves %q", kind, how, o.leaks, native.leaks)
			}
		}
	}
}

// A native start after a failed restore finds the engine's kernels as the engine left them.
func TestAttributesAfterAFailedRestore(t *testing.T) {
	o := start{deviations: "shared", env: restoreEnv, change: func(s *graphir.Spec) {
		s.Kernels[0].Attrs = []graphir.FuncAttr{{ID: uint32(dynamicShared), Value: 16}}
		s.Graphs[2].Nodes[1].Kernel().Block[0] = 5000
	}}.run(t)
	if o.exit != 0 || !strings.Contains(o.stdout, "served: correct") || o.status == nil || o.status.Status != status.Native {
		t.Errorf("exit %d, status %+v", o.exit, o.status)
	}
}
