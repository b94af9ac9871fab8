package materialize

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// addNote keeps a note's last value.
func (r *Recording) addNote(v *trace.Note) {
	n := graphir.Note{Name: v.Name, Value: bytes.Clone(v.Value)}
	i, found := slices.BinarySearchFunc(r.notes, v.Name, func(n graphir.Note, name string) int { return cmp.Compare(n.Name, name) })
	if found {
		// mutant: a note's last value
		r.notes[i] = n
		return
	}
	r.notes = slices.Insert(r.notes, i, n)
}

// compileNotes takes over what the engine noted. What differs between two recordings would be of no use in a third process.
func compileNotes(a, b *Recording, spec *graphir.Spec) error {
	if len(a.notes) != len(b.notes) {
		return fmt.Errorf("compile notes: %d in run A, %d in run B", len(a.notes), len(b.notes))
	}
	for i, n := range a.notes {
		// mutant: notes of two recordings
		if o := b.notes[i]; n.Name != o.Name || !bytes.Equal(n.Value, o.Value) {
			return fmt.Errorf("compile note %q: it differs between the runs", n.Name)
		}
	}
	spec.Notes = a.notes
	return nil
}
