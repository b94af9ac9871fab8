package e2e

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/test/testenv"
)

// truth is the simulated GPU's own account of a process (simgpu/README.md): every captured node with its raw
// parameters, and the allocations that were live when it was captured.
type truth struct {
	graphs map[int][]truthNode // by number of the capture
}

type truthNode struct {
	kind, name string
	module     string // hash of the kernel's code
	event      uint64 // in order of creation
	ends       []end  // of a copy: the target's, the source's
	extent     [3]uint64
	plain      [][3]uint64       // of memory operations: type, value, flags
	words      map[uint32]uint64 // aligned 8-byte words by offset; of memset and memcpy: the addresses, from 0
	raw        map[uint32][]byte // parameters by offset
	live       []truthAllocation // shared between nodes
}

// end is how one side of a copy is walked.
type end struct{ x, y, z, pitch, height uint64 }

type truthAllocation struct {
	index      uint32
	base, size uint64
}

func (n *truthNode) at(addr uint64) (graphir.Pointer, bool) {
	for _, a := range n.live {
		if addr >= a.base && addr < a.base+a.size {
			return graphir.Pointer{Index: a.index, Offset: addr - a.base}, true
		}
	}
	return graphir.Pointer{}, false
}

// code holds the modules of a Spec against the code that the device ran.
type code struct {
	files  map[[32]byte]string // by SHA-256 of an image: the device's name for its text
	ran    map[uint32]string   // by module of the Spec
	module map[string]uint32   // and back
	known  int
}

// newCode knows the images that the test engines are built with.
func newCode(t *testing.T) *code {
	c := &code{map[[32]byte]string{}, map[uint32]string{}, map[string]uint32{}, 0}
	for _, pattern := range [][]string{{"test", "zoo", "*.ptx"}, {"runners", "reference", "kernels", "*.ptx"}} {
		names, _ := filepath.Glob(testenv.Path(t, pattern...))
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			h := fnv.New64a()
			h.Write(text)
			ran := fmt.Sprintf("%016x", h.Sum64())
			c.files[sha256.Sum256(text)], c.files[sha256.Sum256(append(text, 0))] = ran, ran
		}
	}
	return c
}

// check demands one code for each module, one module for each code, and the right file's, as far as the module has an image.
func (c *code) check(t *testing.T, spec *graphir.Spec, k *graphir.KernelNode, n *truthNode) {
	t.Helper()
	m := spec.Kernels[k.Kernel].Module
	if want, ok := c.files[spec.Modules[m].ImageSHA256]; ok {
		c.known++
		if n.module != want {
			t.Errorf("kernel %s: code %s ran, module %d is %s", n.name, n.module, m, want)
		}
	}
	ran, known := c.ran[m]
	module, back := c.module[n.module]
	if known && ran != n.module || back && module != m {
		t.Errorf("kernel %s of module %d: code %s ran, before %s, which is of module %d", n.name, m, n.module, ran, module)
	}
	c.ran[m], c.module[n.module] = n.module, m
}

func readTruth(t *testing.T, path string) *truth {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatalf("truth: %v", err)
		}
		return n
	}
	out := &truth{graphs: map[int][]truthNode{}}
	var live []truthAllocation
	events := map[string]uint64{}
	walk := func(s string) end {
		f := strings.Split(s, ",")
		return end{number(f[0]), number(f[1]), number(f[2]), number(f[3]), number(f[4])}
	}
	add := func(fields []string, n truthNode) {
		g := int(number(fields[2]))
		if int(number(fields[3])) != len(out.graphs[g]) {
			t.Fatalf("truth: node %s of capture %d after %d others", fields[3], g, len(out.graphs[g]))
		}
		n.live = live
		out.graphs[g] = append(out.graphs[g], n)
	}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		fields := strings.Split(s.Text(), "\t")
		switch fields[0] {
		case "alloc":
			live = append(slices.Clip(live), truthAllocation{uint32(number(fields[2])), number(fields[4]), number(fields[5])})
		case "free":
			index := uint32(number(fields[2]))
			live = slices.DeleteFunc(slices.Clone(live), func(a truthAllocation) bool { return a.index == index })
		case "kernel":
			n := truthNode{kind: "kernel", name: fields[4], module: fields[5], words: map[uint32]uint64{}, raw: map[uint32][]byte{}}
			for _, p := range strings.Split(fields[9], ",") {
				at, text, _ := strings.Cut(p, ":")
				data, err := hex.DecodeString(text)
				if err != nil {
					t.Fatalf("truth: %v", err)
				}
				off := uint32(number(at))
				n.raw[off] = data
				for o := uint32(0); o+8 <= uint32(len(data)); o += 8 {
					n.words[off+o] = binary.LittleEndian.Uint64(data[o:])
				}
			}
			add(fields, n)
		case "memset":
			add(fields, truthNode{kind: "memset", words: map[uint32]uint64{0: number(fields[4])}})
		case "memops":
			n := truthNode{kind: "memops", words: map[uint32]uint64{}}
			for i, op := range fields[4:] {
				f := strings.Split(op, ",")
				n.words[uint32(i)] = number(f[1])
				n.plain = append(n.plain, [3]uint64{number(f[0]), number(f[2]), number(f[3])})
			}
			add(fields, n)
		case "memcpy":
			add(fields, truthNode{kind: "memcpy", words: map[uint32]uint64{0: number(fields[4]), 8: number(fields[6])},
				ends: []end{walk(fields[5]), walk(fields[7])}, extent: [3]uint64{number(fields[8]), number(fields[9]), number(fields[10])}})
		case "event":
			events[fields[3]] = number(fields[2])
		case "event-record", "event-wait":
			add(fields, truthNode{kind: fields[0], event: events[fields[4]]})
		}
	}
	return out
}

