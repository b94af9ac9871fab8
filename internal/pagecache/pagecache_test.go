package pagecache

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"medusa/test/coldfile"
)

// Files that only the disk has are in the cache afterwards, those behind a link, too.
func TestRead(t *testing.T) {
	const size = step + 64<<10 // whole pages of every size that is in use
	folder := coldfile.Folder(t)
	first := coldfile.Make(t, filepath.Join(folder, "a.safetensors"), size)
	blob := coldfile.Make(t, filepath.Join(folder, "blobs", "b"), size)
	link := filepath.Join(folder, "model", "b.safetensors")
	if err := errors.Join(os.Mkdir(filepath.Dir(link), 0o755), os.Symlink(blob, link)); err != nil {
		t.Fatal(err)
	}
	n, err := Read(context.Background(), []string{first, filepath.Dir(link)})
	if err != nil || n != 2*size {
		t.Fatalf("%d bytes, %v", n, err)
	}
	for _, name := range []string{first, blob} {
		// A disk may have the last page of a step before others.
		for end := time.Now().Add(10 * time.Second); coldfile.Resident(t, name) < size; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d bytes are resident", name, coldfile.Resident(t, name))
			}
		}
	}
}

func TestReadRefuses(t *testing.T) {
	folder := coldfile.Folder(t)
	if _, err := Read(context.Background(), []string{filepath.Join(folder, "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	large := filepath.Join(folder, "large")
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, 1<<43)); err != nil { // no blocks are written
		t.Fatal(err)
	}
	ended, stop := context.WithCancel(context.Background()) // if it is not refused, it is not read either
	stop()
	if _, err := Read(ended, []string{large}); err == nil || !strings.Contains(err.Error(), "do not fit") {
		t.Error(err)
	}
}

func TestReadEnds(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if n, err := Read(ctx, []string{name}); n != 0 || !errors.Is(err, context.Canceled) {
		t.Error(n, err)
	}
}
