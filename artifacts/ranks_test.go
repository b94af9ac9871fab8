package artifacts

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"medusa/graphir"
	"medusa/test/randspec"
)

// ranks is an artifact of three workers that differ in identity and graph and share saved contents.
func ranks() *Artifact {
	a := small()
	for i, name := range []string{"1", "2"} {
		peer := small()
		peer.Directories = nil
		peer.Identity = append(peer.Identity, Factor{"rank.index", name})
		peer.Spec.Graphs[0].Batch = int64(i + 2)
		a.Peers = append(a.Peers, peer)
	}
	a.Peers[1].Spec.Contents[1].Data = []byte{5, 6, 7, 8}
	return a
}

func TestRanksRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.medusa")
	want := ranks()
	if err := Write(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := Check(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), withoutContent); diff != "" {
		t.Fatalf("artifact differs (-want +got):\n%s", diff)
	}
	for rank := range want.Ranks() {
		part, err := ReadRank(path, rank)
		if err != nil {
			t.Fatal(err)
		}
		expected := *want.Rank(rank)
		expected.Peers = nil
		if diff := cmp.Diff(&expected, part, cmpopts.EquateEmpty(), withoutContent); diff != "" {
			t.Errorf("rank %d differs (-want +got):\n%s", rank, diff)
		}
	}
	if beyond, err := ReadRank(path, 3); err != nil || beyond.Spec.Graphs[0].Batch != want.Spec.Graphs[0].Batch {
		t.Errorf("a rank beyond the last: %v %v", beyond, err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	blobs := 0
	for _, s := range f.Sections() {
		if s.Kind == "blob" {
			blobs++
		}
	}
	if blobs != 3 || f.Ranks() != 3 {
		t.Errorf("%d blobs of %d ranks, want 3 of 3: equal ones are stored once", blobs, f.Ranks())
	}
}

// Files of one worker stay readable for older readers, and so do those of workers that share no section.
func TestOneRankIsVersion1(t *testing.T) {
	different := small()
	peer := small()
	peer.Directories = nil
	peer.Spec.Graphs[0].Batch++
	peer.Spec.Contents[1].Data = []byte{5, 6, 7, 8}
	different.Peers = []*Artifact{peer}
	for version, a := range map[uint32]*Artifact{1: small(), 2: different, 3: ranks()} {
		data, err := encodeAll(a)
		if err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(data[8:]); got != version {
			t.Errorf("%d ranks make a file of version %d, want %d", a.Ranks(), got, version)
		}
	}
}

// Damage in one rank's part is found by readers of the whole file or of this part, and only by them.
func TestDamagedRank(t *testing.T) {
	data, err := encodeAll(ranks())
	if err != nil {
		t.Fatal(err)
	}
	f, err := open("test.medusa", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "damaged.medusa")
	data[f.parts[1].graph.offset] ^= 1
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	for rank, damaged := range []bool{false, true, false} {
		if _, err := ReadRank(path, rank); errors.Is(err, ErrCorrupt) != damaged {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	if _, err := Check(path); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the whole file: %v", err)
	}
}

func TestPartsThatDoNotMatch(t *testing.T) {
	manifest, graph, buffers, blob := parts(t)
	pack := func(version int, kinds ...kind) error {
		p := &packer{version: version}
		for _, k := range kinds {
			data := map[kind][]byte{kindManifest: manifest, kindGraph: graph, kindBuffers: buffers, kindBlob: blob}[k]
			p.add(k, data, sha256.Sum256(data))
		}
		data, err := join(p.pack())
		if err != nil {
			t.Fatal(err)
		}
		_, err = readBytes(data)
		return err
	}
	two := []kind{kindManifest, kindGraph, kindBuffers, kindManifest, kindGraph, kindBuffers, kindBlob}
	if err := pack(2, two...); err != nil {
		t.Fatalf("two ranks: %v", err)
	}
	for want, err := range map[string]error{
		"there are two manifest sections":        pack(1, two...),
		"manifest, graph or buffers is missing":  pack(2, two[:5]...),
		"more than 256 ranks":                    pack(2, many(kindManifest, 257)...),
		"manifest, graph or buffers is missing ": pack(2, kindManifest, kindManifest, kindGraph, kindBuffers, kindBlob),
	} {
		if !isCorrupt(err) || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	a := ranks()
	a.Peers[0].Directories = small().Directories
	if _, err := encodeAll(a); err == nil {
		t.Error("rank 1 was written with layers of its own")
	}
}

// shaped is an artifact of a large engine's graphs, of so many ranks of equal shape. Each has its own identity, and its own digests of
// the memory that its graphs wrote.
func shaped(graphs, layers, ranks int) *Artifact {
	parts := make([]*Artifact, ranks)
	for r := range parts {
		digest := func(i, k int) string { return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, r, i, k))) }
		a := &Artifact{Spec: randspec.Model(graphs, layers), Identity: Identity{{"rank.index", fmt.Sprint(r)}, {"rank.count", fmt.Sprint(ranks)}}}
		for i, g := range a.Spec.Graphs {
			a.Verification.Graphs = append(a.Verification.Graphs, GraphCheck{Label: g.Label, BytesCompared: 1 << 30, NativeDeterministic: true, Digest: digest(i, 0), Canary: digest(i, 1)})
		}
		parts[r] = a
	}
	parts[0].Peers = parts[1:]
	return parts[0]
}

