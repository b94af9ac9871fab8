package store

import (
	"errors"
	"fmt"
)

// ErrInUse means that a process uses an artifact.
var ErrInUse = errors.New("a running engine or command uses it")

// Remove removes the artifact with a digest or name, and its names, records and proofs. It returns the artifact's entry.
func (s *Store) Remove(ref string) (Entry, error) {
	e, err := s.Find(ref)
	if err != nil {
		return e, err
	}
	removed, err := remove(e.Path)
	switch {
	case err != nil:
		return e, fmt.Errorf("remove %s: %w", ref, err)
	case !removed:
		return e, fmt.Errorf("remove %s: %w", ref, ErrInUse)
	}
	return e, s.forget()
}
