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

// File is an open artifact. It reads each section on demand. All methods but Close may be called concurrently.
type File struct {
	name     string
	r        io.ReaderAt
	close    func() error
	sections []entry
	parts    []part // by rank
	blobs    map[[32]byte]*entry
	layers   map[[32]byte]*entry
	groups   map[[32]byte]*entry
}

// part has the sections of one rank.
type part struct{ manifest, graph, buffers *entry }

// Open reads only the section table of a file.
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

// Read reads and checks a file without its bundled directories, which the restore of an engine does not need.
func Read(path string) (*Artifact, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.readAll()
}

// ReadRank reads and checks one rank's part, and no section of other ranks. If the file has fewer ranks, it reads rank 0, whose
// identity has the number of ranks.
func ReadRank(path string, rank int) (*Artifact, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Ranks() == 1 {
		return f.readAll()
	}
	// mutant: each rank its own part
	return f.readRank(f.nearest(rank), newUsage())
}

// Check reads a whole file and reports the first damaged byte.
func Check(path string) (*Artifact, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.check()
}

func open(name string, r io.ReaderAt, size int64) (*File, error) {
	f := &File{name: name, r: r, close: func() error { return nil }, blobs: map[[32]byte]*entry{}, layers: map[[32]byte]*entry{}, groups: map[[32]byte]*entry{}}
	head := make([]byte, min(size, headerSize))
	if err := f.readAt(head, 0); err != nil {
		return nil, fmt.Errorf("read artifact %s: %w", name, err)
	}
	h, err := parseHeader(head)
	if errors.Is(err, ErrVersion) {
		return nil, fmt.Errorf("read artifact %s: %w", name, err)
	}
	if err != nil {
		return nil, &CorruptError{name, "header", 0, err}
	}
	if err := f.readTable(h, size); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) readTable(h header, fileSize int64) error {
	bad := func(format string, args ...any) error {
		return &CorruptError{f.name, "sections", headerSize, fmt.Errorf(format, args...)}
	}
	end := uint64(headerSize + entrySize*h.sections)
	if uint64(fileSize) < end {
		return bad("%w: %d of at least %d bytes", errTruncated, fileSize, end)
	}
	table := make([]byte, entrySize*h.sections)
	if err := f.readAt(table, headerSize); err != nil {
		return fmt.Errorf("read artifact %s: %w", f.name, err)
	}
	if crc32.Checksum(table, castagnoli) != h.tableCRC {
		return bad("%w", errChecksum)
	}
	f.sections = make([]entry, h.sections)
	unpacked := uint64(0)
	for i := range f.sections {
		s := &f.sections[i]
		*s = parseEntry(table[entrySize*i:])
		// Without gaps and overlaps, a checksum covers every byte of the file.
		s.repeats = h.version >= 3 && s.kind.repeatable() && s.offset < end && slices.ContainsFunc(f.sections[:i], func(e entry) bool { e.repeats = false; return e == *s })
		if s.offset != end && !s.repeats || s.storedSize > 1<<62 {
			return bad("%s starts at byte %d instead of %d", s.kind, s.offset, end)
		}
		if !s.repeats {
			end += s.storedSize
		}
		if end > uint64(fileSize) {
			return &CorruptError{f.name, s.kind.String(), int64(s.offset),
				fmt.Errorf("%w: %d of at least %d bytes", errTruncated, fileSize, end)}
		}
		if s.compression == stored && s.size != s.storedSize {
			return bad("%s has %d bytes stored plainly as %d", s.kind, s.size, s.storedSize)
		}
		if s.kind == kindGroup && s.size > maxGroup {
			return bad("group of %d bytes (at most %d)", s.size, maxGroup)
		}
		// mutant: repeated sections are bounded
		if (s.compression != stored || s.repeats) && s.kind != kindGroup {
			if unpacked += min(s.size, maxCompressed+1); unpacked > maxCompressed {
				return bad("more than %d bytes are compressed or repeated", maxCompressed)
			}
		}
		if s.kind == kindManifest && s.size > maxManifest {
			return bad("manifest of %d bytes (at most %d)", s.size, maxManifest)
		}
		if err := f.assign(s, h.version); err != nil {
			return bad("%w", err)
		}
	}
	if end != uint64(fileSize) {
		return bad("%d bytes behind the last section", uint64(fileSize)-end)
	}
	for _, p := range f.parts {
		if p.manifest == nil || p.graph == nil || p.buffers == nil {
			return bad("manifest, graph or buffers is missing")
		}
	}
	if len(f.parts) == 0 {
		return bad("manifest, graph or buffers is missing")
	}
	return nil
}

