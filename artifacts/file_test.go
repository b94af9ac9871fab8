package artifacts

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"medusa/graphir"
	"medusa/internal/spill"
	"medusa/kvprofile"
)

// small is an artifact with one of everything.
func small() *Artifact {
	return &Artifact{
		Identity: Identity{{KeyGPUName, "Simulated GPU"}, {KeyModelConfig, "sha256:00ff"}, {KeyHostKernel, "6.1"}},
		KV: kvprofile.Profile{KVBytes: 1 << 20, TotalMemory: 8 << 30, FreeBefore: 7 << 30, FreeAfter: 6 << 30,
			PeakForward: 1 << 16, Utilization: 0.9, ProfileTokens: 2048},
		Spec: &graphir.Spec{
			Allocations: []graphir.Allocation{
				{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 4096, Live: true},
				{Kind: graphir.AllocDevice, Owner: graphir.OwnerGraph, Size: 512, Live: true},
			},
			Sequence: []graphir.Step{{Alloc: 0}, {Alloc: 1}},
			Modules:  []graphir.Module{{Kind: graphir.ModuleHidden, Functions: []string{"axpy"}}},
			Kernels:  []graphir.Kernel{{Name: "axpy", Params: []graphir.Param{{Offset: 0, Size: 8}, {Offset: 8, Size: 4}}}},
			Graphs: []graphir.Graph{{Label: "decode 1", Batch: 1, Nodes: []graphir.Node{{Type: graphir.NodeKernel,
				Params: &graphir.KernelNode{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: []byte{11: 7},
					Relocations: []graphir.Relocation{{Offset: 0, Pointer: graphir.Pointer{Index: 1, Offset: 16}}}}}}}},
			Contents: []graphir.Content{
				{Alloc: 1, Data: bytes.Repeat([]byte("magic"), 40)},
				{Alloc: 1, Offset: 256, Data: []byte{1, 2, 3, 4}},
			},
		},
		Stages: []StageTimes{{Mode: "native", Device: "simulated", Driver: "0", Date: "2026-01-02",
			Stages: []Stage{{"weights", 0.5}, {"capture", 1.25}}}},
		Verification: Verification{Device: "simulated", Driver: "0", Date: "2026-01-02", Tokens: 9, SelfTest: "sha256:11",
			Graphs: []GraphCheck{{"decode 1", 512, true, "sha256:22", ""}}},
		Created: time.Unix(1700000000, 0).UTC(),
		Directories: []Directory{{Name: "triton", Path: "/home/engine/.triton/cache", SHA256: sha256.Sum256([]byte(packed)), PackedSize: uint64(len(packed)),
			Size: 77, Files: 3, Content: strings.NewReader(packed)}},
	}
}

// encodeAll returns the bytes of an artifact file.
func encodeAll(a *Artifact) ([]byte, error) { return join(encode(a, &spill.File{})) }

func join(parts []io.Reader, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.MultiReader(parts...))
}

// withoutContent ignores the contents of bundled directories, which Write needs and Read leaves out.
var withoutContent = cmpopts.IgnoreFields(Directory{}, "Content")

// packed is the content of small's layer. Only package artifacts/bundled interprets it.
const packed = "a packed directory"

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.medusa")
	want := small()
	want.KV.Workspace, want.KV.Least, want.KV.Block, want.KV.Reserve = 1<<12, 1<<11, 1<<10, 1<<9 // the files in testdata are older than these fields
	if err := Write(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), withoutContent); diff != "" {
		t.Fatalf("artifact differs (-want +got):\n%s", diff)
	}
}

