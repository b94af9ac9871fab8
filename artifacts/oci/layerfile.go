package oci

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"medusa/artifacts/trust"
)

// layerFile is a tar archive of an artifact and its proofs. It can be read at any offset and is never stored as a whole.
type layerFile struct {
	descriptor ocispec.Descriptor
	file       *os.File
	size       int64
	head, tail []byte
}

// openLayer lays out a layer with the artifact and its proofs. Directories have no entries, so those of the base keep their
// owners.
func openLayer(path, mediaType string) (*layerFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	proofs, err := os.ReadFile(path + trust.Suffix)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var l *layerFile
	if err == nil {
		l, err = layOut(f, proofs)
	}
	if err == nil {
		sum := digest.SHA256.Digester()
		if l.descriptor.Size, err = io.Copy(sum.Hash(), io.NewSectionReader(l, 0, l.length())); err == nil {
			l.descriptor.MediaType, l.descriptor.Digest = mediaType, sum.Digest()
			return l, nil
		}
	}
	_ = f.Close()
	return nil, err
}

// layOut puts the proofs, if any, before the artifact.
func layOut(f *os.File, proofs []byte) (*layerFile, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var head bytes.Buffer
	w, name := tar.NewWriter(&head), strings.TrimPrefix(bakedPath, "/")
	if len(proofs) > 0 {
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name + trust.Suffix, Size: int64(len(proofs)), Mode: 0o644})
		if err == nil {
			_, err = w.Write(proofs)
		}
	}
	if err == nil {
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644})
	}
	if err != nil {
		return nil, err
	}
	const block = 512
	padding := (block - info.Size()%block) % block
	return &layerFile{file: f, size: info.Size(), head: head.Bytes(), tail: make([]byte, padding+2*block)}, nil
}

func (l *layerFile) length() int64 { return int64(len(l.head)) + l.size + int64(len(l.tail)) }

// ReadAt reads from the archive.
func (l *layerFile) ReadAt(p []byte, at int64) (int, error) {
	parts := []*io.SectionReader{
		io.NewSectionReader(bytes.NewReader(l.head), 0, int64(len(l.head))),
		io.NewSectionReader(l.file, 0, l.size),
		io.NewSectionReader(bytes.NewReader(l.tail), 0, int64(len(l.tail))),
	}
	n := 0
	for _, part := range parts {
		if at < part.Size() && n < len(p) {
			k, err := part.ReadAt(p[n:], at)
			n += k
			if err != nil && !errors.Is(err, io.EOF) {
				return n, err
			}
			at = 0
			continue
		}
		at = max(0, at-part.Size())
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
