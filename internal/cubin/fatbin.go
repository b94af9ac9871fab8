package cubin

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
)

const (
	containerMagic  = 0xba55ed50
	containerHeader = 16
	entryHeader     = 64

	flagLZ4  = 0x2000
	flagZstd = 0x8000

	// maxObjects and maxUnpacked bound one image: the number of objects, and the bytes after decompression.
	maxObjects  = 1 << 14
	maxUnpacked = 1 << 30
)

// parseFatbin reads the containers of a fat binary. Several may follow one another, each padded to 8 bytes.
func parseFatbin(image []byte) ([]Object, error) {
	w := words{image, "fat binary"}
	p := &unpacker{}
	for at := uint64(0); ; {
		head, err := w.bytes(at, containerHeader)
		if err != nil {
			return nil, err
		}
		headerSize, size := uint64(binary.LittleEndian.Uint16(head[6:])), binary.LittleEndian.Uint64(head[8:])
		if version := binary.LittleEndian.Uint16(head[4:]); version != 1 || headerSize < containerHeader {
			return nil, bad("fat binary", at, "container version %d with a header of %d bytes", version, headerSize)
		}
		if _, err := w.bytes(at, headerSize); err != nil {
			return nil, err
		}
		body, err := w.bytes(at+headerSize, size)
		if err != nil {
			return nil, err
		}
		if err := p.container(body, at+headerSize); err != nil {
			return nil, err
		}
		at = (at + headerSize + size + 7) &^ 7
		if at+4 > uint64(len(image)) || binary.LittleEndian.Uint32(image[at:]) != containerMagic {
			return p.objects, nil
		}
	}
}

type unpacker struct {
	objects []Object
	used    uint64 // counts towards maxUnpacked
}

func (p *unpacker) container(body []byte, start uint64) error {
	for at := uint64(0); at < uint64(len(body)); {
		if len(p.objects) == maxObjects {
			return bad("fat binary", start+at, "more than %d entries", maxObjects)
		}
		size, err := p.entry(body[at:], start+at)
		if err != nil {
			return err
		}
		at += size
	}
	return nil
}

// entry reads one code object and returns the number of bytes that it takes.
func (p *unpacker) entry(data []byte, start uint64) (uint64, error) {
	if len(data) < entryHeader {
		return 0, bad("fat binary", start, "an entry header of %d bytes", len(data))
	}
	kind, header := Kind(binary.LittleEndian.Uint16(data)), uint64(binary.LittleEndian.Uint32(data[4:]))
	padded, compressed := binary.LittleEndian.Uint64(data[8:]), uint64(binary.LittleEndian.Uint32(data[0x10:]))
	flags, unpacked := binary.LittleEndian.Uint64(data[0x28:]), binary.LittleEndian.Uint64(data[0x38:])
	if header < entryHeader || header > uint64(len(data)) || padded > uint64(len(data))-header {
		return 0, bad("fat binary", start, "an entry of %d and %d bytes in %d", header, padded, len(data))
	}
	payload := data[header : header+padded]
	if flags&(flagLZ4|flagZstd) != 0 {
		if compressed > padded {
			return 0, bad("fat binary", start, "%d compressed bytes in %d", compressed, padded)
		}
		var err error
		if payload, err = p.unpack(payload[:compressed], unpacked, flags, start); err != nil {
			return 0, err
		}
	}
	o, known, err := p.object(kind, payload)
	if err != nil {
		return 0, err
	}
	if known {
		o.Arch = binary.LittleEndian.Uint32(data[0x1c:])
		o.Name = entryName(data[:header])
		p.objects = append(p.objects, o)
	}
	return header + padded, nil
}

// object parses a payload. Kinds other than cubins and PTX (for example link-time code) cannot be launched.
func (p *unpacker) object(kind Kind, payload []byte) (o Object, known bool, err error) {
	switch kind {
	case PTX:
		o, err = parsePTX(payload)
		return o, true, err
	case Cubin:
		o, err = parseCubin(payload)
		return o, true, err
	}
	return o, false, nil
}

func entryName(header []byte) string {
	at, n := uint64(binary.LittleEndian.Uint32(header[0x20:])), uint64(binary.LittleEndian.Uint32(header[0x24:]))
	if n == 0 || at > uint64(len(header)) || n > uint64(len(header))-at {
		return ""
	}
	return string(header[at : at+n])
}

// unpack decompresses a payload to exactly the size that its entry states.
func (p *unpacker) unpack(data []byte, size, flags, start uint64) ([]byte, error) {
	if size > maxUnpacked-p.used {
		return nil, bad("fat binary", start, "%d bytes after decompression (at most %d in all)", size, uint64(maxUnpacked))
	}
	p.used += size
	var out []byte
	var err error
	// mutant: compressed code of a fat binary
	if flags&flagLZ4 != 0 {
		out, err = lz4Block(data, size)
	} else {
		out, err = zstdFrame(data, size)
	}
	if err != nil {
		return nil, bad("fat binary", start, "%v", err)
	}
	if uint64(len(out)) != size {
		return nil, bad("fat binary", start, "%d bytes after decompression, not %d", len(out), size)
	}
	return out, nil
}

func zstdFrame(data []byte, size uint64) ([]byte, error) {
	// The stated size may be false: bound the window and the output, and grow the buffer on demand.
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(max(size, 1<<20)), zstd.WithDecodeAllCapLimit(false))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(data, nil)
}
