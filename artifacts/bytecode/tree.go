package bytecode

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Names of the image format for files that a layer removes.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// packages is a place where an interpreter of a version finds modules.
var packages = regexp.MustCompile(`(?:^|/)lib(?:64)?/python(3\.\d+)/`)

// tree has the Python files of an image. An os.Root keeps them below its folder.
type tree struct {
	root  *os.Root
	files int
	bytes int64
}

// add puts a layer over those before it.
func (t *tree) add(layer io.Reader) error {
	for r := tar.NewReader(layer); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = t.entry(h, r)
		}
		if err != nil {
			return err
		}
	}
}

func (t *tree) entry(h *tar.Header, content io.Reader) error {
	name := path.Clean("/" + h.Name)[1:]
	folder, base := path.Split(name)
	switch {
	case name == "":
		return nil
	case base == opaque:
		return t.empty(path.Clean(folder))
	case strings.HasPrefix(base, whiteout): // mutant: sources that a later layer removes
		return t.root.RemoveAll(path.Join(folder, base[len(whiteout):]))
	case h.Typeflag == tar.TypeDir:
		if info, err := t.root.Lstat(name); err != nil || info.IsDir() {
			return nil
		}
	}
	// Any entry hides the one of this name in a layer below.
	if err := t.root.RemoveAll(name); err != nil {
		return err
	}
	if !strings.HasSuffix(name, ".py") && !strings.HasSuffix(name, ".pyc") {
		return nil
	}
	if err := t.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return t.write(name, h, content)
	case tar.TypeLink: // into a package manager's cache; its target may have another extension
		err := t.root.Link(path.Clean("/" + h.Linkname)[1:], name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return nil
}

func (t *tree) write(name string, h *tar.Header, content io.Reader) error {
	t.files++
	t.bytes += h.Size
	if h.Size > maxFile || t.bytes > maxTotal || t.files > maxFiles {
		return errTooLarge
	}
	f, err := t.root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	// The image's Python compares with the time of the source. New bytecode is known by its own.
	stamp := h.ModTime.Truncate(time.Second)
	if strings.HasSuffix(name, ".pyc") {
		stamp = time.Unix(0, 0)
	}
	// mutant: the time of a source
	return t.root.Chtimes(name, stamp, stamp)
}

// empty removes the contents of a folder, which are of layers below.
func (t *tree) empty(folder string) error {
	entries, err := fs.ReadDir(t.root.FS(), folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, t.root.RemoveAll(path.Join(folder, e.Name())))
	}
	return err
}

// sources lists the files that an interpreter of the version imports.
func (t *tree) sources(version string) ([]string, error) {
	var found, others []string
	err := fs.WalkDir(t.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, ".py") {
			return err
		}
		if of := packages.FindStringSubmatch(name); of != nil && of[1] == version {
			found = append(found, name)
		} else if of != nil && !slices.Contains(others, of[1]) {
			others = append(others, of[1])
		}
		return nil
	})
	if err == nil && len(found) == 0 {
		slices.Sort(others)
		return nil, &VersionError{version, others}
	}
	return found, err
}

// compiled is the name of a source's bytecode.
func compiled(source, version string) string {
	folder, base := path.Split(source)
	tag := "cpython-" + strings.Replace(version, ".", "", 1)
	return path.Join(folder, "__pycache__", strings.TrimSuffix(base, ".py")+"."+tag+".pyc")
}

// pack writes the new bytecode. Folders have no entries, so those of the image keep their owners.
func (t *tree) pack(sources []string, version string, out io.Writer) (packed int, err error) {
	w := tar.NewWriter(out)
	for _, source := range sources {
		name := compiled(source, version)
		info, err := t.root.Stat(name)
		// mutant: bytecode that the image has
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.ModTime().Unix() == 0 {
			continue // it does not compile, or the image has it
		}
		if err == nil {
			err = t.packFile(w, name, info.Size())
		}
		if err != nil {
			return packed, fmt.Errorf("pack %s: %w", name, err)
		}
		packed++
	}
	return packed, w.Close()
}

func (t *tree) packFile(w *tar.Writer, name string, size int64) error {
	f, err := t.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(name), Size: size, Mode: 0o644}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
