package artifacts

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

// Files of one worker stay readable for older readers.
func TestOneRankIsVersion1(t *testing.T) {
	for version, a := range map[uint32]*Artifact{1: small(), 2: ranks()} {
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

func many(k kind, n int) []kind {
	out := make([]kind, n)
	for i := range out {
		out[i] = k
	}
	return out
}
