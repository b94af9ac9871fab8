package artifacts

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/kvprofile"
	"medusa/test/testmem"
)

// sections returns a file with the given contents and matching checksums. Tests damage the parts that checksums do not cover.
func sections(t testing.TB, change func(p *packer), contents ...[]byte) []byte {
	p := &packer{version: 1}
	for i, data := range contents {
		p.add(kind(i+1), data, sha256.Sum256(data))
	}
	if change != nil {
		change(p)
	}
	data, err := join(p.pack())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// parts returns the contents of the sections of small.
func parts(t testing.TB) (manifest, graph, buffers, blob []byte) {
	a := small()
	a.Spec.Contents, a.Directories = a.Spec.Contents[:1], nil
	data, err := encodeAll(a)
	if err != nil {
		t.Fatal(err)
	}
	f, err := open("test.medusa", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var out [4][]byte
	for i := range out {
		if out[i], err = f.read(&f.sections[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out[0], out[1], out[2], out[3]
}

func addLayer(p *packer, data []byte) {
	p.err = p.layer(&Directory{Name: "x", SHA256: sha256.Sum256(data), PackedSize: uint64(len(data)), Content: bytes.NewReader(data)})
}

func TestDamageBehindTheChecksums(t *testing.T) {
	manifest, graph, buffers, blob := parts(t)
	if _, err := readBytes(sections(t, nil, manifest, graph, buffers, blob)); err != nil {
		t.Fatalf("unharmed: %v", err)
	}
	for _, test := range []struct {
		want     string
		change   func(p *packer)
		contents [][]byte
	}{
		{"manifest, graph or buffers is missing", nil, [][]byte{manifest}},
		{"manifest, graph or buffers is missing", nil, [][]byte{manifest, graph}},
		{"manifest, graph or buffers is missing", nil, nil},
		{"there are two graph sections", func(p *packer) { p.add(kindGraph, graph, sha256.Sum256(graph)) }, [][]byte{manifest, graph, buffers}},
		{"occurs twice", func(p *packer) { p.add(kindBlob, blob, sha256.Sum256(blob)) }, [][]byte{manifest, graph, buffers, blob}},
		{"is missing", nil, [][]byte{manifest, graph, buffers}},
		{"buffers refer to 1 of 2 blobs", func(p *packer) { p.add(kindBlob, []byte("x"), [32]byte{1}) }, [][]byte{manifest, graph, buffers, blob}},
		{"content does not match its digest", func(p *packer) { p.entries[0].sha256[3]++ }, [][]byte{manifest, graph, buffers, blob}},
		{"content does not match its digest", func(p *packer) { p.entries[3].size-- }, [][]byte{manifest, graph, buffers, blob}},
		{"manifest has unknown compression 2", func(p *packer) { p.entries[0].compression = 2 }, [][]byte{manifest, graph, buffers, blob}},
		{"stored plainly as", func(p *packer) { p.entries[3].compression = stored }, [][]byte{manifest, graph, buffers, blob}},
		{"bytes are compressed", func(p *packer) { p.entries[3].size = math.MaxUint64 }, [][]byte{manifest, graph, buffers, blob}},
		{"bytes are compressed", func(p *packer) { p.entries[3].size = maxCompressed }, [][]byte{manifest, graph, buffers, blob}},
		{"manifest of 524289 bytes", nil, [][]byte{make([]byte, maxManifest+1), graph, blob}},
		{"KV profile or verification record is missing", nil, [][]byte{{}, graph, blob}},
		{"manifest at byte", nil, [][]byte{[]byte("\xff"), graph, blob}},
		{"graph at byte", nil, [][]byte{manifest, []byte("\xff"), blob}},
		{"buffers at byte", nil, [][]byte{manifest, graph, []byte("\xff"), blob}},
		{"the manifest names 0 of 1 bundled directories", func(p *packer) { addLayer(p, []byte("x")) }, [][]byte{manifest, graph, buffers, blob}},
		{"is compressed twice", func(p *packer) {
			addLayer(p, []byte("x"))
			p.entries[4].compression = zstded
		}, [][]byte{manifest, graph, buffers, blob}},
		{"section of kind 77 at byte", func(p *packer) {
			p.add(77, []byte("from the future"), [32]byte{})
			p.entries[4].crc++
		}, [][]byte{manifest, graph, buffers, blob}},
	} {
		if _, err := readBytes(sections(t, test.change, test.contents...)); !isCorrupt(err) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("want %q, got %v", test.want, err)
		}
	}
}

// Bytes in a gap or an overlap of sections could escape the checksums.
func TestSectionsFollowEachOther(t *testing.T) {
	manifest, graph, buffers, blob := parts(t)
	for _, section := range []int{0, 1, 2, 3} {
		for _, shift := range []uint64{1, math.MaxUint64, 1 << 63} {
			data := sections(t, nil, manifest, graph, buffers, blob)
			table := data[headerSize : headerSize+4*entrySize]
			e := parseEntry(table[section*entrySize:])
			e.offset += shift
			copy(table[section*entrySize:], e.append(nil))
			copy(data, appendHeader(nil, Version, 4, table))
			if _, err := readBytes(data); !isCorrupt(err) || !strings.Contains(err.Error(), "instead of") {
				t.Errorf("section %d shifted by %d: %v", section, shift, err)
			}
		}
	}
}

// A section kind of a newer medusa is skipped.
func TestUnknownSection(t *testing.T) {
	manifest, graph, buffers, blob := parts(t)
	data := sections(t, func(p *packer) {
		p.add(77, []byte("from the future"), [32]byte{})
		p.entries[4].compression = 5
	}, manifest, graph, buffers, blob)
	if _, err := readBytes(data); err != nil {
		t.Error(err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, spoil := range map[string]func(a *Artifact){
		"no graph spec":                     func(a *Artifact) { a.Spec = nil },
		"occurs twice":                      func(a *Artifact) { a.Identity = append(a.Identity, a.Identity[0]) },
		"utilization":                       func(a *Artifact) { a.KV.Utilization = 2 },
		"weights of entry 0 took NaN":       func(a *Artifact) { a.Stages[0].Stages[0].Seconds = math.NaN() },
		"is not UTF-8":                      func(a *Artifact) { a.Verification.Graphs[0].Label = "\xff" },
		"graphs[0].nodes[0].kernel: kernel": func(a *Artifact) { a.Spec.Graphs[0].Nodes[0].Kernel().Kernel = 5 },
		"manifest takes":                    func(a *Artifact) { a.Identity[0].Value = strings.Repeat("x", maxManifest) },
		"has no content":                    func(a *Artifact) { a.Directories[0].Content = nil },
		"has changed since it was packed":   func(a *Artifact) { a.Directories[0].SHA256[0]++ },
		"has changed since it was packed: ": func(a *Artifact) { a.Directories[0].PackedSize++ },
		"there are two named triton":        func(a *Artifact) { a.Directories = append(a.Directories, a.Directories[0]) },
		`name "../x"`:                       func(a *Artifact) { a.Directories[0].Name = "../x" },
		`path "cache"`:                      func(a *Artifact) { a.Directories[0].Path = "cache" },
		`path "/a/../b"`:                    func(a *Artifact) { a.Directories[0].Path = "/a/../b" },
	} {
		a := small()
		spoil(a)
		if _, err := encodeAll(a); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
}

// A file may decompress to a bounded number of bytes only, so contents beyond the bound are stored uncompressed.
func TestLargeContentsStayBounded(t *testing.T) {
	a := small()
	const size = maxCompressed - 100
	a.Spec.Allocations[1].Size = 1 << 30
	a.Spec.Contents = []graphir.Content{
		{Alloc: 1, Data: make([]byte, size)},
		{Alloc: 1, Offset: size, Data: bytes.Repeat([]byte{1}, 1000)},
	}
	data, err := encodeAll(a)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) < size {
		t.Errorf("%d bytes of zeros were compressed beyond the bound", size)
	}
	got, err := readBytes(data)
	if err != nil || !graphir.Equal(got.Spec, a.Spec) {
		t.Errorf("not the same after a round: %v", err)
	}
	if len(data) > size+1000 {
		t.Errorf("contents below the bound were not compressed: %d bytes", len(data))
	}
}

// FuzzRead: Read returns either a value or a typed error, never both. Mutated files rarely pass the checksums, so the fuzzer also
// mutates sections inside a file with matching checksums.
func FuzzRead(f *testing.F) {
	data, err := encodeAll(small())
	if err != nil {
		f.Fatal(err)
	}
	manifest, graph, buffers, blob := parts(f)
	f.Add(data, manifest, graph, buffers, blob)
	f.Fuzz(func(t *testing.T, file, manifest, graph, buffers, blob []byte) {
		p := &packer{version: 1}
		for i, data := range [][]byte{manifest, graph, buffers, blob} {
			p.add(kind(i+1), data, sha256.Sum256(data))
		}
		packed, err := join(p.pack())
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range [][]byte{file, packed} {
			var a *Artifact
			var err error
			testmem.Bounded(t, len(data), func() { a, err = readBytes(data) })
			if (a == nil) == (err == nil) {
				t.Fatalf("artifact %v with error %v", a, err)
			}
			if err != nil && !isCorrupt(err) && !errors.Is(err, ErrVersion) {
				t.Fatalf("untyped error %v", err)
			}
			if err == nil && len(a.Directories) == 0 {
				if _, err := encodeAll(a); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// A small file must not take much memory, in any of its sections.
func TestReadBoundsMemory(t *testing.T) {
	manifest, graph, buffers, blob := parts(t)
	zeros := make([]byte, maxCompressed-1<<20)
	// alloc_size, packed: each byte becomes eight, just within the limit of the graph section.
	numbers := binary.AppendUvarint([]byte{6<<3 | 2}, 4<<20)
	numbers = append(numbers, zeros[:4<<20]...)
	for name, contents := range map[string][][]byte{
		"blob":    {manifest, graph, buffers, zeros},
		"graph":   {manifest, zeros, buffers, blob},
		"numbers": {manifest, append(bytes.Clone(graph), numbers...), buffers, zeros[:len(zeros)-len(numbers)-len(graph)]},
		"buffers": {manifest, graph, bytes.Repeat([]byte{1<<3 | 2, 0}, len(zeros)/2), blob},
		"plain":   {manifest, graph, buffers, make([]byte, 4*maxCompressed)},
	} {
		data := sections(t, nil, contents...)
		if name != "plain" && len(data) > 1<<20 {
			t.Errorf("%s: the file has %d bytes", name, len(data))
		}
		testmem.Bounded(t, len(data), func() {
			if _, err := readBytes(data); !isCorrupt(err) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// Only File.Directory checks a bundled directory against its digest. Starting an engine does not read bundled directories.
func TestLayer(t *testing.T) {
	read := func(data []byte) (*File, Directory) {
		f, err := open("test.medusa", bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		m, err := f.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		return f, m.Directories[0]
	}
	data, err := encodeAll(small())
	if err != nil {
		t.Fatal(err)
	}
	f, l := read(data)
	r, err := f.Directory(l)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != packed {
		t.Errorf("%q %v", got, err)
	}
	// Other content with a matching checksum.
	n := len(f.sections)
	e := f.sections[n-1]
	data[e.offset]++
	e.crc = crc32.Checksum(data[e.offset:], castagnoli)
	table := data[headerSize : headerSize+n*entrySize]
	copy(table[(n-1)*entrySize:], e.append(nil))
	copy(data, appendHeader(nil, Version, n, table))
	f, l = read(data)
	if _, err := f.readAll(); err != nil {
		t.Errorf("graphs alone: %v", err)
	}
	if _, err := f.Directory(l); !isCorrupt(err) || !strings.Contains(err.Error(), "layer at byte") {
		t.Errorf("its layer: %v", err)
	}
	if _, err := readBytes(data); !isCorrupt(err) {
		t.Errorf("all of it: %v", err)
	}
}

// An engine sizes its KV cache by the profile before it uses the rest of the artifact, so the profile must agree with the
// recorded cache.
func TestKVProfileHoldsTheTensors(t *testing.T) {
	engine := graphir.Allocation{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 4096, Live: true}
	mapped := graphir.Allocation{Kind: graphir.AllocVMM, Owner: graphir.OwnerEngine, Size: 4096, Live: true}
	behind := mapped
	behind.ContiguousTo = 3
	kv := func(alloc uint32, offset, size uint64) graphir.Tensor {
		return graphir.Tensor{Name: "kv", Role: graphir.RoleKV, DType: graphir.U8, At: graphir.Pointer{Index: alloc, Offset: offset}, Size: size}
	}
	weight := kv(1, 0, 4096)
	weight.Role = graphir.RoleWeight
	for name, tt := range map[string]struct {
		need    uint64
		tensors []graphir.Tensor
	}{
		"none":                       {1, nil},
		"one":                        {4096, []graphir.Tensor{kv(0, 0, 4096)}},
		"beside weights":             {96, []graphir.Tensor{weight, kv(0, 0, 96)}},
		"in two allocations":         {5000, []graphir.Tensor{kv(1, 96, 4000), kv(0, 0, 1000)}},
		"over each other":            {3000, []graphir.Tensor{kv(0, 1000, 2000), kv(0, 0, 2000), kv(0, 500, 100)}},
		"across mappings":            {5000, []graphir.Tensor{kv(2, 1000, 5000)}},
		"across mappings and behind": {5000, []graphir.Tensor{kv(2, 1000, 5000), kv(3, 0, 1904)}},
	} {
		for _, given := range []uint64{tt.need - 1, tt.need, tt.need + 1} {
			a := small()
			a.Spec.Allocations = []graphir.Allocation{engine, engine, mapped, behind}
			a.Spec.Sequence = []graphir.Step{{Alloc: 0}, {Alloc: 1}, {Alloc: 2}, {Alloc: 3}}
			a.Spec.Contents, a.Spec.Tensors, a.Spec.Graphs = nil, tt.tensors, nil
			a.KV.KVBytes = given
			if given == 0 {
				continue // refused for another reason
			}
			_, err := encodeAll(a)
			if refused := err != nil; refused != (given < tt.need) || refused && !strings.Contains(err.Error(), "KV bytes") {
				t.Errorf("%s: %d bytes, but %d are needed: %v", name, given, tt.need, err)
			}
		}
	}

	// A reader makes the check itself and does not rely on the writer.
	_, _, _, blob := parts(t)
	a := small()
	a.Spec.Contents, a.Spec.Tensors = a.Spec.Contents[:1], []graphir.Tensor{kv(0, 0, 4096)}
	graph, err := graphir.EncodeDetached(a.Spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[uint64]bool{4095: false, 4096: true} {
		manifest, err := (&Manifest{KV: kvprofile.Profile{KVBytes: given, TotalMemory: 1 << 30, FreeBefore: 1 << 30}}).encode()
		if err != nil {
			t.Fatal(err)
		}
		_, err = readBytes(sections(t, nil, manifest, graph.Graph, graph.Buffers, blob))
		if read := err == nil; read != want || !read && (!isCorrupt(err) || !strings.Contains(err.Error(), "manifest")) {
			t.Errorf("%d bytes for a tensor of 4096: %v", given, err)
		}
	}
}
