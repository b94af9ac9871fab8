package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"medusa/artifacts"
	"medusa/graphir"
)

var update = flag.Bool("update", false, "accept the tables as they are")

// loadSpec returns a spec that uses every field of the graph IR.
func loadSpec(t *testing.T) *graphir.Spec {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "graphir", "testdata", "v2.graph"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := graphir.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func artifact(t *testing.T) *artifacts.Artifact {
	spec := loadSpec(t)
	spec.Notes = []graphir.Note{{Name: "pieces", Value: make([]byte, 3000)}} // newer than the file
	return &artifacts.Artifact{
		Identity:    artifacts.Identity{{Key: "gpu.name", Value: "GPU"}, {Key: "driver.version", Value: "12080"}, {Key: "host.kernel", Value: "6.1"}},
		Spec:        spec,
		Stages:      []artifacts.StageTimes{{Mode: "native", Device: "GPU", Date: "2026-01-02", Stages: []artifacts.Stage{{Name: "weights", Seconds: 1.5}}}},
		Directories: []artifacts.Directory{{Name: "triton", Path: "/cache", Size: 10, Files: 2, PackedSize: 5}},
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestTables(t *testing.T) {
	s := loadSpec(t)
	later, err := FindGraph(s, "later")
	if err != nil {
		t.Fatal(err)
	}
	second, err := FindGraph(s, "1")
	if err != nil {
		t.Fatal(err)
	}
	sections := []artifacts.Section{{Kind: "graph", Offset: 100, StoredSize: 50, Size: 80}, {Kind: "blob", Offset: 150, StoredSize: 7, Size: 9},
		{Kind: "blob", Offset: 157, StoredSize: 3, Size: 3}}
	elastic := artifact(t)
	elastic.KV.KVBytes, elastic.KV.Least, elastic.KV.Block = 10<<30, 1<<29, 100<<20
	for name, v := range map[string]interface{ WriteTable(io.Writer) error }{
		"summary": must(Summarize("x.medusa", artifact(t))), "elastic": must(Summarize("x.medusa", elastic)), "later": later, "second": second, "kernels": must(ListKernels(s)),
		"allocs": must(ListAllocations(s)), "sizes": must(Measure(sections, s)),
	} {
		var table, object bytes.Buffer
		if err := v.WriteTable(&table); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", table.Bytes())
		e := json.NewEncoder(&object)
		e.SetIndent("", " ")
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".json", object.Bytes())
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s changed (-want +got, -update accepts):\n%s", name, diff)
	}
}

// A name that is both a label and an index finds the label.
func TestFindGraphPrefersLabels(t *testing.T) {
	s := &graphir.Spec{Graphs: []graphir.Graph{{Label: "a"}, {Label: "0"}}}
	for name, want := range map[string]int{"0": 1, "1": 1, "a": 0} {
		g, err := FindGraph(s, name)
		if err != nil || g.Index != want {
			t.Errorf("graph %q is %v (%v), want number %d", name, g, err, want)
		}
	}
	for _, name := range []string{"2", "-1", "b", ""} {
		var missing *NotFoundError
		if _, err := FindGraph(s, name); !errors.As(err, &missing) || !strings.Contains(err.Error(), "a, 0") {
			t.Errorf("graph %q: %v", name, err)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 1 << 20: "1.00 MiB", 999 << 20: "999 MiB",
		1000 << 20: "0.98 GiB", 15 << 30: "15.0 GiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

// Compare finds every kind of difference by itself, and the table names its place.
func TestCompareFindsEveryDifference(t *testing.T) {
	if d := must(Compare(artifact(t), artifact(t))); !d.Empty() {
		t.Errorf("equal artifacts differ: %+v", d)
	}
	for _, row := range []struct {
		name   string
		change func(*artifacts.Artifact)
		want   string // in the table
	}{
		{"factor", func(a *artifacts.Artifact) { a.Identity[1].Value = "13000" }, "driver.version (relaxable)  12080"},
		{"long factor", func(a *artifacts.Artifact) { a.Identity[1].Value = strings.Repeat("x", widest+1) }, " A 12080"},
		{"missing factor", func(a *artifacts.Artifact) { a.Identity = a.Identity[1:] }, "gpu.name (fatal)  GPU"},
		{"KV cache", func(a *artifacts.Artifact) { a.KV.KVBytes = 7 }, "KV cache bytes  0"},
		{"elastic KV cache", func(a *artifacts.Artifact) { a.KV.Least = 7 }, "KV cache's least bytes  0"},
		{"layer", func(a *artifacts.Artifact) { a.Directories = nil }, "directory triton  10 bytes"},
		{"allocation", func(a *artifacts.Artifact) { a.Spec.Allocations[1].Size++ }, "alloc#1  engine pinned of 4096 bytes, freed  engine pinned of 4097 bytes"},
		{"more allocations", func(a *artifacts.Artifact) {
			a.Spec.Allocations = append(a.Spec.Allocations, graphir.Allocation{Kind: 1, Owner: 1})
		}, "alloc#4  absent"},
		{"free", func(a *artifacts.Artifact) { a.Spec.Sequence[2].Alloc = 0 }, "allocation sequence"},
		{"kernel", func(a *artifacts.Artifact) { a.Spec.Kernels[1].Name = "gemm_64x64" }, "kernel gemm_8x8  present"},
		{"kernel's module", func(a *artifacts.Artifact) { a.Spec.Modules[0].ImageSHA256[0]++ }, " A library module sha256:ab"},
		{"graph", func(a *artifacts.Artifact) { a.Spec.Graphs = a.Spec.Graphs[1:] }, "graph decode 2  present"},
		{"grid", func(a *artifacts.Artifact) { a.Spec.Graphs[0].Nodes[0].Kernel().Grid[0] = 99 }, "graph decode 2: node 0 grid  2×2"},
		{"constant", func(a *artifacts.Artifact) { a.Spec.Graphs[0].Nodes[0].Kernel().Params[8]++ }, "graph decode 2: node 0 parameter 1  0x00000002 at 8"},
		{"pointer", func(a *artifacts.Artifact) { a.Spec.Graphs[1].Nodes[0].Kernel().Relocations[0].Pointer.Offset++ }, "graph decode 1: node 0 parameter 0  alloc#2+4096 at 0"},
		{"edge", func(a *artifacts.Artifact) { a.Spec.Graphs[0].Edges[0].To = 4 }, "graph decode 2: edges  0>1"},
		{"copy", func(a *artifacts.Artifact) { a.Spec.Graphs[0].Nodes[3].Memcpy().Width++ }, "graph decode 2: node 3 detail"},
		{"child", func(a *artifacts.Artifact) { a.Spec.Children[1].Nodes[0].Type = graphir.NodeEmpty }, "graph later: embedded graph 0"},
		{"content", func(a *artifacts.Artifact) { a.Spec.Contents[0].Data[0]++ }, "saved buffer alloc#3+0  sha256:"},
		{"trigger", func(a *artifacts.Artifact) { a.Spec.Triggers[0].Batch++ }, "triggers"},
		{"tensor map", func(a *artifacts.Artifact) { a.Spec.TensorMaps[0].BoxDim[0]++ }, "tensor maps  1, sha256:"},
		{"module", func(a *artifacts.Artifact) { a.Spec.Modules[1].Functions[0] = "gemm_1x1" }, "modules  2, sha256:"},
	} {
		b := artifact(t)
		row.change(b)
		d := must(Compare(artifact(t), b))
		var table bytes.Buffer
		if err := d.WriteTable(&table, "a", "b"); err != nil {
			t.Fatal(err)
		}
		if d.Empty() || !slices.ContainsFunc(strings.Split(table.String(), "\n"), func(line string) bool {
			return strings.Contains(collapse(line), collapse(row.want))
		}) {
			t.Errorf("%s: no line with %q in\n%s", row.name, row.want, table.String())
		}
	}
}

func collapse(s string) string { return strings.Join(strings.Fields(s), " ") }
