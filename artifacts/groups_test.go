package artifacts

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/test/testmem"
)

// large is small with enough graphs to need row groups.
func large() *Artifact {
	a := small()
	for i := range 40 {
		g := graphir.Graph{Label: fmt.Sprintf("many %d", i), Batch: int64(100 + i)}
		for n := range 4000 {
			g.Nodes = append(g.Nodes, graphir.Node{Type: graphir.NodeMemset, Params: &graphir.MemsetNode{
				Dst: graphir.Pointer{Index: 1}, Value: uint32(i * n), ElemSize: 1, Width: 4, Height: 1}})
		}
		a.Spec.Graphs = append(a.Spec.Graphs, g)
	}
	return a
}

func TestRowGroups(t *testing.T) {
	dir := t.TempDir()
	path, again := filepath.Join(dir, "a.medusa"), filepath.Join(dir, "b.medusa")
	want := large()
	if err := Write(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := Check(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Spec.Rows == nil || !graphir.Equal(want.Spec, got.Spec) {
		t.Fatal("another spec, or no row groups")
	}
	got.Directories = want.Directories // including their content
	if err := Write(again, got); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(again); err != nil || !bytes.Equal(first, second) {
		t.Errorf("written again: %d bytes instead of %d, %v", len(second), len(first), err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
		t.Errorf("left behind: %v %v", names, err)
	}
	testmem.Bounded(t, len(first), func() {
		a, err := Read(path)
		if err == nil {
			err = a.Spec.Validate()
		}
		if err != nil {
			t.Error(err)
		}
	})
}

func TestDamagedGroups(t *testing.T) {
	data, err := encodeAll(large())
	if err != nil {
		t.Fatal(err)
	}
	f, err := open("test.medusa", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var group int
	for i, s := range f.sections {
		if s.kind == kindGroup {
			group = i
		}
	}
	change := func(edit func(e *entry, data []byte)) []byte {
		data := bytes.Clone(data)
		table := data[headerSize : headerSize+len(f.sections)*entrySize]
		e := parseEntry(table[group*entrySize:])
		edit(&e, data)
		copy(table[group*entrySize:], e.append(nil))
		copy(data, appendHeader(nil, 1, len(f.sections), table))
		return data
	}
	for want, edit := range map[string]func(e *entry, data []byte){
		"checksum does not match": func(e *entry, data []byte) { data[e.offset] ^= 1 },
		"is missing":              func(e *entry, _ []byte) { e.sha256[0] ^= 1 },
		"occurs twice": func(e *entry, data []byte) {
			e.sha256 = f.sections[group-1].sha256
		},
		"at most 4194304": func(e *entry, _ []byte) { e.size = maxGroup + 1 },
		"decode graphs[": func(e *entry, data []byte) { // with a matching checksum
			data[e.offset+e.storedSize-1] ^= 1
			e.crc = crc32.Checksum(data[e.offset:e.offset+e.storedSize], castagnoli)
		},
	} {
		_, err := readBytes(change(edit))
		if !isCorrupt(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	// A reader that uses no graph reads no group, so it finds the damage only at the first use.
	late := change(func(e *entry, data []byte) {
		data[e.offset+e.storedSize-1] ^= 1
		e.crc = crc32.Checksum(data[e.offset:e.offset+e.storedSize], castagnoli)
	})
	if f, err = open("test.medusa", bytes.NewReader(late), int64(len(late))); err != nil {
		t.Fatal(err)
	}
	a, err := f.readAll()
	if err != nil {
		t.Fatal(err)
	}
	c := a.Spec.NewCursor()
	if _, err := c.Graph(0); err != nil {
		t.Errorf("the first group: %v", err)
	}
	if _, err := c.Graph(len(a.Spec.Graphs) - 1); !errors.Is(err, graphir.ErrCorrupt) {
		t.Errorf("the damaged one: %v", err)
	}
}
