package artifacts

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"medusa/graphir"
)

// maxGroup bounds a row group before compression. Groups are decompressed one at a time, so they do not count towards
// maxCompressed.
const maxGroup = 4 << 20

var groupDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxGroup), zstd.WithDecoderLowmem(true))
})

// rowGroups has the stored bytes of the row groups of one rank's graphs. They are in memory because the file may be closed while
// they are in use.
type rowGroups map[[32]byte]rowGroup

type rowGroup struct {
	compression compression
	stored      []byte
}

// load reads a row group's section.
func (g rowGroups) load(f *File, sum [32]byte) error {
	s := f.groups[sum]
	if s == nil {
		return f.corrupt(f.parts[0].graph, fmt.Errorf("group %x is missing", sum))
	}
	data, err := f.readStored(s)
	g[sum] = rowGroup{s.compression, data}
	return err
}

// read implements Group of a graphir.Source.
func (g rowGroups) read(sum [32]byte, _ int, buffer []byte) ([]byte, error) {
	group, known := g[sum]
	if !known {
		return nil, fmt.Errorf("group %x is missing", sum)
	}
	if group.compression == stored {
		return append(buffer[:0], group.stored...), nil
	}
	dec, err := groupDecoder()
	if err != nil {
		return nil, err
	}
	return dec.DecodeAll(group.stored, buffer[:0])
}

// groups adds the sections of row groups, each distinct content once. Their stored bytes go to the packer's spill file.
func (p *packer) groups(sections *graphir.Sections) error {
	var buffer []byte
	for i, g := range sections.Groups {
		if p.written[g.SHA256] {
			continue
		}
		p.written[g.SHA256] = true
		var err error
		if buffer, err = sections.Group(i, buffer[:0]); err != nil {
			return err
		}
		if sha256.Sum256(buffer) != g.SHA256 {
			return errors.New("a row group changed while it was written")
		}
		enc, err := zstdEncoder()
		if err != nil {
			return err
		}
		body, how := buffer, stored
		if packed := enc.EncodeAll(buffer, nil); len(packed) < len(buffer) {
			body, how = packed, zstded
		}
		at := p.spill.End()
		if _, err := p.spill.WriteAt(body, at); err != nil {
			return err
		}
		p.bodies = append(p.bodies, io.NewSectionReader(p.spill, at, int64(len(body))))
		p.entries = append(p.entries, entry{kind: kindGroup, compression: how, crc: crc32.Checksum(body, castagnoli),
			storedSize: uint64(len(body)), size: uint64(len(buffer)), sha256: g.SHA256})
	}
	return nil
}
