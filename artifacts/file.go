package artifacts

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"medusa/graphir"
)

// File is an open artifact. Its sections are read when they are asked for. Its methods may be called concurrently, but
// for Close.
type File struct {
	name     string
	r        io.ReaderAt
	close    func() error
	sections []entry
	manifest *entry
	graph    *entry
	buffers  *entry
	blobs    map[[32]byte]*entry
	layers   map[[32]byte]*entry
}

// Open reads a file's section table, and nothing else of it.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	file, err := open(path, f, info.Size())
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	file.close = f.Close
	return file, nil
}

// Read reads and checks a file but for its layers, which a starting engine has no use for.
func Read(path string) (*Artifact, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.readAll()
}

// Check reads a whole file and reports the first byte of it that is not as written.
func Check(path string) (*Artifact, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.check()
}

func open(name string, r io.ReaderAt, size int64) (*File, error) {
	f := &File{name: name, r: r, close: func() error { return nil }, blobs: map[[32]byte]*entry{}, layers: map[[32]byte]*entry{}}
	head := make([]byte, min(size, headerSize))
	if err := f.readAt(head, 0); err != nil {
		return nil, fmt.Errorf("read artifact %s: %w", name, err)
	}
	count, tableCRC, err := parseHeader(head)
	if errors.Is(err, ErrVersion) {
		return nil, fmt.Errorf("read artifact %s: %w", name, err)
	}
	if err != nil {
		return nil, &CorruptError{name, "header", 0, err}
	}
	if err := f.readTable(count, tableCRC, size); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) readTable(count int, crc uint32, fileSize int64) error {
	bad := func(format string, args ...any) error {
		return &CorruptError{f.name, "sections", headerSize, fmt.Errorf(format, args...)}
	}
	end := uint64(headerSize + entrySize*count)
	if uint64(fileSize) < end {
		return bad("%w: %d of at least %d bytes", errTruncated, fileSize, end)
	}
	table := make([]byte, entrySize*count)
	if err := f.readAt(table, headerSize); err != nil {
		return fmt.Errorf("read artifact %s: %w", f.name, err)
	}
	if crc32.Checksum(table, castagnoli) != crc {
		return bad("%w", errChecksum)
	}
	f.sections = make([]entry, count)
	unpacked := uint64(0)
	for i := range f.sections {
		s := &f.sections[i]
		*s = parseEntry(table[entrySize*i:])
		// Without gaps and overlaps every byte of the file is under a checksum.
		if s.offset != end || s.storedSize > 1<<62 {
			return bad("%s starts at byte %d instead of %d", s.kind, s.offset, end)
		}
		end += s.storedSize
		if end > uint64(fileSize) {
			return &CorruptError{f.name, s.kind.String(), int64(s.offset),
				fmt.Errorf("%w: %d of at least %d bytes", errTruncated, fileSize, end)}
		}
		if s.compression == stored && s.size != s.storedSize {
			return bad("%s has %d bytes stored plainly as %d", s.kind, s.size, s.storedSize)
		}
		if s.compression != stored {
			if unpacked += min(s.size, maxCompressed+1); unpacked > maxCompressed {
				return bad("more than %d bytes are compressed", maxCompressed)
			}
		}
		if s.kind == kindManifest && s.size > maxManifest {
			return bad("manifest of %d bytes (at most %d)", s.size, maxManifest)
		}
		if err := f.assign(s); err != nil {
			return bad("%w", err)
		}
	}
	if end != uint64(fileSize) {
		return bad("%d bytes behind the last section", uint64(fileSize)-end)
	}
	if f.manifest == nil || f.graph == nil || f.buffers == nil {
		return bad("manifest, graph or buffers is missing")
	}
	return nil
}

// assign notes where the sections of known kinds are.
func (f *File) assign(s *entry) error {
	switch s.kind {
	case kindManifest, kindGraph, kindBuffers:
		slot := map[kind]**entry{kindManifest: &f.manifest, kindGraph: &f.graph, kindBuffers: &f.buffers}[s.kind]
		if *slot != nil {
			return fmt.Errorf("there are two of %s", s.kind)
		}
		*slot = s
	case kindBlob, kindLayer:
		table := f.blobs
		if s.kind == kindLayer {
			table = f.layers
		}
		if table[s.sha256] != nil {
			return fmt.Errorf("%s %x occurs twice", s.kind, s.sha256)
		}
		table[s.sha256] = s
	default:
		return nil
	}
	if s.kind == kindLayer && s.compression != stored {
		return fmt.Errorf("layer %x is compressed twice", s.sha256)
	}
	if s.compression != stored && s.compression != zstded {
		return fmt.Errorf("%s has unknown compression %d", s.kind, s.compression)
	}
	return nil
}

// Section is one line of a file's section table; sizes and the offset are in bytes.
type Section struct {
	Kind                     string // "manifest", "graph", "buffers", "blob", "layer", or what a newer medusa added, by number
	Offset, StoredSize, Size uint64
}

