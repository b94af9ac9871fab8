package rebuild

import (
	"slices"
	"testing"

	"medusa/graphir"
	"medusa/internal/cuda"
)

// outsideSpec holds a graph that embeds another, records an event of the engine's and reads saved host memory.
func outsideSpec() *graphir.Spec {
	return &graphir.Spec{
		Allocations: []graphir.Allocation{{Kind: graphir.AllocDevice, Size: 64}, {Kind: graphir.AllocPinned, Size: 64}},
		HostBuffers: []graphir.HostBuffer{{Size: 16}},
		Events:      []graphir.Event{{}, {Flags: 2}},
		Children: []graphir.Graph{
			{Nodes: []graphir.Node{{Type: graphir.NodeEmpty}, {Type: graphir.NodeEventWait, Target: 0}}, Edges: []graphir.Edge{{From: 0, To: 1}}},
			{Nodes: []graphir.Node{{Type: graphir.NodeChild, Target: 0}}},
		},
		Graphs: []graphir.Graph{{Label: "g", Nodes: []graphir.Node{
			{Type: graphir.NodeChild, Target: 1},
			{Type: graphir.NodeEventRecord, Target: 1},
			{Type: graphir.NodeMemcpy, Params: &graphir.MemcpyNode{
				Src:   graphir.MemcpyEnd{Pointer: graphir.Pointer{Space: graphir.SpaceHost}},
				Dst:   graphir.MemcpyEnd{Pointer: graphir.Pointer{Index: 1}},
				Width: 16, Height: 1, Depth: 1}},
		}}},
	}
}

func layOutside(t *testing.T, change func(*builder)) ([]string, *builder, error) {
	t.Helper()
	spec := outsideSpec()
	b := testBuilder(spec)
	b.memory.Base = []uint64{0x1000, 0x2000, 0x3000}
	b.events = []uint64{0xe0, 0xe1}
	if change != nil {
		change(b)
	}
	slots := make([]uint64, 5)
	err := b.lay(&template{graph: &slots[0], nodes: slots[1:4]}, &spec.Graphs[0], true, &slots[4])
	var calls []string
	for _, s := range b.program.steps {
		calls = append(calls, s.call.String())
	}
	t.Cleanup(b.arena.release)
	return calls, b, err
}

// An embedded graph is whole before the driver copies it into its node, and so is one inside of it.
func TestLayEmbeddedGraphs(t *testing.T) {
	calls, b, err := layOutside(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cuGraphCreate",
		"cuGraphCreate",
		"cuGraphCreate", "cuGraphAddEmptyNode", "cuGraphAddEventWaitNode", "cuGraphAddDependencies_v2",
		"cuGraphAddChildGraphNode",
		"cuGraphAddChildGraphNode",
		"cuGraphAddEventRecordNode", "cuGraphAddMemcpyNode", "cuGraphInstantiateWithFlags", "cuGraphUpload"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls\n%q, want\n%q", calls, want)
	}
	if len(b.embedded) != 2 {
		t.Errorf("%d embedded graphs to destroy, want 2", len(b.embedded))
	}
	for i, s := range b.program.steps {
		c := &b.program.calls[i]
		if s.call == cuda.EntryGraphAddEventRecordNode && c.Arg[4] != 0xe1 || s.call == cuda.EntryGraphAddEventWaitNode && c.Arg[4] != 0xe0 {
			t.Errorf("%s of event %#x", s.call.String(), c.Arg[4])
		}
	}
}

// An event that this process no longer has cannot be replaced by another.
func TestLayRefusesMissingEvents(t *testing.T) {
	if _, _, err := layOutside(t, func(b *builder) { b.events[1] = 0 }); err == nil {
		t.Error("a destroyed event: no error")
	}
	if _, _, err := layOutside(t, func(b *builder) { b.events = b.events[:1] }); err == nil {
		t.Error("an event that was never created: no error")
	}
}

// The driver looks at the host or at the device address of a copy's end as its memory type says.
func TestMemoryTypes(t *testing.T) {
	spec := outsideSpec()
	for p, want := range map[graphir.Pointer]uint32{
		{Index: 0}:                   2,
		{Index: 1}:                   memoryTypeHost,
		{Space: graphir.SpaceHost}:   memoryTypeHost,
		{Space: graphir.SpaceGlobal}: 2,
	} {
		if got := memoryType(spec, p); got != want {
			t.Errorf("%v: memory type %d, want %d", p, got, want)
		}
	}
}

// A variable counts if any graph refers to it, an embedded one too.
func TestReferencedObjects(t *testing.T) {
	spec := outsideSpec()
	spec.Modules = []graphir.Module{{Kind: graphir.ModuleLoaded}}
	spec.Globals = []graphir.Global{{Name: "used", Size: 8}, {Name: "unused", Size: 8}}
	spec.Children[0].Nodes = append(spec.Children[0].Nodes, graphir.Node{Type: graphir.NodeMemset, Params: &graphir.MemsetNode{Dst: graphir.Pointer{Space: graphir.SpaceGlobal}}})
	if got, want := spec.Referenced(), []bool{false, true, true, false, true}; !slices.Equal(got, want) {
		t.Errorf("referenced objects %v, want %v: allocations, variables, host buffers", got, want)
	}
}
