package artifacts

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"
)

func (f *File) check() (*Artifact, error) {
	a, err := f.readAll()
	if err != nil {
		return nil, err
	}
	for rank := range a.Ranks() {
		// Decoding did not read the row groups, so validate them here.
		if spec := a.Rank(rank).Spec; spec.Rows != nil {
			if err := spec.Validate(); err != nil {
				return nil, f.corrupt(f.parts[rank].graph, err)
			}
		}
	}
	for i := range f.sections {
		s := &f.sections[i]
		if s.kind >= kindManifest && s.kind <= kindBlob {
			continue // already read above
		}
		if err := f.sum(s); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// sum checks a section that may be larger than memory, without holding it.
func (f *File) sum(s *entry) error {
	crc, digest := crc32.New(castagnoli), sha256.New()
	n, err := io.Copy(io.MultiWriter(crc, digest), io.NewSectionReader(f.r, int64(s.offset), int64(s.storedSize)))
	switch {
	case err != nil:
		return fmt.Errorf("read artifact %s: %w", f.name, err)
	case uint64(n) != s.storedSize:
		return f.corrupt(s, errTruncated)
	case crc.Sum32() != s.crc:
		return f.corrupt(s, errChecksum)
	case s.kind == kindLayer && [32]byte(digest.Sum(nil)) != s.sha256:
		return f.corrupt(s, errDigest)
	}
	return nil
}

// Directory checks the packed bytes of one of the manifest's bundled directories and returns them.
func (f *File) Directory(l Directory) (*io.SectionReader, error) {
	s := f.layers[l.SHA256]
	if s == nil {
		return nil, f.corrupt(f.parts[0].manifest, fmt.Errorf("bundled directory %s is missing", l.Name))
	}
	if err := f.sum(s); err != nil {
		return nil, err
	}
	return io.NewSectionReader(f.r, int64(s.offset), int64(s.size)), nil
}
