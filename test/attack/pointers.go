package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"medusa/graphir"
	"medusa/materialize/compile"
	"medusa/materialize/recording"
	"medusa/test/attack/mutate"
)

// compiledName is the file that a compiling process leaves beside its traces.
const compiledName = "compiled"

// named is the outcome of a recording whose refusal has a type that names a record, a node or a word.
const named = "refused"

// refusal is a compiling process's account of an error.
func refusal(err error) string {
	var record *recording.Error
	var node *compile.RefusedError
	var word *compile.WordError
	if errors.As(err, &record) || errors.As(err, &node) || errors.As(err, &word) {
		return named
	}
	return "refused otherwise"
}

// pointers compiles the crafted recording. The right treatment of its addresses is known.
func (a *attacker) pointers(ctx context.Context, c *mutate.Crafted) (string, error) {
	pair, err := c.Pair(a.seed)
	if err != nil {
		return "", err
	}
	where := "recording with " + c.Name
	return a.compile(ctx, where, pair, func(how, said, dir string) error {
		switch {
		case how == named && !c.Sound:
			return nil
		case how != "compiled":
			return fmt.Errorf("%s: %s", where, said) // the recording's words were not reached
		}
		file, err := os.ReadFile(filepath.Join(dir, compiledName))
		if err != nil {
			return err
		}
		spec, err := graphir.Decode(file)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if bad := misled(spec, c.Words); len(bad) > 0 {
			a.found(pointer, where, "%s", strings.Join(bad, "; "))
		}
		return nil
	})
}

// misled lists the words that a restored graph would misread.
func misled(spec *graphir.Spec, words []mutate.Word) (bad []string) {
	for _, w := range words {
		data, relocations, at := wordIn(spec, w)
		if data == nil {
			bad = append(bad, fmt.Sprintf("%+v: nothing holds it", w))
			continue
		}
		var to []graphir.Pointer
		for _, f := range relocations {
			if uint64(f.Offset) == at {
				to = append(to, f.Pointer)
			}
		}
		want := graphir.Pointer{Index: w.Alloc, Offset: w.Byte}
		switch value := binary.LittleEndian.Uint64(data[at:]); {
		case w.Address && len(to) == 0:
			bad = append(bad, fmt.Sprintf("word %d: the address %#x stays as it was", w.Offset, value))
		case w.Address && (len(to) != 1 || to[0] != want):
			bad = append(bad, fmt.Sprintf("word %d: it leads to %v, want %v", w.Offset, to, want))
		case !w.Address && (len(to) > 0 || value != mutate.Plain):
			bad = append(bad, fmt.Sprintf("word %d: no address, but %#x with pointers %v", w.Offset, value, to))
		}
	}
	return bad
}

// wordIn returns the bytes that hold the word, their pointers, and its place among them.
func wordIn(spec *graphir.Spec, w mutate.Word) (data []byte, relocations []graphir.Relocation, at uint64) {
	if w.Saved {
		for _, c := range spec.Contents {
			if w.Offset >= c.Offset && w.Offset+8 <= c.Offset+uint64(len(c.Data)) {
				return c.Data, c.Relocations, w.Offset - c.Offset
			}
		}
		return nil, nil, 0
	}
	if len(spec.Graphs) != 1 || len(spec.Graphs[0].Nodes) != 1 {
		return nil, nil, 0
	}
	k := spec.Graphs[0].Nodes[0].Kernel()
	if k == nil || w.Offset+8 > uint64(len(k.Params)) {
		return nil, nil, 0
	}
	return k.Params, k.Relocations, w.Offset
}
