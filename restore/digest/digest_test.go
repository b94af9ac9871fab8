package digest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func sample() *Digest {
	hashes := func(n int, b byte) []byte { return bytes.Repeat([]byte{b}, n*HashBytes) }
	return &Digest{
		Device: "Simulated GPU",
		Ready:  []Range{{Alloc: 3, Size: 100, Class: Other, Stride: 1, First: hashes(1, 1)}},
		Graphs: []Graph{{Label: "decode-8", Batch: 8, Ranges: []Range{
			{Alloc: 4, Offset: 256, Size: 2*ChunkBytes + 1, Class: Output, Name: "logits", Stride: 1, First: hashes(3, 2)},
			{Alloc: 5, Size: 5 * ChunkBytes, Class: KV, Name: "kv", Stride: 2, First: hashes(3, 3), Second: hashes(3, 4)},
		}}},
		End: []Range{{Alloc: 1, Size: ChunkBytes, Class: Weight, Stride: 1, First: hashes(1, 5)}},
	}
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.digest")
	want := sample()
	if err := Write(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, wrote %+v", got, want)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("%d files left, want 1", len(entries))
	}
}

func TestChunks(t *testing.T) {
	g := sample().Graphs[0]
	logits, kv := &g.Ranges[0], &g.Ranges[1]
	if n := logits.Chunks(); n != 3 {
		t.Errorf("logits have %d chunks, want 3", n)
	}
	if off, size := logits.Span(2); off != 256+2*ChunkBytes || size != 1 {
		t.Errorf("last chunk of logits is %d bytes at %d", size, off)
	}
	if off, size := kv.Span(2); off != 4*ChunkBytes || size != ChunkBytes {
		t.Errorf("third hashed chunk of kv is %d bytes at %d", size, off)
	}
	if !logits.Stable(0) || kv.Stable(0) {
		t.Errorf("stable: logits %v, kv %v; want true, false", logits.Stable(0), kv.Stable(0))
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if err := Write(good, sample()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"empty":        {},
		"truncated":    data[:len(data)/2],
		"other":        []byte(`{"version":2,"ready":[{"size":1}]}`),
		"newer":        bytes.Replace(data, []byte(`"version":3`), []byte(`"version":4`), 1),
		"fewer hashes": bytes.Replace(data, []byte(`"size":131073`), []byte(`"size":931073`), 1),
		"huge":         bytes.Replace(data, []byte(`"size":100`), []byte(`"size":18446744073709551615`), 1),
	} {
		path := filepath.Join(dir, "bad")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		var format *FormatError
		if _, err := Read(path); !errors.As(err, &format) {
			t.Errorf("%s: got %v, want a FormatError", name, err)
		}
	}
}
