package artifacts

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"

	"medusa/graphir"
	"medusa/internal/atomicfile"
	"medusa/internal/spill"
)

// Write writes the artifact file at path. The file appears complete and synced, or an earlier file stays. Equal artifacts give
// equal bytes.
func Write(path string, a *Artifact) error {
	s := &spill.File{Dir: filepath.Dir(path)}
	parts, err := encode(a, s)
	if err == nil {
		// 0644, because workers of other users read artifacts.
		err = atomicfile.Write(path, 0o644, io.MultiReader(parts...))
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("write artifact %s: %w", path, err)
	}
	return nil
}

// encode returns the bytes of an artifact file as consecutive pieces, some of them in s.
func encode(a *Artifact, s *spill.File) ([]io.Reader, error) {
	if a.Ranks() > maxRanks {
		return nil, fmt.Errorf("%d ranks (at most %d)", a.Ranks(), maxRanks)
	}
	p := &packer{version: 1, spill: s, written: map[[32]byte]bool{}}
	if a.Ranks() > 1 {
		p.version = 2
	}
	var blobs []graphir.Blob
	for rank := range a.Ranks() {
		if rank > 0 && (len(a.Rank(rank).Directories) > 0 || len(a.Rank(rank).Peers) > 0) {
			return nil, fmt.Errorf("rank %d has bundled directories or peers of its own", rank)
		}
		own, err := p.part(a.Rank(rank))
		if err != nil {
			return nil, err
		}
		blobs = append(blobs, own...)
	}
	shared := make(map[[32]byte]bool, len(blobs))
	for i := range blobs {
		if !shared[blobs[i].SHA256] {
			p.add(kindBlob, blobs[i].Data, blobs[i].SHA256)
		}
		shared[blobs[i].SHA256] = true
	}
	for i := range a.Directories {
		if err := p.layer(&a.Directories[i]); err != nil {
			return nil, err
		}
	}
	return p.pack()
}

// packer lays out sections one after another.
type packer struct {
	version int
	entries []entry
	bodies  []io.Reader
	err     error
	used    uint64 // counts towards maxCompressed
	spill   *spill.File
	written map[[32]byte]bool // row groups
}

// part adds one rank's own sections and returns the blobs that they refer to.
func (p *packer) part(a *Artifact) ([]graphir.Blob, error) {
	if a.Spec == nil {
		return nil, errors.New("the artifact has no graph spec")
	}
	manifest, err := (&Manifest{a.Identity, a.KV, a.Stages, a.Verification, a.Created, a.Directories, a.Spec.Region}).encode()
	if err != nil {
		return nil, err
	}
	if len(manifest) > maxManifest {
		return nil, fmt.Errorf("manifest takes %d bytes (at most %d)", len(manifest), maxManifest)
	}
	raw := &spill.File{Dir: p.spill.Dir}
	defer raw.Close()
	sections, err := graphir.EncodeDetached(a.Spec, raw)
	if err != nil {
		return nil, err
	}
	if err := checkCache(&a.KV, a.Spec); err != nil {
		return nil, err
	}
	p.add(kindManifest, manifest, sha256.Sum256(manifest))
	p.add(kindGraph, sections.Graph, sha256.Sum256(sections.Graph))
	p.add(kindBuffers, sections.Buffers, sha256.Sum256(sections.Buffers))
	return sections.Blobs, p.groups(sections)
}

func (p *packer) add(k kind, data []byte, sum [32]byte) {
	if p.repeat(k, sum, uint64(len(data))) {
		return
	}
	body, how := data, stored
	// A reader decompresses at most maxCompressed bytes, so that a small file cannot fill its memory. Contents beyond that are
	// stored uncompressed.
	if size := uint64(len(data)); size > 0 && p.used+size <= maxCompressed {
		enc, err := zstdEncoder()
		if err != nil {
			p.err = err
			return
		}
		if packed := enc.EncodeAll(data, nil); len(packed) < len(data) {
			body, how = packed, zstded
			p.used += size
		}
	}
	p.bodies = append(p.bodies, bytes.NewReader(body))
	p.entries = append(p.entries, entry{kind: k, compression: how, crc: crc32.Checksum(body, castagnoli),
		storedSize: uint64(len(body)), size: uint64(len(data)), sha256: sum})
}

// repeat adds an entry for a section that the file has already, for another rank, and says whether it could. A reader may decode it once for each entry, so
// that counts towards maxCompressed.
func (p *packer) repeat(k kind, sum [32]byte, size uint64) bool {
	at := slices.IndexFunc(p.entries, func(e entry) bool { return e.kind == k && e.sha256 == sum })
	if p.version < 2 || !k.repeatable() || at < 0 || size == 0 || p.used+size > maxCompressed {
		return false
	}
	p.used += size
	p.version = 3
	e := p.entries[at]
	e.repeats = true
	p.entries = append(p.entries, e)
	p.bodies = append(p.bodies, bytes.NewReader(nil))
	return true
}

// layer adds a packed directory, which may be larger than memory. Directories with equal content are stored once.
func (p *packer) layer(l *Directory) error {
	if slices.ContainsFunc(p.entries, func(e entry) bool { return e.kind == kindLayer && e.sha256 == l.SHA256 }) {
		return nil
	}
	if l.Content == nil {
		return fmt.Errorf("bundled directory %s has no content", l.Name)
	}
	body := io.NewSectionReader(l.Content, 0, int64(l.PackedSize))
	crc, digest := crc32.New(castagnoli), sha256.New()
	if n, err := io.Copy(io.MultiWriter(crc, digest), body); err != nil || uint64(n) != l.PackedSize || [32]byte(digest.Sum(nil)) != l.SHA256 {
		return fmt.Errorf("bundled directory %s has changed since it was packed: %w", l.Name, errors.Join(err, errDigest))
	}
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return err
	}
	p.bodies = append(p.bodies, body)
	p.entries = append(p.entries, entry{kind: kindLayer, crc: crc.Sum32(), storedSize: l.PackedSize, size: l.PackedSize, sha256: l.SHA256})
	return nil
}

func (p *packer) pack() ([]io.Reader, error) {
	if p.err != nil {
		return nil, p.err
	}
	if len(p.entries) > maxSections {
		return nil, fmt.Errorf("%d sections (at most %d)", len(p.entries), maxSections)
	}
	offset := uint64(headerSize + entrySize*len(p.entries))
	var table []byte
	for i := range p.entries {
		e := &p.entries[i]
		if e.repeats {
			e.offset = p.entries[slices.IndexFunc(p.entries, func(o entry) bool { return o.kind == e.kind && o.sha256 == e.sha256 })].offset
		} else {
			e.offset = offset
			offset += e.storedSize
		}
		table = p.entries[i].append(table)
	}
	head := append(appendHeader(nil, p.version, len(p.entries), table), table...)
	return append([]io.Reader{bytes.NewReader(head)}, p.bodies...), nil
}