// Ranks of equal shape share equal sections: eight ranks of a 28-layer model take at most 1.5 times the bytes of one.
func TestRanksShareSections(t *testing.T) {
	for _, graphs := range []int{3, 35} {
		one, err := encodeAll(shaped(graphs, 28, 1))
		if err != nil {
			t.Fatal(err)
		}
		want := shaped(graphs, 28, 8)
		eight, err := encodeAll(want)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d graphs of 28 layers: %d bytes for one rank, %d for eight: %.2f times", graphs, len(one), len(eight), float64(len(eight))/float64(len(one)))
		if 2*len(eight) > 3*len(one) {
			t.Errorf("%d graphs: eight ranks take %d bytes, one takes %d", graphs, len(eight), len(one))
		}
		got, err := readBytes(eight)
		if err != nil {
			t.Fatal(err)
		}
		for r := range want.Ranks() {
			if !graphir.Equal(got.Rank(r).Spec, want.Rank(r).Spec) || got.Rank(r).Identity[0].Value != fmt.Sprint(r) {
				t.Errorf("%d graphs: rank %d is read as something else", graphs, r)
			}
		}
	}
}

// A section that repeats an earlier one has the same entry, is of a kind that ranks share, and counts as often as it may be read.
func TestRepeatedSections(t *testing.T) {
	manifest, graph, buffers, blob := parts(t)
	pack := func(version int, change func(e []entry)) error {
		p := &packer{version: 2}
		for range 2 {
			p.add(kindManifest, manifest, sha256.Sum256(manifest))
			p.add(kindGraph, graph, sha256.Sum256(graph))
			p.add(kindBuffers, buffers, sha256.Sum256(buffers))
		}
		p.add(kindBlob, blob, sha256.Sum256(blob))
		change(p.entries)
		p.version = version
		data, err := join(p.pack())
		if err != nil {
			t.Fatal(err)
		}
		_, err = readBytes(data)
		return err
	}
	if err := pack(3, func([]entry) {}); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"graph starts at byte":             pack(2, func([]entry) {}),
		"graph starts at byte ":            pack(3, func(e []entry) { e[4].crc++ }),
		"graph starts at byte  ":           pack(3, func(e []entry) { e[4].size++ }),
		"manifest starts at byte":          pack(3, func(e []entry) { e[3].repeats = true }),
		"bytes are compressed or repeated": pack(3, func(e []entry) { e[1].size, e[4].size = maxCompressed/2, maxCompressed/2 }),
	} {
		if !isCorrupt(err) || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// Repeated sections that are stored uncompressed are bounded like compressed ones: a reader may decode each of them.
func TestPlainRepeatedSections(t *testing.T) {
	manifest, _, buffers, _ := parts(t)
	graph := make([]byte, maxCompressed/4)
	_, _ = rand.NewChaCha8([32]byte{}).Read(graph)
	for ranks, bounded := range map[int]bool{4: false, 6: true} {
		p := &packer{version: 2}
		for range ranks {
			p.add(kindManifest, manifest, sha256.Sum256(manifest))
			if at := slices.IndexFunc(p.entries, func(e entry) bool { return e.kind == kindGraph }); at < 0 {
				p.add(kindGraph, graph, sha256.Sum256(graph))
			} else { // as a writer does not
				e := p.entries[at]
				e.repeats = true
				p.entries, p.bodies = append(p.entries, e), append(p.bodies, bytes.NewReader(nil))
			}
			p.add(kindBuffers, buffers, sha256.Sum256(buffers))
		}
		p.version = 3
		data, err := join(p.pack())
		if err != nil {
			t.Fatal(err)
		}
		_, err = readBytes(data)
		if got := err != nil && strings.Contains(err.Error(), "bytes are compressed or repeated"); got != bounded {
			t.Errorf("%d ranks: %v, want a bound: %v", ranks, err, bounded)
		}
	}
}

func many(k kind, n int) []kind {
	out := make([]kind, n)
	for i := range out {
		out[i] = k
	}
	return out
}
