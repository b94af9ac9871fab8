package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/internal/private"
)

// A valid artifact under another artifact's digest is neither pinned nor used in place of a download.
func TestPlantedIsNotPinned(t *testing.T) {
	data, digest := made(t, model("a"))
	planted, _ := made(t, model("b"))
	for _, via := range []string{"pin", "add"} {
		s := opened(t, 1<<20)
		if err := os.WriteFile(s.artifact(digest[7:]), planted, 0o644); err != nil {
			t.Fatal(err)
		}
		if via == "pin" {
			if p, err := s.Pin(digest); !errors.Is(err, ErrDigest) || !errors.Is(err, ErrNotFound) {
				t.Errorf("pinned %v: %v", p, err)
			}
			continue
		}
		p := add(t, s, data, digest, "")
		got, err := os.ReadFile(p.Path)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes that are not the artifact's, %v", len(got), err)
		}
		p.Close()
	}
}

// A file that changes after it was recorded is read again, even if size and modification time are the same.
func TestRecordIsOfOneFile(t *testing.T) {
	data, digest := made(t, model("a"))
	planted := bytes.Clone(data)
	planted[len(planted)-1] ^= 1
	for name, change := range map[string]func(s *Store, path string) error{
		"written": func(_ *Store, path string) error { return os.WriteFile(path, planted, 0o644) },
		"replaced": func(s *Store, path string) error {
			return errors.Join(os.WriteFile(s.partial("0"), planted, 0o644), os.Rename(s.partial("0"), path))
		},
	} {
		s := opened(t, 1<<20)
		p := add(t, s, data, digest, "")
		p.Close()
		before, err := os.Stat(p.Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(change(s, p.Path), os.Chtimes(p.Path, before.ModTime(), before.ModTime())); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Pin(digest); !errors.Is(err, ErrDigest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A record saves reading the file. It is valid after Add and after each use, unless other users could have made it.
func TestRecordStandsForTheBytes(t *testing.T) {
	data, digest := made(t)
	base := t.TempDir()
	s, err := Open(filepath.Join(base, "cache"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	p := add(t, s, data, digest, "")
	defer p.Close()
	for range 2 {
		if !s.recorded(p.file, digest[7:]) {
			t.Error("no valid record")
		}
		again, err := s.Pin(digest)
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
	}
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	if s.recorded(p.file, digest[7:]) {
		t.Error("a record counts below a folder in which others can put another cache")
	}
	if again, err := s.Pin(digest); err != nil { // its bytes are read instead
		t.Error(err)
	} else {
		again.Close()
	}
	// A record for another file.
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.record(digest[7:]), []byte(`{"size":1}`), 0o644); err != nil || s.recorded(p.file, digest[7:]) {
		t.Error("a record of another file counts", err)
	}
}

// Folders and files that other users own or can write to are refused, with advice in the message.
func TestOthersCacheIsRefused(t *testing.T) {
	for _, sub := range []string{"", artifactDir, nameDir, partialDir, checkedDir, proofDir} {
		s := opened(t, 1<<20)
		path := filepath.Join(s.dir, sub)
		if err := os.Chmod(path, 0o777|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
		_, err := Open(s.dir, 1<<20)
		refused(t, err, path, "chmod go-w")
		if os.Geteuid() == 0 {
			if err := errors.Join(os.Chmod(path, 0o755), os.Chown(path, 54321, -1)); err != nil {
				t.Fatal(err)
			}
			_, err := Open(s.dir, 1<<20)
			refused(t, err, path, "user 54321")
		}
	}
	data, digest := made(t)
	s := opened(t, 1<<20)
	p := add(t, s, data, digest, "")
	p.Close()
	if err := os.Chmod(p.Path, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := s.Pin(digest)
	refused(t, err, p.Path, "chmod go-w")
	_, err = s.Add(context.Background(), digest, int64(len(data)), "", nil, nil)
	refused(t, err, p.Path, "chmod go-w")
}

func refused(t *testing.T, err error, path, hint string) {
	t.Helper()
	var bad *private.Error
	if !errors.As(err, &bad) || bad.Path != path || !strings.Contains(err.Error(), hint) || !strings.Contains(err.Error(), "MEDUSA_CACHE") {
		t.Errorf("%s: %v", path, err)
	}
}

// Records are removed with their artifacts.
func TestRecordsAreForgotten(t *testing.T) {
	data, digest := made(t)
	s := opened(t, 1<<20)
	add(t, s, data, digest, "").Close()
	if err := s.SetProofs(digest, []byte("[]")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Proofs(digest); string(got) != "[]" || err != nil {
		t.Errorf("%s %v", got, err)
	}
	if _, err := s.Prune(0); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{checkedDir, proofDir} {
		if left, err := os.ReadDir(filepath.Join(s.dir, sub)); err != nil || len(left) != 0 {
			t.Errorf("left %v, %v", left, err)
		}
	}
}

// A process that is killed while it stores a pulled artifact leaves none that seems to be made here.
func TestOriginComesFirst(t *testing.T) {
	data, digest := made(t)
	s := opened(t, 1<<20)
	cut := errors.New("cut")
	calls := 0
	origin := func() error {
		calls++
		if _, err := s.Find(digest); !errors.Is(err, ErrNotFound) {
			t.Errorf("the artifact is there before its origin: %v", err)
		}
		if err := s.SetProofs(digest, []byte("[]")); err != nil {
			return err
		}
		if _, err := s.Prune(0); err != nil { // by another process, meanwhile
			return err
		}
		return cut
	}
	if _, err := s.Add(context.Background(), digest, int64(len(data)), "", origin, writing(data)); !errors.Is(err, cut) || calls != 1 {
		t.Fatalf("%v after %d calls", err, calls)
	}
	if _, err := s.Pin(digest); !errors.Is(err, ErrNotFound) {
		t.Errorf("stored without its origin: %v", err)
	}
	if got, err := s.Proofs(digest); string(got) != "[]" || err != nil {
		t.Errorf("the origin of an artifact that is being stored is gone: %q %v", got, err)
	}
	add(t, s, data, digest, "").Close()
	if _, err := s.Add(context.Background(), digest, int64(len(data)), "", func() error { return cut }, nil); !errors.Is(err, cut) {
		t.Errorf("the origin of an artifact that is there already: %v", err)
	}
}
