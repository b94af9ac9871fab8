package bundled

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"medusa/artifacts"
	"medusa/internal/private"
	"medusa/internal/scratch"
)

// Placed is the result of unpacking a bundled directory. Its numbers count entries.
type Placed struct {
	Name, Path string
	Already    bool // an earlier start had unpacked it
	New, Equal uint64
	Different  uint64 // files that existed with other content, and stayed
}

// PlaceAt unpacks one bundled directory.
func PlaceAt(f *artifacts.File, l *artifacts.Directory, dest string) (Placed, error) {
	placed, err := placeOne(f, l, dest)
	if err != nil {
		return Placed{}, fmt.Errorf("place directory %s at %s: %w", l.Name, dest, err)
	}
	placed.Name, placed.Path = l.Name, dest
	return placed, nil
}

func placeOne(f *artifacts.File, l *artifacts.Directory, dest string) (Placed, error) {
	if Already(l, dest) {
		return Placed{Already: true}, nil
	}
	content, err := f.Directory(*l)
	if err != nil {
		return Placed{}, err
	}
	return place(content, l, dest, marker(l))
}

// Already says whether an earlier start unpacked the directory there. It ignores a note that other users could have written.
func Already(l *artifacts.Directory, dest string) bool {
	// mutant: notes of others
	return private.Check(filepath.Join(dest, marker(l))) == nil
}

func marker(l *artifacts.Directory) string { return own + "layer-" + hex.EncodeToString(l.SHA256[:8]) }

func place(content io.Reader, l *artifacts.Directory, dest, marker string) (Placed, error) {
	merge, parent := true, dest
	if _, err := os.Stat(dest); errors.Is(err, fs.ErrNotExist) {
		merge, parent = false, filepath.Dir(dest)
		if err := os.MkdirAll(parent, 0o755); err != nil {
			return Placed{}, err
		}
	} else if err != nil {
		return Placed{}, err
	}
	staging, done, err := stage(parent, filepath.Base(dest))
	if err != nil {
		return Placed{}, err
	}
	defer done()
	root, err := os.OpenRoot(staging)
	if err != nil {
		return Placed{}, err
	}
	defer root.Close()
	if err := unpack(content, l, root); err != nil {
		return Placed{}, err
	}
	if !merge {
		if err := root.WriteFile(marker, nil, 0o644); err != nil {
			return Placed{}, err
		}
		err := os.Rename(staging, dest)
		if err == nil {
			return Placed{New: l.Files}, nil
		}
		// Another start may have made the directory meanwhile.
		if _, gone := os.Stat(dest); gone != nil {
			return Placed{}, err
		}
		if err := root.Remove(marker); err != nil {
			return Placed{}, err
		}
		inside := filepath.Join(dest, filepath.Base(staging))
		if err := os.Rename(staging, inside); err != nil {
			return Placed{}, err
		}
		defer os.RemoveAll(inside)
		staging = inside
	}
	return mergeInto(dest, filepath.Base(staging), marker)
}

// stage makes a directory for unpacking, and removes the directories of interrupted starts.
func stage(parent, base string) (dir string, done func(), err error) {
	f, err := scratch.Make(parent, own+base+"-")
	if err != nil {
		return "", nil, err
	}
	done = func() { _ = f.Close() }
	if err := os.Chmod(f.Path, 0o755); err != nil {
		done()
		return "", nil, err
	}
	return f.Path, done, nil
}

// mergeInto links the contents of staging, a directory inside dest, into dest. os.Root keeps symbolic links in dest from leading
// out of it.
func mergeInto(dest, staging, marker string) (Placed, error) {
	var p Placed
	root, err := os.OpenRoot(dest)
	if err != nil {
		return p, err
	}
	defer root.Close()
	tree, err := root.OpenRoot(staging)
	if err != nil {
		return p, err
	}
	defer tree.Close()
	err = fs.WalkDir(tree.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if entry.IsDir() {
			err = root.Mkdir(path, 0o755)
			if errors.Is(err, fs.ErrExist) {
				p.Equal++
				return nil
			}
			p.New++
			return err
		}
		err = root.Link(filepath.Join(staging, path), path)
		if !errors.Is(err, fs.ErrExist) {
			p.New++
			return err
		}
		same, err := equal(tree, root, path)
		if same {
			p.Equal++
		} else {
			p.Different++
		}
		return err
	})
	if err != nil {
		return p, err
	}
	return p, root.WriteFile(marker, nil, 0o644)
}

// equal says whether both trees have a regular file with the same content at path.
func equal(a, b *os.Root, path string) (bool, error) {
	info, err := b.Lstat(path)
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, nil
	}
	fa, err := a.Open(path)
	if err != nil {
		return false, err
	}
	defer fa.Close()
	fb, err := b.Open(path)
	if err != nil {
		return false, err
	}
	defer fb.Close()
	ba, bb := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		na, ea := io.ReadFull(fa, ba)
		nb, eb := io.ReadFull(fb, bb)
		if !bytes.Equal(ba[:na], bb[:nb]) {
			return false, nil
		}
		if ea != nil || eb != nil {
			end := func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
			if end(ea) && end(eb) {
				return true, nil
			}
			return false, errors.Join(ea, eb)
		}
	}
}
