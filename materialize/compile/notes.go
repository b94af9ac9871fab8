package compile

import (
	"bytes"
	"fmt"

	"medusa/graphir"
)

// compileNotes takes over the engine's notes. A note that differs between two recordings would be of no use in a third process.
func compileNotes(a, b *run, spec *graphir.Spec) error {
	if len(a.Notes) != len(b.Notes) {
		return fmt.Errorf("compile notes: %d in run A, %d in run B", len(a.Notes), len(b.Notes))
	}
	for i, n := range a.Notes {
		// mutant: notes of two recordings
		if o := b.Notes[i]; n.Name != o.Name || !bytes.Equal(n.Value, o.Value) {
			return fmt.Errorf("compile note %q: it differs between the runs", n.Name)
		}
	}
	spec.Notes = a.Notes
	return nil
}