func TestEveryBitFlip(t *testing.T) {
	data, err := encodeAll(small())
	if err != nil {
		t.Fatal(err)
	}
	f, err := open("test.medusa", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	section := func(at int) string {
		name := "header"
		if at >= headerSize {
			name = "sections"
		}
		for _, s := range f.Sections() {
			if uint64(at) >= s.Offset {
				name = s.Kind
			}
		}
		return name
	}
	for at := range data {
		for bit := range 8 {
			data[at] ^= 1 << bit
			_, err := readBytes(data)
			var c *CorruptError
			if !isCorrupt(err) || !errors.As(err, &c) || c.Section != section(at) {
				t.Errorf("byte %d bit %d of the %s flipped: %v", at, bit, section(at), err)
			}
			data[at] ^= 1 << bit
		}
	}
	if _, err := readBytes(data); err != nil {
		t.Fatalf("unharmed: %v", err)
	}
}

func TestEveryTruncation(t *testing.T) {
	data, err := encodeAll(small())
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		_, err := readBytes(data[:n])
		want := "truncated"
		if n == 0 {
			want = "empty"
		}
		if !isCorrupt(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := readBytes(append(data[:len(data):len(data)], 0)); !isCorrupt(err) {
		t.Errorf("one byte more: %v", err)
	}
}

func readBytes(data []byte) (*Artifact, error) {
	f, err := open("test.medusa", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	return f.check()
}

// isCorrupt demands the typed error, with file and section in it.
func isCorrupt(err error) bool {
	var c *CorruptError
	return errors.Is(err, ErrCorrupt) && errors.As(err, &c) && c.File == "test.medusa" && c.Section != "" &&
		strings.Contains(err.Error(), c.Section)
}

func TestForeign(t *testing.T) {
	for _, text := range []string{"MEDUSAX", "\x7fELF", "{}", strings.Repeat("x", 1000)} {
		if _, err := readBytes([]byte(text)); !isCorrupt(err) || !strings.Contains(err.Error(), "not a Medusa artifact") {
			t.Errorf("%.10q: %v", text, err)
		}
	}
}

func TestNewerVersion(t *testing.T) {
	head := appendHeader(nil, Version+1, 0, nil)
	_, err := readBytes(head)
	if !errors.Is(err, ErrVersion) || errors.Is(err, ErrCorrupt) {
		t.Fatalf("version %d: %v", Version+1, err)
	}
	if want := fmt.Sprintf("version %d", Version+1); !strings.Contains(err.Error(), want) {
		t.Fatalf("%q does not say %q", err, want)
	}
}

func TestWriteLeavesNothingHalfMade(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.medusa")
	broken := small()
	broken.Spec.Graphs[0].Nodes[0].Kernel().Kernel = 9
	if err := Write(path, broken); err == nil {
		t.Fatal("an invalid spec was written")
	}
	// A directory at the target path makes the last step, the rename, fail.
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, small()); err == nil {
		t.Fatal("a directory was replaced")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("left behind: %v %v", entries, err)
	}
}

func TestWriteIsDeterministicAndReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.medusa")
	other := small()
	other.Identity[0].Value = "another"
	for _, a := range []*Artifact{small(), other, small()} {
		if err := Write(path, a); err != nil {
			t.Fatal(err)
		}
		want, err := encodeAll(a)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes instead of %d, %v", len(got), len(want), err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("permissions: %v %v", info, err)
	}
}

// Files of earlier versions must stay readable, so files in testdata are written once and never changed.
func TestGolden(t *testing.T) {
	for path, want := range map[string]*Artifact{"testdata/v1.medusa": small(), "testdata/v2.medusa": ranks(), "testdata/v3.medusa": ranks()} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && *update {
			if err := Write(path, want); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Read(path)
		if err != nil {
			t.Fatalf("%s no longer loads: %v", path, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), withoutContent); diff != "" {
			t.Errorf("%s loads as something else (-want +got):\n%s", path, diff)
		}
	}
}

var update = flag.Bool("update", false, "write missing files of testdata")

// reads tracks the highest byte that was requested of a file.
type reads struct {
	*bytes.Reader
	end int64
}

func (r *reads) ReadAt(p []byte, offset int64) (int, error) {
	r.end = max(r.end, offset+int64(len(p)))
	return r.Reader.ReadAt(p, offset)
}

func TestManifestAlone(t *testing.T) {
	data, err := encodeAll(small())
	if err != nil {
		t.Fatal(err)
	}
	r := &reads{Reader: bytes.NewReader(data)}
	f, err := open("test.medusa", r, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Manifest()
	if err != nil || m.Identity[0] != small().Identity[0] {
		t.Fatalf("%v %v", m, err)
	}
	if graph := int64(f.parts[0].graph.offset); r.end > graph {
		t.Errorf("read up to byte %d, the graph starts at %d", r.end, graph)
	}
}

func TestSections(t *testing.T) {
	data, err := encodeAll(small())
	if err != nil {
		t.Fatal(err)
	}
	f, err := open("test.medusa", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	end := uint64(headerSize + 6*entrySize)
	for _, s := range f.Sections() {
		kinds = append(kinds, s.Kind)
		if s.Offset != end {
			t.Errorf("%s starts at %d instead of %d", s.Kind, s.Offset, end)
		}
		end += s.StoredSize
	}
	if diff := cmp.Diff([]string{"manifest", "graph", "buffers", "blob", "blob", "layer"}, kinds); diff != "" || end != uint64(len(data)) {
		t.Errorf("kinds end at %d of %d:\n%s", end, len(data), diff)
	}
	if blob := f.Sections()[3]; blob.Size != 200 || blob.StoredSize >= 100 {
		t.Errorf("forty times the same five bytes take %d of %d", blob.StoredSize, blob.Size)
	}
}
