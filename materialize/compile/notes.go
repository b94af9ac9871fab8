package compile

import (
	"bytes"
	"fmt"

	"medusa/graphir"
)

// compileNotes takes over the engine's notes. A note that differs between two recordings would be of no use in a third process.
func compileNotes(a, b []graphir.Note) ([]graphir.Note, error) {
	if len(a) != len(b) {
		return nil, fmt.Errorf("compile notes: %d in record-a, %d in record-b", len(a), len(b))
	}
	for i, n := range a {
		// mutant: notes of two recordings
		if o := b[i]; n.Name != o.Name || !bytes.Equal(n.Value, o.Value) {
			return nil, fmt.Errorf("compile note %q: it differs between the runs", n.Name)
		}
	}
	return a, nil
}