// assign stores the section under its kind, if the kind is known.
func (f *File) assign(s *entry, version int) error {
	switch s.kind {
	case kindManifest, kindGraph, kindBuffers:
		if err := f.assignPart(s, version); err != nil {
			return err
		}
	case kindBlob, kindLayer, kindGroup:
		table := map[kind]map[[32]byte]*entry{kindBlob: f.blobs, kindLayer: f.layers, kindGroup: f.groups}[s.kind]
		if table[s.sha256] != nil {
			return fmt.Errorf("%s %x occurs twice", s.kind, s.sha256)
		}
		table[s.sha256] = s
	default:
		return nil
	}
	if s.kind == kindLayer && s.compression != stored {
		return fmt.Errorf("bundled directory %x is compressed twice", s.sha256)
	}
	if s.compression != stored && s.compression != zstded {
		return fmt.Errorf("%s has unknown compression %d", s.kind, s.compression)
	}
	return nil
}

// assignPart gives the section to the first rank that lacks one of its kind.
func (f *File) assignPart(s *entry, version int) error {
	slot := func(p *part) **entry {
		return map[kind]**entry{kindManifest: &p.manifest, kindGraph: &p.graph, kindBuffers: &p.buffers}[s.kind]
	}
	rank := slices.IndexFunc(f.parts, func(p part) bool { return *slot(&p) == nil })
	if rank < 0 {
		rank = len(f.parts)
		switch {
		case rank > 0 && version == 1:
			return fmt.Errorf("there are two %s sections", s.kind)
		case rank == maxRanks:
			return fmt.Errorf("more than %d ranks", maxRanks)
		}
		f.parts = append(f.parts, part{})
	}
	*slot(&f.parts[rank]) = s
	return nil
}

// Ranks returns the number of worker processes that the artifact is for.
func (f *File) Ranks() int { return len(f.parts) }

// Section is one line of a file's section table; sizes and the offset are in bytes.
type Section struct {
	Kind                     string // "manifest", "graph", "buffers", "blob", "layer" (a bundled directory) or "group"; a kind of a newer medusa has its number
	Offset, StoredSize, Size uint64
}

// Sections lists the file's section table.
func (f *File) Sections() []Section {
	out := make([]Section, len(f.sections))
	for i, s := range f.sections {
		out[i] = Section{s.kind.String(), s.offset, s.storedSize, s.size}
	}
	return out
}

// Close closes the file. Values that were read from it stay valid.
func (f *File) Close() error { return f.close() }

// ReadManifest reads only the manifest of the file at path.
func ReadManifest(path string) (*Manifest, error) { return ReadRankManifest(path, 0) }

// ReadRankManifest reads the manifest of the rank that ReadRank would read.
func ReadRankManifest(path string, rank int) (*Manifest, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.rankManifest(f.nearest(rank))
}

// nearest returns the rank itself, or 0 if the file has no such rank.
func (f *File) nearest(rank int) int {
	if rank >= f.Ranks() {
		return 0
	}
	return rank
}

// Manifest reads the manifest of rank 0, which identifies the artifact.
func (f *File) Manifest() (*Manifest, error) { return f.rankManifest(0) }

// rankManifest reads the manifest of a rank below Ranks.
func (f *File) rankManifest(rank int) (*Manifest, error) {
	section := f.parts[rank].manifest
	data, err := f.read(section)
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(data)
	if err != nil {
		return nil, f.corrupt(section, err)
	}
	if rank > 0 && len(m.Directories) > 0 {
		return nil, f.corrupt(section, fmt.Errorf("rank %d names bundled directories", rank))
	}
	return m, nil
}

// usage collects the digests that the ranks read so far refer to.
type usage struct{ blobs, groups map[[32]byte]bool }

func newUsage() *usage { return &usage{map[[32]byte]bool{}, map[[32]byte]bool{}} }

