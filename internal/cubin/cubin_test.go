package cubin

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

func concat(parts ...[]byte) []byte { return slices.Concat(parts...) }

func sample() sampleCubin {
	return sampleCubin{abi: 7, kernel: "_Z3addPfi", device: "helper",
		// In reverse order, as ptxas writes them.
		info: concat(paramV1(2, 16, 4), paramV1(1, 8, 8), paramV1(0, 0, 8), half(infoParamBytes, 20), sized(0x1c, make([]byte, 4))),
		variables: []sampleVariable{{"counter", ".nv.global", 4}, {"table", ".nv.constant3", 64}, {"_ZN4cuda3std6ranges5beginE", ".nv.global.init", 1},
			{"local", ".nv.shared.x", 128}}}
}

var sampleObject = Object{Kind: Cubin, Arch: 90,
	Kernels: []Kernel{{"_Z3addPfi", []Param{{0, 8}, {8, 8}, {16, 4}}}},
	Globals: []Global{{"_ZN4cuda3std6ranges5beginE", 1, false}, {"counter", 4, false}, {"table", 64, true}}}

func parseOne(t *testing.T, image []byte) Object {
	t.Helper()
	objects, err := Parse(image)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 1 {
		t.Fatalf("%d objects", len(objects))
	}
	return objects[0]
}

func TestCubin(t *testing.T) {
	got := parseOne(t, sample().bytes())
	if d := cmp.Diff(sampleObject, got); d != "" {
		t.Error(d)
	}
	if state := got.State(); len(state) != 1 || state[0].Name != "counter" {
		t.Error("the counter alone is state")
	}
	newer := sample()
	newer.abi = 8
	newer.info = concat(paramV2(1, 8, 4000), paramV2(0, 0, 8), half(infoParamBytes, 4008))
	newer.variables = newer.variables[1:]
	got = parseOne(t, newer.bytes())
	if got.Arch != 100 || !slices.Equal(got.Kernels[0].Params, []Param{{0, 8}, {8, 4000}}) || len(got.State()) != 0 {
		t.Errorf("ABI version 8: %+v", got)
	}
	none := sample()
	none.info = half(infoParamBytes, 0)
	if got := parseOne(t, none.bytes()); len(got.Kernels) != 1 || len(got.Kernels[0].Params) != 0 {
		t.Errorf("a kernel without parameters: %+v", got.Kernels)
	}
}

