package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"medusa/artifacts"
	"medusa/graphir"
)

// made returns an artifact file's bytes and digest. Equal factors give equal bytes.
func made(t testing.TB, factors ...artifacts.Factor) ([]byte, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.medusa")
	spec := &graphir.Spec{Allocations: []graphir.Allocation{{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 4096, Live: true}},
		Sequence: []graphir.Step{{Alloc: 0}}}
	if err := artifacts.Write(path, &artifacts.Artifact{Identity: factors, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return data, digestPrefix + hex.EncodeToString(sum[:])
}

func model(name string) artifacts.Factor { return artifacts.Factor{Key: "model.config", Value: name} }

func opened(t testing.TB, limit int64) *Store {
	t.Helper()
	s, err := Open(t.TempDir(), limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// writing returns a Fill that writes data.
func writing(data []byte) Fill {
	return func(_ context.Context, f *os.File, have int64) error {
		_, err := f.Write(data[have:])
		return err
	}
}

func add(t testing.TB, s *Store, data []byte, digest, name string) *Pin {
	t.Helper()
	p, err := s.Add(context.Background(), digest, int64(len(data)), name, nil, writing(data))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func digests(t testing.TB, s *Store) []string {
	t.Helper()
	all, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range all {
		out = append(out, e.Digest)
	}
	return out
}

func TestAddFindPin(t *testing.T) {
	s := opened(t, 1<<20)
	data, digest := made(t, model("a"))
	p := add(t, s, data, digest, "hub/a:1")
	defer p.Close()
	if got, err := os.ReadFile(p.Path); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	again, err := s.Add(context.Background(), digest, int64(len(data)), "", nil, func(context.Context, *os.File, int64) error {
		return errors.New("it is there already")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, ref := range []string{"hub/a:1", digest, digest[:20]} {
		if e, err := s.Find(ref); err != nil || e.Digest != digest || e.Path != p.Path || len(e.Names) != 1 {
			t.Errorf("%s: %+v %v", ref, e, err)
		}
	}
	for _, ref := range []string{"hub/b", "sha256:", digest[:10], "../a", ""} {
		if e, err := s.Find(ref); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %+v %v", ref, e, err)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(s.dir, partialDir)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNamesAreNoPaths(t *testing.T) {
	s := opened(t, 1<<20)
	data, digest := made(t)
	for _, name := range []string{"..", ".", ".x", strings.Repeat("x", 201), "sha256:12345678"} {
		if p, err := s.Add(context.Background(), digest, int64(len(data)), name, nil, writing(data)); err == nil {
			t.Errorf("%q became %v", name, p)
		}
	}
	add(t, s, data, digest, "a/../../b").Close()
	if e, err := s.Find("a/../../b"); err != nil || e.Digest != digest {
		t.Errorf("%v %v", e, err)
	}
	if files, _ := filepath.Glob(filepath.Join(s.dir, nameDir, "*")); len(files) != 1 {
		t.Errorf("names in %v", files)
	}
}

func TestWrongBytesAreNeverVisible(t *testing.T) {
	s := opened(t, 1<<20)
	data, digest := made(t)
	flipped := bytes.Clone(data)
	flipped[40] ^= 1
	sum := sha256.Sum256(flipped)
	damaged := digestPrefix + hex.EncodeToString(sum[:])
	for _, row := range []struct {
		bytes  []byte
		digest string
		want   error
	}{
		{flipped, digest, ErrDigest}, {data[:50], digest, ErrDigest}, {append(bytes.Clone(data), 0), digest, ErrDigest},
		{flipped, damaged, artifacts.ErrCorrupt},
	} {
		_, err := s.Add(context.Background(), row.digest, int64(len(data)), "n", nil, writing(row.bytes))
		if !errors.Is(err, row.want) {
			t.Errorf("%d bytes: %v, want %v", len(row.bytes), err, row.want)
		}
	}
	if got := digests(t, s); len(got) != 0 {
		t.Errorf("visible: %v", got)
	}
	add(t, s, data, digest, "n").Close()
}

// An interrupted download continues at its end. If the result is wrong, it is fetched again.
func TestResume(t *testing.T) {
	s := opened(t, 1<<20)
	data, digest := made(t)
	cut := errors.New("connection reset")
	var asked []int64
	interrupted := func(part []byte) Fill {
		return func(_ context.Context, f *os.File, have int64) error {
			asked = append(asked, have)
			if _, err := f.Write(part); err != nil {
				t.Fatal(err)
			}
			return cut
		}
	}
	if _, err := s.Add(context.Background(), digest, int64(len(data)), "", nil, interrupted(data[:30])); !errors.Is(err, cut) {
		t.Fatal(err)
	}
	if _, err := s.Add(context.Background(), digest, int64(len(data)), "", nil, interrupted([]byte("wrong"))); !errors.Is(err, cut) {
		t.Fatal(err)
	}
	p, err := s.Add(context.Background(), digest, int64(len(data)), "", nil, func(ctx context.Context, f *os.File, have int64) error {
		asked = append(asked, have)
		return writing(data)(ctx, f, have)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if want := "[0 30 35 0]"; fmt.Sprint(asked) != want {
		t.Errorf("asked for bytes from %v, want %s", asked, want)
	}
}

func TestEvictsLeastRecentlyUsed(t *testing.T) {
	a, da := made(t, model("a"))
	b, db := made(t, model("b"))
	c, dc := made(t, model("c"))
	s := opened(t, int64(len(a)+len(b)+len(c)/2))
	add(t, s, a, da, "a").Close()
	add(t, s, b, db, "b").Close()
	past := time.Now().Add(-time.Hour)
	for i, d := range []string{da, db} {
		at := past.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(s.artifact(d[7:]), at, at); err != nil {
			t.Fatal(err)
		}
	}
	// A use of a makes it more recent than b.
	p, err := s.Pin(da)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	add(t, s, c, dc, "").Close()
	if got := strings.Join(digests(t, s), " "); strings.Contains(got, db) || !strings.Contains(got, da) || !strings.Contains(got, dc) {
		t.Errorf("left %s, want a and c", got)
	}
	if _, err := s.Find("b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("its name: %v", err)
	}
	if _, err := s.Add(context.Background(), db, s.limit+1, "", nil, writing(nil)); !errors.Is(err, errTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestPinnedStays(t *testing.T) {
	a, da := made(t, model("a"))
	s := opened(t, 1<<20)
	p := add(t, s, a, da, "a")
	if f, err := s.Prune(0); err != nil || f.Artifacts != 0 || f.InUse != 1 {
		t.Fatalf("%+v %v", f, err)
	}
	if _, err := os.Stat(p.Path); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if f, err := s.Prune(0); err != nil || f.Artifacts != 1 || f.Bytes != int64(len(a)) {
		t.Fatalf("%+v %v", f, err)
	}
	if _, err := s.Pin(da); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestPruneRemovesUnfinished(t *testing.T) {
	s := opened(t, 1<<20)
	for _, path := range []string{s.partial("00"), s.artifact("11") + ".aside"} {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	busy, err := os.Create(s.partial("22"))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if err := unix.Flock(int(busy.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Prune(s.limit); err != nil || f.Partial != 2 || f.Bytes != 8 {
		t.Errorf("%+v %v", f, err)
	}
	if _, err := os.Stat(busy.Name()); err != nil {
		t.Error(err)
	}
}

func TestVerifyRemovesTheDamaged(t *testing.T) {
	s := opened(t, 1<<20)
	a, da := made(t, model("a"))
	b, db := made(t, model("b"))
	add(t, s, a, da, "a").Close()
	add(t, s, b, db, "b").Close()
	flipped := bytes.Clone(a)
	flipped[len(a)-1] ^= 1
	if err := os.WriteFile(s.artifact(da[7:]), flipped, 0o644); err != nil {
		t.Fatal(err)
	}
	found, err := s.Verify()
	if err != nil || len(found) != 2 {
		t.Fatalf("%v %v", found, err)
	}
	for _, f := range found {
		if (f.Digest == da) != errors.Is(f.Err, ErrDigest) {
			t.Errorf("%s: %v", f.Digest, f.Err)
		}
	}
	if got := digests(t, s); len(got) != 1 || got[0] != db {
		t.Errorf("left %v", got)
	}
}

func TestMatch(t *testing.T) {
	s := opened(t, 1<<20)
	gpu := func(name string) artifacts.Factor { return artifacts.Factor{Key: artifacts.KeyGPUName, Value: name} }
	a, da := made(t, gpu("H200"), model("a"))
	b, db := made(t, gpu("B200"), model("a"))
	add(t, s, a, da, "").Close()
	add(t, s, b, db, "").Close()
	for _, row := range []struct {
		want []artifacts.Factor
		n    int
	}{{nil, 2}, {[]artifacts.Factor{model("a")}, 2}, {[]artifacts.Factor{model("a"), gpu("B200")}, 1}, {[]artifacts.Factor{model("b")}, 0}} {
		if found, ids, err := s.Match(row.want); err != nil || len(found) != row.n || len(ids) != row.n {
			t.Errorf("%v: %v %v", row.want, found, err)
		}
	}
}

func TestDiskFullIsSaidAndLeavesNothing(t *testing.T) {
	s := opened(t, 1<<20)
	data, digest := made(t)
	_, err := s.Add(context.Background(), digest, int64(len(data)), "", nil, func(_ context.Context, f *os.File, _ int64) error {
		if _, err := f.Write(data[:10]); err != nil {
			t.Fatal(err)
		}
		return &os.PathError{Op: "write", Path: f.Name(), Err: unix.ENOSPC}
	})
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "medusa cache prune") || !strings.Contains(err.Error(), fmt.Sprint(len(data))) {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Join(s.dir, partialDir)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	add(t, s, data, digest, "").Close()
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "12": 12, "3K": 3072, "20G": 20 << 30, "1T": 1 << 40, "": -1, "K": -1, "-1": -1, "1.5G": -1, "9999999T": -1, "4k": -1} {
		if got, err := ParseSize(text); got != want && (want != -1 || err == nil) {
			t.Errorf("%q: %d %v", text, got, err)
		}
	}
}

// Unpacked bundled directories count against the limit, stay while an engine uses them, and are removed as a whole.
func TestUnpacked(t *testing.T) {
	s := opened(t, 100)
	digest := func(digit string) string { return digestPrefix + strings.Repeat(digit, 64) }
	unpack := func(digit string, size int) *Pin {
		p, err := s.Unpack(digest(digit), int64(size), func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "kernel"), make([]byte, size), 0o644)
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a := unpack("a", 60)
	b := unpack("b", 60) // exceeds the limit, but a is in use
	for _, p := range []*Pin{a, b} {
		if _, err := os.Stat(filepath.Join(p.Path, "kernel")); err != nil {
			t.Fatal(err)
		}
	}
	a.Close()
	half := filepath.Join(s.dir, unpackedDir, "half"+gone)
	if err := os.Mkdir(half, 0o755); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Prune(100); err != nil || f.Artifacts != 1 || f.Partial != 1 || f.Bytes != 60 {
		t.Errorf("%+v %v", f, err)
	}
	for _, path := range []string{a.Path, a.Path + gone, half} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(b.Path, "kernel")); err != nil {
		t.Error(err)
	}
	b.Close()
	unpack("a", 60).Close()
	if _, err := s.Unpack("sha256:../x", 1, nil); err == nil {
		t.Error("an invalid digest is accepted")
	}
	if _, err := s.Unpack(digest("d"), 101, nil); !errors.Is(err, errTooLarge) {
		t.Errorf("more than the limit: %v", err)
	}
	// Unpack makes room before it writes, and only for missing bundled directories.
	total := func() int64 {
		_, total, err := s.victims()
		if err != nil {
			t.Fatal(err)
		}
		return total
	}
	had := total()
	d, err := s.Unpack(digest("d"), 100, func(string) error {
		if total() != 0 {
			t.Errorf("%d bytes are there still, %d before", total(), had)
		}
		return nil
	})
	if had != 60 || err != nil {
		t.Fatal(had, err)
	}
	d.Close()
	unpack("a", 60).Close()
	again, err := s.Unpack(digest("a"), 60, func(string) error { return nil })
	if err != nil || total() != 60 {
		t.Fatal(total(), err)
	}
	again.Close()
	full := errors.New("disk full")
	if _, err := s.Unpack(digest("c"), 1, func(string) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
}
