package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const proofDir = "proofs"

// Proofs returns what is known about where an artifact came from, as SetProofs left it; nothing if it was made here.
func (s *Store) Proofs(digest string) ([]byte, error) {
	digits, err := hexOf(digest)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(s.dir, proofDir, digits))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read proofs: %w", err)
	}
	return data, nil
}

// SetProofs keeps what is known about where an artifact came from.
func (s *Store) SetProofs(digest string, data []byte) error {
	digits, err := hexOf(digest)
	if err == nil {
		err = atomically(filepath.Join(s.dir, proofDir, digits), data)
	}
	if err != nil {
		return fmt.Errorf("keep proofs of %s: %w", digest, err)
	}
	return nil
}
