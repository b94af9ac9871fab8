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

// Exposed returns the reason why other users could change an artifact or its proofs, or nil. It is stricter than Open: the
// folders above the cache must be safe too.
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

// Proofs returns the bytes that SetProofs stored about an artifact's origin. It returns none if the artifact was made here.
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

// SetProofs stores the proofs of an artifact's origin.
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
