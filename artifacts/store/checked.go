package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"medusa/internal/atomicfile"
	"medusa/internal/contract"
	"medusa/internal/private"
)

const checkedDir = "checked"

// record identifies a file whose digest was checked. Any change of the file voids the record, even if the modification time is
// set back: programs cannot set the time of the last status change (ctime).
type record struct {
	Size    int64  `json:"size"`
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Written int64  `json:"written"` // nanoseconds since 1970
	Changed int64  `json:"changed"`
}

func recordOf(f *os.File) (record, error) {
	info, err := f.Stat()
	if err != nil {
		return record{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return record{}, fmt.Errorf("stat %s: the file system gives no inode or change time", f.Name())
	}
	return record{st.Size, st.Dev, st.Ino, st.Mtim.Nano(), st.Ctim.Nano()}, nil
}

func (s *Store) record(digits string) string { return filepath.Join(s.dir, checkedDir, digits) }

// demand returns nil if an open artifact has its digest. It trusts a record if no other user could have changed the artifact or
// the record. Otherwise it reads the bytes.
func (s *Store) demand(f *os.File, digits string) error {
	if err := private.File(f); err != nil {
		return fmt.Errorf("refuse artifact: %w (set "+contract.EnvCache+" to a folder that is this user's alone)", err)
	}
	if s.recorded(f, digits) {
		return nil
	}
	sum := sha256.New()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, info.Size())); err != nil {
		return err
	}
	// mutant: bytes of the cache have their digest
	if got := hex.EncodeToString(sum.Sum(nil)); got != digits {
		return fmt.Errorf("%w: %s has sha256:%s", ErrDigest, f.Name(), got)
	}
	return nil
}

// recorded says whether a trustworthy record covers the bytes of an open artifact.
func (s *Store) recorded(f *os.File, digits string) bool {
	path := s.record(digits)
	// mutant: a record that others could have made counts for nothing
	if private.Check(path) != nil || private.Check(s.artifact(digits)) != nil {
		return false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	var was record
	is, err := recordOf(f)
	// mutant: a record is of one file
	return err == nil && json.Unmarshal(data, &was) == nil && was == is
}

// keep records that an open artifact has its digest. A read-only cache cannot keep records, so its artifacts are read at every
// use.
func (s *Store) keep(f *os.File, digits string) {
	is, err := recordOf(f)
	if err != nil {
		return
	}
	if data, err := json.Marshal(is); err == nil {
		_ = atomicfile.Write(s.record(digits), 0o644, bytes.NewReader(data))
	}
}