// readGraph reads a rank's graphs and the saved contents that they need. Row groups stay compressed.
func (f *File) readGraph(p part, used *usage) (*graphir.Spec, error) {
	data, err := f.read(p.graph)
	if err != nil {
		return nil, err
	}
	buffers, err := f.read(p.buffers)
	if err != nil {
		return nil, err
	}
	var blobErr error
	groups := rowGroups{}
	spec, err := graphir.DecodeDetached(data, buffers, graphir.Source{Group: groups.read, Blob: func(sum [32]byte, _ uint64) ([]byte, error) {
		used.blobs[sum] = true
		s := f.blobs[sum]
		if s == nil {
			return nil, fmt.Errorf("blob %x is missing", sum)
		}
		data, err := f.read(s)
		blobErr = err
		return data, err
	}})
	switch {
	case blobErr != nil:
		return nil, blobErr
	case errors.Is(err, graphir.ErrVersion):
		return nil, fmt.Errorf("read artifact %s: %w: %w (%s)", f.name, ErrVersion, err, remake)
	case err != nil:
		return nil, f.corrupt(p.holding(err), err)
	}
	for _, sum := range spec.Rows.Digests() {
		used.groups[sum] = true
		if err := groups.load(f, sum); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

// holding returns the section that contains the table named by a decoding error.
func (p part) holding(err error) *entry {
	var format *graphir.FormatError
	if errors.As(err, &format) && slices.Contains([]string{"buffers", "blobs", "contents", "tensors"}, format.Section) {
		return p.buffers
	}
	return p.graph
}

func (f *File) readAll() (*Artifact, error) {
	used := newUsage()
	a, err := f.readRank(0, used)
	if err != nil {
		return nil, err
	}
	for rank := 1; rank < len(f.parts); rank++ {
		peer, err := f.readRank(rank, used)
		if err != nil {
			return nil, err
		}
		a.Peers = append(a.Peers, peer)
	}
	if len(used.blobs) != len(f.blobs) || len(used.groups) != len(f.groups) {
		return nil, &CorruptError{f.name, "sections", headerSize, fmt.Errorf("buffers refer to %d of %d blobs, graphs to %d of %d groups",
			len(used.blobs), len(f.blobs), len(used.groups), len(f.groups))}
	}
	return a, f.checkDirectories(a.Directories)
}

// readRank reads one rank's part.
func (f *File) readRank(rank int, used *usage) (*Artifact, error) {
	m, err := f.rankManifest(rank)
	if err != nil {
		return nil, err
	}
	spec, err := f.readGraph(f.parts[rank], used)
	if err != nil {
		return nil, err
	}
	if err := checkCache(&m.KV, spec); err != nil {
		return nil, f.corrupt(f.parts[rank].manifest, err)
	}
	return &Artifact{Identity: m.Identity, KV: m.KV, Spec: spec, Stages: m.Stages, Verification: m.Verification, Created: m.Created,
		Directories: m.Directories}, nil
}

// checkDirectories demands that the manifest names exactly the bundled directories in the file.
func (f *File) checkDirectories(layers []Directory) error {
	named := map[[32]byte]bool{}
	for _, l := range layers {
		if s := f.layers[l.SHA256]; s == nil || s.size != l.PackedSize {
			return f.corrupt(f.parts[0].manifest, fmt.Errorf("bundled directory %s of %d bytes is missing", l.Name, l.PackedSize))
		}
		named[l.SHA256] = true
	}
	if len(named) != len(f.layers) {
		return f.corrupt(f.parts[0].manifest, fmt.Errorf("the manifest names %d of %d bundled directories", len(named), len(f.layers)))
	}
	return nil
}

// readAt fills p. A ReaderAt may return io.EOF together with the file's last bytes, which is not an error.
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

// readStored returns a section's bytes as stored in the file.
func (f *File) readStored(s *entry) ([]byte, error) {
	data := make([]byte, s.storedSize)
	if err := f.readAt(data, int64(s.offset)); err == io.EOF {
		return nil, f.corrupt(s, errTruncated)
	} else if err != nil {
		return nil, fmt.Errorf("read artifact %s: %w", f.name, err)
	}
	// mutant: checksum of a section
	if crc32.Checksum(data, castagnoli) != s.crc {
		return nil, f.corrupt(s, errChecksum)
	}
	return data, nil
}

// read returns a section's decompressed content.
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
