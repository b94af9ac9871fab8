package bundled

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"medusa/artifacts"
)

// checkName accepts paths that stay below their directory, on any system.
func checkName(name string) error {
	switch {
	case name == "" || name == "." || name != path.Clean(name) || !filepath.IsLocal(name):
		return fmt.Errorf("the path %q leads out of its directory", name)
	case len(name) > maxName || strings.Count(name, "/") >= maxDepth:
		return fmt.Errorf("the path %.40q... has more than %d bytes or %d elements", name, maxName, maxDepth)
	case slices.ContainsFunc(strings.Split(name, "/"), func(element string) bool { return len(element) > 255 }):
		return fmt.Errorf("the path %.40q... has an element of more than 255 bytes", name)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }):
		return fmt.Errorf("the path %q has characters that are not portable", name)
	}
	return nil
}

// Room returns the most bytes of disk that a bundled directory takes when unpacked: those of its files, and some for each entry.
func Room(l *artifacts.Directory) (int64, error) {
	if l.Size > maxSize || l.Files > maxFiles {
		return 0, fmt.Errorf("%w: %d bytes in %d entries (at most %d in %d)", ErrArchive, l.Size, l.Files, int64(maxSize), maxFiles)
	}
	return int64(l.Size + l.Files*entryRoom), nil
}

// unpack writes an archive's entries below root, which must be empty and not shared.
func unpack(r io.Reader, l *artifacts.Directory, root *os.Root) error {
	if _, err := Room(l); err != nil {
		return err
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer z.Close()
	// Headers, padding and pax records of each entry are bounded too.
	raw := io.LimitReader(z, int64(l.Size+(l.Files+2)*8192))
	t := tar.NewReader(raw)
	size, files := uint64(0), uint64(0)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrArchive, err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		// mutant: paths of an archive stay inside
		if err := checkName(name); err != nil {
			return fmt.Errorf("%w: %w", ErrArchive, err)
		}
		if files++; files > l.Files || h.Size < 0 || uint64(h.Size) > l.Size-size {
			return fmt.Errorf("%w: more than the declared %d bytes in %d entries", ErrArchive, l.Size, l.Files)
		}
		size += uint64(h.Size)
		if err := extract(t, h, name, root); err != nil {
			return err
		}
	}
	// mutant: declared size of an archive
	if size != l.Size || files != l.Files {
		return fmt.Errorf("%w: %d bytes in %d entries, declared %d in %d", ErrArchive, size, files, l.Size, l.Files)
	}
	// Read past the archive's end as well, because the checksum is at the end of the compressed frame.
	if n, err := io.Copy(io.Discard, raw); err != nil {
		return fmt.Errorf("%w: %w", ErrArchive, err)
	} else if n > 1<<20 {
		return fmt.Errorf("%w: %d bytes after its end", ErrArchive, n)
	}
	return nil
}

func extract(t *tar.Reader, h *tar.Header, name string, root *os.Root) error {
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.Mkdir(name, 0o755); err != nil {
			return archiveError(err)
		}
		return nil
	case tar.TypeReg:
	default:
		return fmt.Errorf("%w: %s is neither a file nor a directory (type %q)", ErrArchive, name, h.Typeflag)
	}
	mode := os.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return archiveError(err)
	}
	n, err := io.Copy(f, t)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrHeader) {
		err = fmt.Errorf("%w: %w", ErrArchive, err)
	}
	if err == nil && n != h.Size {
		err = fmt.Errorf("%w: %s has %d of %d bytes", ErrArchive, name, n, h.Size)
	}
	return errors.Join(err, f.Close())
}

// archiveError blames the archive for an entry in the way: the directory was empty, so the same archive made that entry.
func archiveError(err error) error {
	if errors.Is(err, os.ErrExist) || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("%w: %w", ErrArchive, err)
	}
	return err
}
