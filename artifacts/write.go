package artifacts

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"medusa/graphir"
)

// Write makes the artifact file at path. The file appears there complete and synced, or not at all: what was there
// before stays until then. Equal artifacts give equal bytes.
func Write(path string, a *Artifact) error {
	data, err := encode(a)
	if err != nil {
		return fmt.Errorf("write artifact %s: %w", path, err)
	}
	if err := writeAtomically(path, data); err != nil {
		return fmt.Errorf("write artifact %s: %w", path, err)
	}
	return nil
}

// encode returns the bytes of an artifact file.
func encode(a *Artifact) ([]byte, error) {
	if a.Spec == nil {
		return nil, errors.New("it has no graph spec")
	}
	manifest, err := (&Manifest{a.Identity, a.KV, a.Stages, a.Verification, a.Created}).encode()
	if err != nil {
		return nil, err
	}
	if len(manifest) > maxManifest {
		return nil, fmt.Errorf("manifest takes %d bytes (at most %d)", len(manifest), maxManifest)
	}
	graph, blobs, err := graphir.EncodeDetached(a.Spec)
	if err != nil {
		return nil, err
	}
	p := &packer{}
	p.add(kindManifest, manifest, sha256.Sum256(manifest))
	p.add(kindGraph, graph, sha256.Sum256(graph))
	for i := range blobs {
		p.add(kindBlob, blobs[i].Data, blobs[i].SHA256)
	}
	return p.pack()
}

// packer lays sections out behind each other.
type packer struct {
	entries []entry
	bodies  [][]byte
	err     error
	used    uint64 // of maxCompressed
}

func (p *packer) add(k kind, data []byte, sum [32]byte) {
	body, how := data, stored
	// A reader takes no more than maxCompressed out of compression, so that a small file can't fill its memory: what goes
	// beyond is stored plainly.
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
	p.bodies = append(p.bodies, body)
	p.entries = append(p.entries, entry{kind: k, compression: how, crc: crc32.Checksum(body, castagnoli),
		storedSize: uint64(len(body)), size: uint64(len(data)), sha256: sum})
}

func (p *packer) pack() ([]byte, error) {
	if p.err != nil {
		return nil, p.err
	}
	if len(p.entries) > maxSections {
		return nil, fmt.Errorf("%d sections (at most %d)", len(p.entries), maxSections)
	}
	offset := uint64(headerSize + entrySize*len(p.entries))
	var table []byte
	for i := range p.entries {
		p.entries[i].offset = offset
		offset += p.entries[i].storedSize
		table = p.entries[i].append(table)
	}
	out := make([]byte, 0, offset)
	out = append(appendHeader(out, Version, len(p.entries), table), table...)
	for _, body := range p.bodies {
		out = append(out, body...)
	}
	return out, nil
}

// writeAtomically: temporary name in the same directory, sync, rename, sync of the directory.
func writeAtomically(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	// CreateTemp makes private files; workers of other users read artifacts.
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, openErr := os.Open(dir)
	if openErr != nil {
		return openErr
	}
	defer d.Close()
	return d.Sync()
}
