package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// encode makes a file of a header and data.
func encode(header string, data []byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), data...)
}

const header = `{"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[2],"data_offsets":[8,12]},` +
	`"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}`

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOpenAndRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, singleName, encode(header, []byte("abcdefghijkl")))
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, err := c.Tensor("b")
	if err != nil || b.DType != F16 || b.Size() != 4 {
		t.Fatalf("got %+v, %v", b, err)
	}
	got := make([]byte, 2)
	if err := b.ReadAt(got, 1); err != nil || string(got) != "jk" {
		t.Errorf("read %q, %v; want \"jk\"", got, err)
	}
	if err := b.ReadAt(got, 3); err == nil {
		t.Error("bytes of the next tensor were read")
	}
	var missing *MissingTensorError
	if _, err := c.Tensor("model.norm.weight"); !errors.As(err, &missing) || missing.Name != "model.norm.weight" {
		t.Errorf("got %v, want a *MissingTensorError that names the tensor", err)
	}
}

func TestShards(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "s1.safetensors", encode(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, []byte("AAAA")))
	write(t, dir, "s2.safetensors", encode(`{"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, []byte("BBBB")))
	write(t, dir, indexName, []byte(`{"weight_map":{"a":"s1.safetensors","b":"s2.safetensors"}}`))
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.tensors["a"] == nil || c.tensors["b"] == nil || len(c.files) != 2 {
		t.Errorf("shards were not merged: %v", c.tensors)
	}
	write(t, dir, indexName, []byte(`{"weight_map":{"a":"s1.safetensors","c":"s2.safetensors"}}`))
	var missing *MissingTensorError
	if _, err := Open(dir); !errors.As(err, &missing) || missing.Name != "c" {
		t.Errorf("got %v, want the promised tensor c to be missing", err)
	}
	write(t, dir, indexName, []byte(`{"weight_map":{"a":"../s1.safetensors"}}`))
	var bad *FormatError
	if _, err := Open(dir); !errors.As(err, &bad) {
		t.Errorf("got %v, want a *FormatError for a path outside of the directory", err)
	}
}

func TestBadFiles(t *testing.T) {
	good := encode(header, []byte("abcdefghijkl"))
	for _, row := range []struct {
		name    string
		data    []byte
		section string
	}{
		{"empty", nil, "header length"},
		{"half a length", good[:4], "header length"},
		{"header cut", good[:40], "header length"},
		{"data cut", good[:len(good)-1], "tensor b"},
		{"data too long", append(bytes.Clone(good), 'x'), "data"},
		{"length all ones", append(bytes.Repeat([]byte{255}, 8), good[8:]...), "header length"},
		{"foreign", []byte("GGUF\x03\x00\x00\x00\x00\x00"), "header length"},
		{"no object", encode(`[1]`, nil), "header"},
		{"two of a name", encode(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, nil), "header"},
		{"unknown type", encode(`{"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}}`, make([]byte, 4)), "tensor a"},
		{"shape against size", encode(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,4]}}`, make([]byte, 4)), "tensor a"},
		{"negative shape", encode(`{"a":{"dtype":"F32","shape":[-1,-1],"data_offsets":[0,4]}}`, make([]byte, 4)), "tensor a"},
		{"overflow", encode(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, nil), "tensor a"},
		{"overlap", encode(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}`, make([]byte, 6)), "tensor b"},
		{"gap", encode(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, make([]byte, 2)), "tensor a"},
		{"backwards", encode(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}`, make([]byte, 2)), "tensor a"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := parse(bytes.NewReader(row.data), uint64(len(row.data)), "x.safetensors")
			var bad *FormatError
			if !errors.As(err, &bad) || bad.File != "x.safetensors" || bad.Section != row.section {
				t.Errorf("got %v, want a *FormatError in section %q", err, row.section)
			}
		})
	}
}

func TestDigestCoversContents(t *testing.T) {
	digest := func(data string) string {
		dir := t.TempDir()
		write(t, dir, singleName, encode(header, []byte(data)))
		c, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		d, err := c.Digest()
		if err != nil || !strings.HasPrefix(d, "sha256:") {
			t.Fatalf("digest %q, %v", d, err)
		}
		return d
	}
	first, again := digest("abcdefghijkl"), digest("abcdefghijkl")
	if first != again {
		t.Error("the same checkpoint has two digests")
	}
	if first == digest("abcdefghijkL") {
		t.Error("one changed weight keeps the digest")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(encode(header, []byte("abcdefghijkl")))
	f.Fuzz(func(t *testing.T, data []byte) {
		tensors, err := parse(bytes.NewReader(data), uint64(len(data)), "fuzz")
		if err != nil && tensors != nil {
			t.Errorf("tensors besides the error %v", err)
		}
		for _, tensor := range tensors {
			if tensor.begin+tensor.size > uint64(len(data)) {
				t.Errorf("tensor %q reaches past the file", tensor.Name)
			}
		}
	})
}
