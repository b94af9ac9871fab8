package bundled

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"medusa/artifacts"
)

// Pack writes a directory's archive to out and returns it as a bundled directory whose Content is out. If a file changes meanwhile, that is
// an error. Pack calls leftOut for each symbolic link, because links are not packed.
func Pack(name, dir string, out *os.File, leftOut func(path string)) (artifacts.Directory, error) {
	layer, err := pack(dir, out, leftOut)
	if err != nil {
		return artifacts.Directory{}, fmt.Errorf("pack directory %s: %w", name, err)
	}
	layer.Name = name
	return layer, nil
}

func pack(dir string, out *os.File, leftOut func(path string)) (artifacts.Directory, error) {
	l := artifacts.Directory{Content: out}
	var err error
	if l.Path, err = filepath.Abs(dir); err != nil {
		return l, err
	}
	root, err := os.OpenRoot(l.Path)
	if err != nil {
		return l, err
	}
	defer root.Close()
	digest := sha256.New()
	packed := &counter{w: io.MultiWriter(out, digest)}
	// With one thread and a fixed window, the output depends on the input alone.
	z, err := zstd.NewWriter(packed, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(maxWindow))
	if err != nil {
		return l, err
	}
	t := tar.NewWriter(z)
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if strings.HasPrefix(entry.Name(), own) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		// mutant: links of an archive
		if entry.Type() == fs.ModeSymlink {
			leftOut(filepath.Join(l.Path, path))
			return nil
		}
		size, err := add(t, root, path, entry)
		l.Size += size
		l.Files++
		if err == nil && (l.Size > maxSize || l.Files > maxFiles) {
			err = fmt.Errorf("more than %d bytes or %d entries", int64(maxSize), maxFiles)
		}
		return err
	})
	if err = errors.Join(err, t.Close(), z.Close()); err != nil {
		return l, err
	}
	l.PackedSize, l.SHA256 = packed.n, [32]byte(digest.Sum(nil))
	return l, nil
}

// add appends one entry and returns the size of its content in bytes.
func add(t *tar.Writer, root *os.Root, path string, entry fs.DirEntry) (uint64, error) {
	if err := checkName(path); err != nil {
		return 0, err
	}
	info, err := entry.Info()
	if err != nil {
		return 0, err
	}
	h := &tar.Header{Name: path, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX, Typeflag: tar.TypeReg}
	switch {
	case info.IsDir():
		h.Typeflag, h.Mode, h.Name = tar.TypeDir, 0o755, path+"/"
		return 0, t.WriteHeader(h)
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("%s is neither a file nor a directory (%s)", path, info.Mode().Type())
	case info.Mode()&0o111 != 0:
		h.Mode = 0o755
	}
	f, err := root.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h.Size = info.Size()
	if err := t.WriteHeader(h); err != nil {
		return 0, err
	}
	n, err := io.Copy(t, f)
	if errors.Is(err, tar.ErrWriteTooLong) || err == nil && n != h.Size {
		return 0, fmt.Errorf("%s changed while it was read (is the engine still running?)", path)
	}
	return uint64(n), err
}

type counter struct {
	w io.Writer
	n uint64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += uint64(n)
	return n, err
}
