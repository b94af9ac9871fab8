package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"medusa/internal/atomicfile"
	"medusa/internal/private"
)

const proofDir = "proofs"

func (s *Store) proof(digits string) string { return filepath.Join(s.dir, proofDir, digits) }

// Exposed returns why others could change an artifact or its proofs, or nil. It asks for more than opening the cache does:
// that the folders above it are nobody else's either.
func (s *Store) Exposed(digest string) error {
	digits, err := hexOf(digest)
	if err != nil {
		return err
	}
	err = private.Check(s.proof(digits))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(private.Check(s.artifact(digits)), err)
}

// Proofs returns what is known about where an artifact came from, as SetProofs left it; nothing if it was made here.
func (s *Store) Proofs(digest string) ([]byte, error) {
	digits, err := hexOf(digest)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(s.proof(digits))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read proofs: %w", err)
	}
	return data, nil
}

// SetProofs keeps what is known about where an artifact came from.
func (s *Store) SetProofs(digest string, data []byte) error {
	digits, err := hexOf(digest)
	if err == nil {
		err = atomicfile.Write(s.proof(digits), 0o644, bytes.NewReader(data))
	}
	if err != nil {
		return fmt.Errorf("keep proofs of %s: %w", digest, err)
	}
	return nil
}
