package interpose

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"medusa/interpose/trace"
)

func simulated(t *testing.T) string { return filepath.Dir(build(t, "build/simulated/libcuda.so.1")) }

// printed parses the `name value` lines of a test program. If a name repeats, its last value counts.
func printed(t *testing.T, r result) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	for line := range strings.Lines(r.stdout) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseUint(value, 10, 64); err == nil {
			out[name] = v
		}
	}
	return out
}

// params lays out values as the driver does: each aligned to its own size.
func params(values ...any) []byte {
	var b []byte
	for _, v := range values {
		for len(b)%binary.Size(v) != 0 {
			b = append(b, 0)
		}
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	return b
}

// A fork and join with a memset and a copy. The recorded nodes, parameter bytes, edges, names and executable graph are those that
// the program made.
func TestGraphIsRecorded(t *testing.T) {
	recs, r := record(t, Config{}, 0, simulated(t), build(t, "build/test/graph"))
	p := printed(t, r)

	graphs := of[*trace.Graph](recs)
	if len(graphs) != 1 {
		t.Fatalf("%d graphs", len(graphs))
	}
	g := graphs[0]
	if g.Label != "decode:4" || g.Batch != 4 || g.Handle != p["graph"] || g.Nodes != 4 || g.Edges != 4 {
		t.Errorf("graph %+v, printed %v", g, p)
	}
	kernels, memsets, memcpys := of[*trace.Kernel](recs), of[*trace.Memset](recs), of[*trace.Memcpy](recs)
	if len(kernels) != 2 || len(memsets) != 1 || len(memcpys) != 1 || len(of[*trace.Opaque](recs)) != 0 {
		t.Fatalf("%d kernels, %d memsets, %d memcpys", len(kernels), len(memsets), len(memcpys))
	}
	functions := map[uint32]*trace.Function{}
	for _, f := range of[*trace.Function](recs) {
		functions[f.ID] = f
	}
	byName := map[string]*trace.Kernel{}
	for _, k := range kernels {
		byName[functions[k.Function].Name] = k
	}
	first, last := byName["add_one"], byName["add"]
	if first == nil || last == nil {
		t.Fatalf("kernels %v", byName)
	}
	if want := params(p["a"], uint32(64)); !bytes.Equal(first.Params, want) {
		t.Errorf("add_one's parameters %x, want %x", first.Params, want)
	}
	if want := params(p["b"], uint32(64), p["c"]+256); !bytes.Equal(last.Params, want) {
		t.Errorf("add's parameters %x, want %x", last.Params, want)
	}
	if !slices.Equal(last.Grid, []uint32{2, 1, 1}) || !slices.Equal(last.Block, []uint32{32, 1, 1}) || last.Shared != 0 {
		t.Errorf("add's launch %v %v %d", last.Grid, last.Block, last.Shared)
	}
	if want := []trace.FunctionParam{{Offset: 0, Size: 8}, {Offset: 8, Size: 4}, {Offset: 16, Size: 8}}; !slices.Equal(functions[last.Function].Params, want) {
		t.Errorf("add's layout %v, want %v", functions[last.Function].Params, want)
	}
	if m := memsets[0]; m.Dst != p["b"] || m.Value != 10 || m.ElemSize != 4 || m.Width != 64 || m.Height != 1 {
		t.Errorf("memset %+v", m)
	}
	if m := memcpys[0]; m.Src != p["a"] || m.Dst != p["c"]+256 || m.Width != 256 || m.Height != 1 || m.Depth != 1 || m.SrcType != 2 || m.DstType != 2 {
		t.Errorf("memcpy %+v", m)
	}
	var edges []string
	name := map[uint64]string{first.Node: "add_one", last.Node: "add", memsets[0].Node: "memset", memcpys[0].Node: "memcpy"}
	for _, e := range of[*trace.Edge](recs) {
		edges = append(edges, fmt.Sprintf("%s>%s %d %d %d", name[e.From], name[e.To], e.FromPort, e.ToPort, e.Type))
	}
	slices.Sort(edges)
	if want := []string{"add_one>memcpy 0 0 0", "add_one>memset 0 0 0", "memcpy>add 0 0 0", "memset>add 0 0 0"}; !slices.Equal(edges, want) {
		t.Errorf("edges %v, want %v", edges, want)
	}
	execs := of[*trace.Exec](recs)
	if len(execs) != 1 || execs[0].Graph != g.ID || execs[0].Handle != p["exec"] || execs[0].Flags != 8 {
		t.Errorf("execs %+v", execs)
	}

	modules, images, names := of[*trace.Module](recs), of[*trace.Image](recs), of[*trace.Names](recs)
	if len(modules) != 1 || len(images) != 0 || len(names) != 1 {
		t.Fatalf("%d modules, %d images, %d names", len(modules), len(images), len(names))
	}
	m := modules[0]
	if m.Kind != trace.ModuleModule || len(m.SHA256) != 0 || !strings.HasSuffix(m.DSO, "/build/test/graph") || len(m.BuildID) != 40 || m.DSOOffset == 0 {
		t.Errorf("the image is part of the program; recorded %+v", m)
	}
	if image := readFile(t, m.DSO)[m.DSOOffset:][:m.ImageSize]; !strings.HasPrefix(image, ".version 7.0\n") || !strings.HasSuffix(image, "}\n") {
		t.Error("the file does not have the image at its offset")
	}
	if want := []string{"add", "add_one"}; !slices.Equal(names[0].Names, want) || names[0].Module != m.ID {
		t.Errorf("names %+v, want %v", names[0], want)
	}
	devices := of[*trace.Device](recs)
	if len(devices) != 1 || devices[0].Name != "Simulated GPU" || devices[0].CCMajor != 9 || devices[0].TotalMem != 1<<30 {
		t.Errorf("devices %+v", devices)
	}
	if p["count"] != 1 || p["instantiated"] != p["exec"] || p["after-destroy"] != 0 || !strings.Contains(r.stdout, "label decode:4\n") {
		t.Errorf("graph map: %s", r.stdout)
	}
}

// The paper's Figure 6: the records show which node was captured before the address changed its owner.
func TestFreeInsideCaptureRecordsTheMoment(t *testing.T) {
	recs, r := record(t, Config{}, 0, simulated(t), build(t, "build/test/figure6"))
	p := printed(t, r)
	var story []string
	kernels := of[*trace.Kernel](recs)
	if len(kernels) != 2 {
		t.Fatalf("%d kernels", len(kernels))
	}
	for _, rec := range recs {
		switch rec := rec.(type) {
		case *trace.Alloc:
			story = append(story, fmt.Sprintf("alloc %d", rec.ID))
		case *trace.Free:
			story = append(story, fmt.Sprintf("free %d", rec.ID))
		case *trace.Moment:
			if rec.Graph != p["graph"] {
				t.Errorf("moment of graph %d, want %d", rec.Graph, p["graph"])
			}
			s := "moment"
			for _, n := range rec.Nodes {
				s += fmt.Sprintf(" %d", slices.IndexFunc(kernels, func(k *trace.Kernel) bool { return k.Node == n }))
			}
			story = append(story, s)
		case *trace.Graph:
			story = append(story, "graph")
		}
	}
	want := []string{"moment", "alloc 0", "moment 0", "free 0", "moment 0", "alloc 1", "graph"}
	if !slices.Equal(story, want) {
		t.Errorf("story %q, want %q", story, want)
	}
	if !bytes.Equal(kernels[0].Params, params(p["first"], uint32(1))) || !bytes.Equal(kernels[1].Params, params(p["second"], uint32(2))) {
		t.Errorf("parameters %x %x", kernels[0].Params, kernels[1].Params)
	}
}

// A module that was loaded on a path without a hook is recorded as hidden, by the names of its functions. Functions of a library
// lead to the library, as kernel and as function, even if no hook saw how the function was made from the kernel.
func TestHiddenModuleAndLibrary(t *testing.T) {
	for _, says := range []string{"launched", "function", "both"} {
		for _, args := range [][]string{nil, {"unseen"}} {
			t.Run(fmt.Sprint(says, args), func(t *testing.T) { hiddenModuleAndLibrary(t, says, args...) })
		}
	}
}

// says selects how nodes report their kernels: a driver may name the launched kernel, the context's function, or both.
func hiddenModuleAndLibrary(t *testing.T, says string, args ...string) {
	t.Helper()
	recs, r := record(t, Config{ExtraEnv: []string{"SIMGPU_NODE_KERNELS=" + says}}, 0, simulated(t), append([]string{build(t, "build/test/hidden")}, args...)...)
	p := printed(t, r)
	kind := map[uint32]trace.ModuleKind{}
	names := map[uint32][]string{}
	for _, m := range of[*trace.Module](recs) {
		kind[m.ID] = m.Kind
		if m.Kind == trace.ModuleHidden && (m.Handle != p["module"] || len(m.SHA256) != 0) {
			t.Errorf("hidden module %+v, want handle %d", m, p["module"])
		}
	}
	for _, n := range of[*trace.Names](recs) {
		names[n.Module] = n.Names
	}
	functions := map[uint32]*trace.Function{}
	for _, f := range of[*trace.Function](recs) {
		functions[f.ID] = f
	}
	var got []string
	for _, k := range of[*trace.Kernel](recs) {
		f := functions[k.Function]
		got = append(got, fmt.Sprintf("%s %s %v %d", f.Name, kind[f.Module], names[f.Module], len(k.Params)))
	}
	want := []string{"add_one hidden [add add_one] 12", "add_one library [add add_one] 12", "add_one library [add add_one] 12"}
	if !slices.Equal(got, want) {
		t.Errorf("kernels %q, want %q", got, want)
	}
	if len(kind) != 2 || len(names) != 2 {
		t.Errorf("%d modules and %d name lists, want 2 each", len(kind), len(names))
	}
}

// Nodes other than plain launches, and graphs that changed after their capture.
func TestUnusualNodesAndChangedGraphs(t *testing.T) {
	recs, r := record(t, Config{}, 0, simulated(t), build(t, "build/test/nodes"))
	p := printed(t, r)
	graphs, kernels, execs := of[*trace.Graph](recs), of[*trace.Kernel](recs), of[*trace.Exec](recs)
	if len(graphs) != 3 || len(kernels) != 5 || len(execs) != 2 {
		t.Fatalf("%d graphs, %d kernels, %d execs; want the captured, the changed and the built graph", len(graphs), len(kernels), len(execs))
	}
	for i, want := range []struct {
		graph, grid uint32
		params      []byte
	}{{0, 1, params(p["p"], uint32(3))}, {0, 1, params(p["p"], uint32(7))}, {1, 2, nil}, {1, 2, nil}, {2, 1, params(p["p"], uint32(7))}} {
		k := kernels[i]
		if k.Graph != graphs[want.graph].ID || k.Grid[0] != want.grid || want.params != nil && !bytes.Equal(k.Params, want.params) {
			t.Errorf("kernel %d: %+v, want %+v", i, k, want)
		}
	}
	if a := kernels[0].Attrs; len(a) != 0 {
		t.Errorf("a plain launch has attributes %+v", a)
	}
	if a := kernels[1].Attrs; len(a) != 1 || a[0].ID != 8 || len(a[0].Value) != 64 || !bytes.HasPrefix(a[0].Value, []byte{0xfd, 0xff, 0xff, 0xff, 0}) {
		t.Errorf("attributes %+v, want the priority -3 alone", a)
	}
	if o := of[*trace.Opaque](recs); len(o) != 2 || o[0].Type != 3 || o[0].Reason == "" {
		t.Errorf("opaque nodes %+v, want the host node of both walks", o)
	}
	if e := of[*trace.Edge](recs); len(e) != 5 || e[0].From != kernels[0].Node || e[0].To != kernels[1].Node || e[0].FromPort != 1 || e[0].Type != 1 || e[1].Type != 0 {
		t.Errorf("edges %+v, want the first programmatic", e)
	}
	if execs[0].Graph != graphs[1].ID || execs[1].Graph != graphs[2].ID || graphs[2].Handle != p["built"] || len(of[*trace.Empty](recs)) != 1 {
		t.Errorf("execs %+v of graphs %+v", execs, graphs)
	}
	if g := of[*trace.Global](recs); len(g) != 1 || g[0].Name != "counter" || g[0].Addr != p["counter"] || g[0].Size != 64 || g[0].Module != 1 {
		t.Errorf("globals %+v", g)
	}
}

// An executable graph that changes no longer matches its record. The trace has a fault then.
func TestChangedExecutableGraphIsAFault(t *testing.T) {
	recs, _ := recordWithFaults(t, Config{}, 0, simulated(t), build(t, "build/test/nodes"), "change")
	if f := of[*trace.Fault](recs); len(f) != 1 || f[0].Call != "cuGraphExecKernelNodeSetParams_v2" {
		t.Errorf("faults %+v", f)
	}
}
