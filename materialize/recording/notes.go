package recording

import (
	"bytes"
	"cmp"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// addNote keeps a note's last value.
func (r *Recording) addNote(v *trace.Note) {
	n := graphir.Note{Name: v.Name, Value: bytes.Clone(v.Value)}
	i, found := slices.BinarySearchFunc(r.Notes, v.Name, func(n graphir.Note, name string) int { return cmp.Compare(n.Name, name) })
	if found {
		// mutant: a note's last value
		r.Notes[i] = n
		return
	}
	r.Notes = slices.Insert(r.Notes, i, n)
}
