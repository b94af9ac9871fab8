package artifacts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Version is the newest format version that Open reads. Write uses the oldest version that can express the Artifact: several
// ranks need version 2, and ranks with equal sections version 3.
const Version = 3

// Suffix is the extension of artifact files. Folders are searched for it.
const Suffix = ".medusa"

const (
	magic      = "MEDUSA\x00\x1a" // the last byte ends the output of DOS "type" and makes text tools stop
	headerSize = 24
	entrySize  = 64

	maxSections   = 1 << 16
	maxRanks      = 256
	maxManifest   = 512 << 10
	maxCompressed = 24 << 20 // limit on the decompressed bytes of one file, all sections together
)

// kind is the type of a section. Readers skip kinds that they do not know.
type kind uint16

const (
	kindManifest kind = 1
	kindGraph    kind = 2
	kindBuffers  kind = 3
	kindBlob     kind = 4
	kindLayer    kind = 5
	kindGroup    kind = 6
)

func (k kind) String() string {
	switch k {
	case kindManifest:
		return "manifest"
	case kindGraph:
		return "graph"
	case kindBuffers:
		return "buffers"
	case kindBlob:
		return "blob"
	case kindLayer:
		return "layer"
	case kindGroup:
		return "group"
	default:
		return fmt.Sprintf("section of kind %d", uint16(k))
	}
}

// compression of a section's stored bytes.
type compression uint16

const (
	stored compression = 0
	zstded compression = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// entry is one line of the section table.
type entry struct {
	kind             kind
	compression      compression
	crc              uint32 // CRC-32C of the stored bytes
	offset           uint64
	size, storedSize uint64
	repeats          bool     // an earlier entry's bytes; not stored
	sha256           [32]byte // of the bytes before compression
}

// repeatable: ranks of equal shape have equal sections of this kind, which are stored once.
func (k kind) repeatable() bool { return k == kindGraph || k == kindBuffers }

func (e *entry) append(out []byte) []byte {
	out = binary.LittleEndian.AppendUint16(out, uint16(e.kind))
	out = binary.LittleEndian.AppendUint16(out, uint16(e.compression))
	out = binary.LittleEndian.AppendUint32(out, e.crc)
	out = binary.LittleEndian.AppendUint64(out, e.offset)
	out = binary.LittleEndian.AppendUint64(out, e.storedSize)
	out = binary.LittleEndian.AppendUint64(out, e.size)
	return append(out, e.sha256[:]...)
}

func parseEntry(b []byte) entry {
	return entry{
		kind:        kind(binary.LittleEndian.Uint16(b)),
		compression: compression(binary.LittleEndian.Uint16(b[2:])),
		crc:         binary.LittleEndian.Uint32(b[4:]),
		offset:      binary.LittleEndian.Uint64(b[8:]),
		storedSize:  binary.LittleEndian.Uint64(b[16:]),
		size:        binary.LittleEndian.Uint64(b[24:]),
		sha256:      [32]byte(b[32:64]),
	}
}

func appendHeader(out []byte, version, sections int, table []byte) []byte {
	start := len(out)
	out = append(out, magic...)
	out = binary.LittleEndian.AppendUint32(out, uint32(version))
	out = binary.LittleEndian.AppendUint32(out, uint32(sections))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(table, castagnoli))
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out[start:], castagnoli))
}

var (
	errEmpty     = errors.New("the file is empty")
	errForeign   = errors.New("not a Medusa artifact (its first bytes belong to another format)")
	errTruncated = errors.New("the file is truncated")
	errChecksum  = errors.New("checksum does not match")
	errDigest    = errors.New("content does not match its digest")
)

// header is the decoded beginning of a file.
type header struct {
	version  int
	sections int
	tableCRC uint32
}

// parseHeader reads the first bytes of a file, at most headerSize of them.
func parseHeader(b []byte) (header, error) {
	n := min(len(b), len(magic))
	switch {
	case len(b) == 0:
		return header{}, errEmpty
	case string(b[:n]) != magic[:n]:
		return header{}, errForeign
	case len(b) < headerSize:
		return header{}, fmt.Errorf("%w: %d bytes", errTruncated, len(b))
	case binary.LittleEndian.Uint32(b[20:]) != crc32.Checksum(b[:20], castagnoli):
		return header{}, errChecksum
	}
	if version := binary.LittleEndian.Uint32(b[8:]); version > Version {
		return header{}, fmt.Errorf("%w %d (this medusa reads up to %d; %s)", ErrVersion, version, Version, remake)
	} else if version == 0 {
		return header{}, errors.New("format version 0")
	}
	count := binary.LittleEndian.Uint32(b[12:])
	if count > maxSections {
		return header{}, fmt.Errorf("%d sections (at most %d)", count, maxSections)
	}
	return header{int(binary.LittleEndian.Uint32(b[8:])), int(count), binary.LittleEndian.Uint32(b[16:])}, nil
}