// Every relocation agrees with the device's own allocation table, and no word that the table calls an address was missed.
func TestRelocationsAgreeWithGroundTruth(t *testing.T) {
	for name, argv := range engines(t) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "truth")
			run := recordRun{variables: []string{"ZOO_EVENTS=1"}}
			a := record(t, recordRun{variables: append(run.variables, "SIMGPU_TRUTH="+path)}, argv...)
			spec, err := compiled(t, a, run, argv...)
			if err != nil {
				t.Fatal(err)
			}
			tr := readTruth(t, path)
			if len(tr.graphs) != len(spec.Graphs) {
				t.Fatalf("%d captures, %d graphs", len(tr.graphs), len(spec.Graphs))
			}
			relocations, code := 0, newCode(t)
			for gi := range spec.Graphs {
				g, nodes := &spec.Graphs[gi], tr.graphs[gi+1]
				if len(g.Nodes) != len(nodes) {
					t.Fatalf("graph %s: %d nodes, captured %d", g.Label, len(g.Nodes), len(nodes))
				}
				for i := range nodes {
					n, err := compareNode(spec, &g.Nodes[i], &nodes[i])
					if err != nil {
						t.Errorf("graph %s node %d: %v", g.Label, i, err)
					}
					relocations += n
					if k := g.Nodes[i].Kernel(); k != nil {
						code.check(t, spec, k, &nodes[i])
					}
				}
			}
			if code.known == 0 {
				t.Error("no kernel's code was compared with its file")
			}
			if relocations == 0 {
				t.Error("nothing compared")
			}
			t.Logf("%d graphs, %d addresses agree", len(spec.Graphs), relocations)
		})
	}
}

// A C program that does not use Medusa is recorded as exactly. It has no marks and no phases, and ends as usual.
func TestPlainProgramIsRecorded(t *testing.T) {
	program := plainProgram(t)
	path := filepath.Join(t.TempDir(), "truth")
	a := record(t, recordRun{variables: []string{"SIMGPU_TRUTH=" + path}}, program)
	spec, err := compiled(t, a, recordRun{}, program)
	if err != nil {
		t.Fatal(err)
	}
	nodes := readTruth(t, path).graphs[1]
	if len(spec.Graphs) != 1 || len(spec.Graphs[0].Nodes) != 2 || len(nodes) != 2 || len(spec.Graphs[0].Edges) != 1 {
		t.Fatalf("%d graphs, want one of two nodes and an edge", len(spec.Graphs))
	}
	for i := range nodes {
		n, err := compareNode(spec, &spec.Graphs[0].Nodes[i], &nodes[i])
		if err != nil || n != 1 {
			t.Errorf("node %d: %d addresses agree, %v", i, n, err)
		}
	}
}

func compareNode(spec *graphir.Spec, n *graphir.Node, want *truthNode) (compared int, err error) {
	got := map[uint32]graphir.Pointer{}
	switch {
	case n.Kernel() != nil:
		if name := spec.Kernels[n.Kernel().Kernel].Name; want.kind != "kernel" || name != want.name {
			return 0, fmt.Errorf("kernel %s, captured %s %s", name, want.kind, want.name)
		}
		for _, f := range n.Kernel().Relocations {
			got[f.Offset] = f.Pointer
		}
	case n.MemOps() != nil && want.kind == "memops":
		for i, op := range n.MemOps().Ops() {
			got[uint32(i)] = op.At
			if plain := [3]uint64{uint64(op.Operation), op.Value, uint64(op.Flags)}; i >= len(want.plain) || plain != want.plain[i] {
				return 0, fmt.Errorf("memory operation %d: %v, captured %v", i, plain, want.plain)
			}
		}
	case n.Memset() != nil && want.kind == "memset":
		got[0] = n.Memset().Dst
	case n.Memcpy() != nil && want.kind == "memcpy":
		got[0], got[8] = n.Memcpy().Dst.Pointer, n.Memcpy().Src.Pointer
		for i, e := range []graphir.MemcpyEnd{n.Memcpy().Dst, n.Memcpy().Src} {
			if walked := (end{e.X, e.Y, e.Z, e.Pitch, e.Height}); walked != want.ends[i] {
				return 0, fmt.Errorf("side %d of a copy: %+v, captured %+v", i, walked, want.ends[i])
			}
		}
		if extent := [3]uint64{n.Memcpy().Width, n.Memcpy().Height, n.Memcpy().Depth}; extent != want.extent {
			return 0, fmt.Errorf("extent %v, captured %v", extent, want.extent)
		}
	case n.Type == graphir.NodeEventRecord && want.kind == "event-record", n.Type == graphir.NodeEventWait && want.kind == "event-wait":
		if uint64(n.Target) != want.event {
			return 0, fmt.Errorf("event %d, captured %d", n.Target, want.event)
		}
	default:
		return 0, fmt.Errorf("node type %d, captured %s", n.Type, want.kind)
	}
	for off, word := range want.words {
		pointer, isAddress := want.at(word)
		if relocation, ok := got[off]; ok != isAddress || relocation != pointer {
			return compared, fmt.Errorf("word %#x at %d: relocation %v (%v), ground truth %v (%v)", word, off, relocation, ok, pointer, isAddress)
		}
		if isAddress {
			compared++
		}
	}
	if compared != len(got) {
		return compared, fmt.Errorf("%d relocations, %d addresses captured", len(got), compared)
	}
	for off, data := range want.raw {
		for o, b := range data {
			at := off + uint32(o)
			if _, isPointer := got[at&^7]; !isPointer && n.Kernel().Params[at] != b {
				return compared, fmt.Errorf("constant byte %d is %#x, captured %#x", at, n.Kernel().Params[at], b)
			}
		}
	}
	return compared, nil
}