// Sections lists what the file consists of.
func (f *File) Sections() []Section {
	out := make([]Section, len(f.sections))
	for i, s := range f.sections {
		out[i] = Section{s.kind.String(), s.offset, s.storedSize, s.size}
	}
	return out
}

// Close closes the file; what was read from it stays valid.
func (f *File) Close() error { return f.close() }

// ReadManifest reads the manifest of the file at path and nothing else of it.
func ReadManifest(path string) (*Manifest, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Manifest()
}

// Manifest reads the manifest.
func (f *File) Manifest() (*Manifest, error) {
	data, err := f.read(f.manifest)
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(data)
	if err != nil {
		return nil, f.corrupt(f.manifest, err)
	}
	return m, nil
}

// Graph reads the graphs and the saved contents that they need.
func (f *File) Graph() (*graphir.Spec, error) {
	spec, _, err := f.readGraph()
	return spec, err
}

// readGraph also returns how many blobs the graphs refer to.
func (f *File) readGraph() (spec *graphir.Spec, blobs int, err error) {
	data, err := f.read(f.graph)
	if err != nil {
		return nil, 0, err
	}
	buffers, err := f.read(f.buffers)
	if err != nil {
		return nil, 0, err
	}
	var blobErr error
	spec, err = graphir.DecodeDetached(data, buffers, func(sum [32]byte, _ uint64) ([]byte, error) {
		blobs++
		s := f.blobs[sum]
		if s == nil {
			return nil, fmt.Errorf("blob %x is missing", sum)
		}
		data, err := f.read(s)
		blobErr = err
		return data, err
	})
	switch {
	case blobErr != nil:
		return nil, 0, blobErr
	case errors.Is(err, graphir.ErrVersion):
		return nil, 0, fmt.Errorf("read artifact %s: %w: %w", f.name, ErrVersion, err)
	case err != nil:
		return nil, 0, f.corrupt(f.holding(err), err)
	}
	return spec, blobs, nil
}

// holding returns the section that has the table which a decoding error names.
func (f *File) holding(err error) *entry {
	var format *graphir.FormatError
	if errors.As(err, &format) && slices.Contains([]string{"buffers", "blobs", "contents", "tensors"}, format.Section) {
		return f.buffers
	}
	return f.graph
}

func (f *File) readAll() (*Artifact, error) {
	m, err := f.Manifest()
	if err != nil {
		return nil, err
	}
	spec, blobs, err := f.readGraph()
	if err != nil {
		return nil, err
	}
	if blobs != len(f.blobs) {
		return nil, &CorruptError{f.name, "sections", headerSize, fmt.Errorf("buffers refer to %d of %d blobs", blobs, len(f.blobs))}
	}
	named := map[[32]byte]bool{}
	for _, l := range m.Layers {
		if s := f.layers[l.SHA256]; s == nil || s.size != l.PackedSize {
			return nil, f.corrupt(f.manifest, fmt.Errorf("layer %s of %d bytes is missing", l.Name, l.PackedSize))
		}
		named[l.SHA256] = true
	}
	if len(named) != len(f.layers) {
		return nil, f.corrupt(f.manifest, fmt.Errorf("it names %d of %d layers", len(named), len(f.layers)))
	}
	return &Artifact{m.Identity, m.KV, spec, m.Stages, m.Verification, m.Created, m.Layers}, nil
}

// readAt fills p. A ReaderAt may say io.EOF with the file's last bytes, which is no error.
func (f *File) readAt(p []byte, offset int64) error {
	n, err := f.r.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	return err
}

func (f *File) corrupt(s *entry, err error) error {
	return &CorruptError{f.name, s.kind.String(), int64(s.offset), err}
}

// readStored returns a section's bytes as they lie in the file.
func (f *File) readStored(s *entry) ([]byte, error) {
	data := make([]byte, s.storedSize)
	if err := f.readAt(data, int64(s.offset)); err == io.EOF {
		return nil, f.corrupt(s, errTruncated)
	} else if err != nil {
		return nil, fmt.Errorf("read artifact %s: %w", f.name, err)
	}
	if crc32.Checksum(data, castagnoli) != s.crc {
		return nil, f.corrupt(s, errChecksum)
	}
	return data, nil
}

// read returns a section's content.
func (f *File) read(s *entry) ([]byte, error) {
	data, err := f.readStored(s)
	if err != nil {
		return nil, err
	}
	if s.compression == zstded {
		dec, err := zstdDecoder()
		if err != nil {
			return nil, err
		}
		if data, err = dec.DecodeAll(data, make([]byte, 0, s.size)); err != nil {
			return nil, f.corrupt(s, err)
		}
	}
	if uint64(len(data)) != s.size || sha256.Sum256(data) != s.sha256 {
		return nil, f.corrupt(s, errDigest)
	}
	return data, nil
}
