package mutate

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
)

// The kinds of sections that have a structure of their own.
const (
	kindManifest = 1
	kindGraph    = 2
	kindBuffers  = 3
	kindBlob     = 4
	kindLayer    = 5
	kindGroup    = 6
)

const (
	headerBytes = 24
	entryBytes  = 64
	zstdFrame   = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// section is one section out of compression.
type section struct {
	kind uint16
	data []byte
}

// container is an artifact file.
type container struct {
	version  uint32
	sections []section
}

func openContainer(file []byte) (*container, error) {
	if len(file) < headerBytes {
		return nil, errors.New("open container: it is too short")
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	c := &container{version: binary.LittleEndian.Uint32(file[8:])}
	for i := range int(binary.LittleEndian.Uint32(file[12:])) {
		at := headerBytes + i*entryBytes
		if at+entryBytes > len(file) {
			return nil, errors.New("open container: its table is too short")
		}
		e := file[at : at+entryBytes]
		begin, size := binary.LittleEndian.Uint64(e[8:]), binary.LittleEndian.Uint64(e[16:])
		if begin > uint64(len(file)) || size > uint64(len(file))-begin {
			return nil, fmt.Errorf("open container: section %d reaches past the file", i)
		}
		data := file[begin : begin+size]
		if binary.LittleEndian.Uint16(e[2:]) == zstdFrame {
			if data, err = decoder.DecodeAll(data, nil); err != nil {
				return nil, fmt.Errorf("open container: section %d: %w", i, err)
			}
		}
		c.sections = append(c.sections, section{kind: binary.LittleEndian.Uint16(e), data: data})
	}
	return c, nil
}

// seal writes the file with all sections stored plainly: every length, digest and checksum is right.
func (c *container) seal() []byte {
	var table, bodies []byte
	offset := uint64(headerBytes + entryBytes*len(c.sections))
	for _, s := range c.sections {
		size := uint64(len(s.data))
		table = binary.LittleEndian.AppendUint16(table, s.kind)
		table = binary.LittleEndian.AppendUint16(table, 0)
		table = binary.LittleEndian.AppendUint32(table, crc32.Checksum(s.data, castagnoli))
		table = binary.LittleEndian.AppendUint64(table, offset)
		table = binary.LittleEndian.AppendUint64(table, size)
		table = binary.LittleEndian.AppendUint64(table, size)
		sum := sha256.Sum256(s.data)
		table = append(table, sum[:]...)
		bodies = append(bodies, s.data...)
		offset += size
	}
	out := []byte("MEDUSA\x00\x1a")
	out = binary.LittleEndian.AppendUint32(out, c.version)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(c.sections)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(table, castagnoli))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
	return append(append(out, table...), bodies...)
}