func TestCubinErrors(t *testing.T) {
	whole := sample().bytes()
	tests := map[string]func() []byte{
		"machine 62":              func() []byte { b := bytes.Clone(whole); b[18] = 62; return b },
		"little-endian":           func() []byte { b := bytes.Clone(whole); b[5] = 2; return b },
		"section headers":         func() []byte { b := bytes.Clone(whole); b[58] = 1; return b },
		"holds the names":         func() []byte { b := bytes.Clone(whole); b[62] = 200; return b },
		"bytes, of which":         func() []byte { return whole[:len(whole)-1] },
		"not a 64-bit":            func() []byte { return whole[:20] },
		"an attribute of":         func() []byte { c := sample(); c.info = c.info[:len(c.info)-1]; return c.bytes() },
		"a parameter of 4 bytes":  func() []byte { c := sample(); c.info = sized(infoParam, make([]byte, 4)); return c.bytes() },
		"parameter 1 is number 2": func() []byte { c := sample(); c.info = concat(paramV1(2, 8, 8), paramV1(0, 0, 8)); return c.bytes() },
		"an entry of 2 bytes":     func() []byte { c := sample(); c.info = append(c.info, 1, 2); return c.bytes() },
		"neither a fat binary":    func() []byte { return []byte("garbage") },
		"no .version":             func() []byte { return container(sampleEntry{kind: PTX, payload: []byte(".target sm_80")}) },
		"a name outside":          func() []byte { c := sample(); c.variables[0].name = ""; b := c.bytes(); return breakName(b) },
	}
	for want, image := range tests {
		_, err := Parse(image())
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// breakName makes the name of the first variable point outside of the string table.
func breakName(image []byte) []byte {
	sections, err := readSections(image)
	if err != nil {
		return nil
	}
	le.PutUint32(image[sections[3].offset+symbolSize:], 1<<30)
	return image
}

func TestFatbin(t *testing.T) {
	plain := sample().bytes()
	text := []byte(".version 8.0\n.target sm_80\n.visible .entry k(.param .u64 p)\n{ ret; }\n" + strings.Repeat("/", 2) + strings.Repeat(" ", 300) + "\n\x00")
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	image := concat(
		container(
			sampleEntry{kind: Cubin, arch: 90, name: "first.cu", payload: plain},
			sampleEntry{kind: Cubin, arch: 90, flags: flagLZ4, payload: lz4Pack(plain), unpacked: uint64(len(plain))},
			sampleEntry{kind: 16, arch: 90, payload: []byte("link-time code")}),
		container(
			sampleEntry{kind: Cubin, arch: 90, flags: flagZstd, payload: enc.EncodeAll(plain, nil), unpacked: uint64(len(plain))},
			sampleEntry{kind: PTX, arch: 80, flags: flagLZ4, payload: lz4Pack(text), unpacked: uint64(len(text))}),
		[]byte("what lies behind"))
	objects, err := Parse(image)
	if err != nil {
		t.Fatal(err)
	}
	named := sampleObject
	named.Name = "first.cu"
	want := []Object{named, sampleObject, sampleObject, {Kind: PTX, Arch: 80, Kernels: []Kernel{{"k", []Param{{0, 8}}}}}}
	if d := cmp.Diff(want, objects); d != "" {
		t.Error(d)
	}
}

func TestFatbinErrors(t *testing.T) {
	plain := sample().bytes()
	packed := lz4Pack(plain)
	entry := sampleEntry{kind: Cubin, flags: flagLZ4, payload: packed, unpacked: uint64(len(plain))}
	change := func(f func(e *sampleEntry)) []byte { e := entry; f(&e); return container(e) }
	patch := func(at int, value byte) []byte { b := container(entry); b[at] = value; return b }
	tests := []struct {
		name  string
		image []byte
		want  string
	}{
		{"container version", patch(4, 2), "container version 2"},
		{"container size", patch(14, 1), "bytes, of which"},
		{"cut container", container(entry)[:100], "bytes, of which"},
		{"header size", patch(containerHeader+4, 8), "an entry of 8"},
		{"payload size", patch(containerHeader+14, 1), "an entry of"},
		{"compressed size", patch(containerHeader+0x13, 1), "compressed bytes"},
		{"unpacked too little", change(func(e *sampleEntry) { e.unpacked++ }), "not"},
		{"unpacked too much", change(func(e *sampleEntry) { e.unpacked -= 8 }), "damaged LZ4"},
		{"a bomb", change(func(e *sampleEntry) { e.unpacked = 1 << 40 }), "at most"},
		{"zstd garbage", change(func(e *sampleEntry) { e.flags = flagZstd }), "magic"},
		{"short entry", concat(container()[:8], le.AppendUint64(nil, 12), make([]byte, 12)), "an entry header of 12"},
	}
	for _, tt := range tests {
		_, err := Parse(tt.image)
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: want %q, got %v", tt.name, tt.want, err)
		}
	}
}

func TestLZ4(t *testing.T) {
	long := append(bytes.Repeat([]byte{7}, 1000), []byte("0123456789 abcdefghij")...)
	for _, want := range [][]byte{nil, []byte("x"), []byte("fifteen letters"), long, bytes.Repeat([]byte{1, 2}, 400)} {
		got, err := lz4Block(lz4Pack(want), uint64(len(want)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes came back as %d: %v", len(want), len(got), err)
		}
	}
	for name, block := range map[string][]byte{
		"nothing":                {},
		"literals missing":       {0x40, 1, 2},
		"distance missing":       {0x10, 1, 1},
		"distance 0":             {0x10, 1, 0, 0, 0},
		"distance before start":  {0x10, 1, 2, 0, 0},
		"length without an end":  {0xf0, 255, 255},
		"no literals at the end": {0x10, 1, 1, 0},
	} {
		if out, err := lz4Block(block, 100); err == nil {
			t.Errorf("%s: %v", name, out)
		}
	}
}

// State returns the variables in which kernels can leave data for another kernel. String literals
// do not count.
func TestState(t *testing.T) {
	for name, want := range map[string]bool{
		"counter": true, "assertFunc_0": false, "assertFile_12": false, "assertMessage_1": false, "assertMessage_": true, "assertMessage": true,
		"assertMessage_1a": true, "assertions_1": true, "_$_str": false, "_$_str_$_1": false, "_$_str_$_": true, "_$_strange": true, "_ZN4cuda3std6ranges5beginE": true,
	} {
		o := Object{Globals: []Global{{Name: name, Size: 8}}}
		if got := len(o.State()) > 0; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		o.Globals[0].Constant = true
		if len(o.State()) > 0 {
			t.Errorf("%s is constant, and state", name)
		}
	}
}
