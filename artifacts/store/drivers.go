package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"medusa/internal/atomicfile"
	"medusa/internal/private"
)

const driverDir = "drivers"

// Driver is a driver, other than an artifact's own, under which a full check on this machine has found the artifact's restored
// graphs to be as native ones are.
type Driver struct {
	GPU     string `json:"gpu"`     // gpu.name
	Version string `json:"version"` // driver.version
}

func (s *Store) driver(digits string) string { return filepath.Join(s.dir, driverDir, digits) }

// Drivers returns the drivers that were checked with the bytes of an artifact's file, in the cache or elsewhere. It ignores a
// record that others could have made. The file is read only if there is a record at all.
func (s *Store) Drivers(path string) ([]Driver, error) {
	if names, err := os.ReadDir(filepath.Join(s.dir, driverDir)); len(names) == 0 {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	digits, err := fileDigits(path)
	if err != nil {
		return nil, err
	}
	return s.drivers(digits)
}

func (s *Store) drivers(digits string) ([]Driver, error) {
	data, err := os.ReadFile(s.driver(digits))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	// mutant: a driver that others have written down is not checked
	if err == nil {
		err = private.Check(s.driver(digits))
	}
	var known []Driver
	if err == nil {
		err = json.Unmarshal(data, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("read checked drivers: %w", err)
	}
	return known, nil
}

// AddDriver records that a full check with a driver has passed for the bytes of an artifact's file. A record that cannot be read
// is replaced.
func (s *Store) AddDriver(path string, d Driver) error {
	digits, err := fileDigits(path)
	if err != nil {
		return fmt.Errorf("keep checked driver: %w", err)
	}
	known, _ := s.drivers(digits)
	if slices.Contains(known, d) {
		return nil
	}
	data, err := json.Marshal(append(known, d))
	if err == nil {
		err = atomicfile.Write(s.driver(digits), 0o644, bytes.NewReader(data))
	}
	if err != nil {
		return fmt.Errorf("keep checked driver: %w", err)
	}
	return nil
}

func fileDigits(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
