package cubin

import (
	"bytes"
	"encoding/binary"
)

// The tests build their samples, so that no binary is stored and each field can be varied.

var le = binary.LittleEndian

// sampleCubin describes a cubin of one kernel.
type sampleCubin struct {
	abi       byte
	kernel    string
	info      []byte // of .nv.info.<kernel>
	variables []sampleVariable
	device    string // a device function: code without parameters
}

type sampleVariable struct {
	name, section string
	size          uint64
}

// info entries
func sized(attr byte, payload []byte) []byte {
	return append(le.AppendUint16([]byte{formSized, attr}, uint16(len(payload))), payload...)
}

func half(attr byte, value uint16) []byte { return le.AppendUint16([]byte{3, attr}, value) }

func paramV1(ordinal, offset uint16, size uint32) []byte {
	b := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, 0), ordinal), offset)
	return sized(infoParam, le.AppendUint32(b, size<<18|0x1f000))
}

func paramV2(ordinal, offset, size uint16) []byte {
	b := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, 0), ordinal), offset)
	return sized(infoParamV2, le.AppendUint16(le.AppendUint16(b, size), 0x0500))
}

type sampleSection struct {
	name             string
	kind, link, info uint32
	data             []byte
}

func (c sampleCubin) bytes() []byte {
	strtab := []byte{0}
	symtab := make([]byte, symbolSize)
	sections := []sampleSection{{}, {name: ".shstrtab", kind: 3}, {name: ".strtab", kind: 3}, {name: ".symtab", kind: sectionSymbols, link: 2}}
	add := func(s sampleSection) int {
		sections = append(sections, s)
		return len(sections) - 1
	}
	code := add(sampleSection{name: ".text." + c.kernel, kind: 1, data: make([]byte, 32)})
	add(sampleSection{name: ".nv.info", kind: 0x70000000, data: sized(0x2f, make([]byte, 8))})
	add(sampleSection{name: ".nv.info." + c.kernel, kind: 0x70000000, info: uint32(code), data: c.info})
	if c.device != "" {
		add(sampleSection{name: ".text." + c.device, kind: 1, data: make([]byte, 16)})
		add(sampleSection{name: ".nv.info." + c.device, kind: 0x70000000, data: sized(0x11, make([]byte, 8))})
	}
	for _, v := range c.variables {
		kind := uint32(1)
		if v.section == ".nv.global" {
			kind = sectionNoBits
		}
		home := add(sampleSection{name: v.section, kind: kind})
		sym := le.AppendUint32(nil, uint32(len(strtab)))
		strtab = append(append(strtab, v.name...), 0)
		sym = append(sym, symbolObject, 0)
		sym = le.AppendUint16(sym, uint16(home))
		sym = le.AppendUint64(le.AppendUint64(sym, 0), v.size)
		symtab = append(symtab, sym...)
	}
	sections[2].data, sections[3].data = strtab, symtab
	return elfFile(c.abi, sections)
}

func elfFile(abi byte, sections []sampleSection) []byte {
	names := []byte{0}
	at := make([]uint32, len(sections))
	for i := range sections[1:] {
		at[i+1] = uint32(len(names))
		names = append(append(names, sections[i+1].name...), 0)
	}
	sections[1].data = names
	body := make([]byte, elfHeader)
	headers := make([]byte, 0, len(sections)*sectionHeader)
	for i, s := range sections {
		h := make([]byte, sectionHeader)
		le.PutUint32(h, at[i])
		le.PutUint32(h[4:], s.kind)
		le.PutUint64(h[24:], uint64(len(body)))
		le.PutUint64(h[32:], uint64(len(s.data)))
		le.PutUint32(h[40:], s.link)
		le.PutUint32(h[44:], s.info)
		if s.kind == sectionNoBits {
			le.PutUint64(h[24:], 1<<40) // the file has no such bytes
			le.PutUint64(h[32:], 1<<30)
		}
		headers = append(headers, h...)
		body = append(body, s.data...)
	}
	copy(body, elfMagic)
	body[4], body[5], body[6], body[7], body[8] = 2, 1, 1, 0x33, abi
	le.PutUint16(body[18:], machineCUDA)
	le.PutUint32(body[20:], 0x7c)
	le.PutUint64(body[40:], uint64(len(body)))
	le.PutUint32(body[48:], 0x5a055a)
	if abi >= 8 {
		le.PutUint32(body[48:], 100<<8|0x08)
	}
	le.PutUint16(body[58:], sectionHeader)
	le.PutUint16(body[60:], uint16(len(sections)))
	le.PutUint16(body[62:], 1)
	return append(body, headers...)
}

// sampleEntry is one code object of a fat binary.
type sampleEntry struct {
	kind     Kind
	arch     uint32
	name     string
	flags    uint64
	payload  []byte // as stored
	unpacked uint64 // of a compressed one
}

func (e sampleEntry) bytes() []byte {
	head := make([]byte, entryHeader)
	if e.name != "" {
		le.PutUint32(head[0x20:], uint32(len(head)))
		le.PutUint32(head[0x24:], uint32(len(e.name)))
		head = append(head, e.name...)
	}
	head = append(head, make([]byte, -len(head)&7)...)
	payload := append(bytes.Clone(e.payload), make([]byte, -len(e.payload)&7)...)
	le.PutUint16(head, uint16(e.kind))
	le.PutUint16(head[2:], 0x0101)
	le.PutUint32(head[4:], uint32(len(head)))
	le.PutUint64(head[8:], uint64(len(payload)))
	le.PutUint32(head[0x1c:], e.arch)
	le.PutUint64(head[0x28:], e.flags|0x11)
	if e.flags != 0 {
		le.PutUint32(head[0x10:], uint32(len(e.payload)))
		le.PutUint64(head[0x38:], e.unpacked)
	}
	return append(head, payload...)
}

func container(entries ...sampleEntry) []byte {
	var body []byte
	for _, e := range entries {
		body = append(body, e.bytes()...)
	}
	head := le.AppendUint32(nil, containerMagic)
	head = le.AppendUint16(le.AppendUint16(head, 1), containerHeader)
	return append(le.AppendUint64(head, uint64(len(body))), body...)
}

// lz4Pack packs data as literals, with one match if a run of equal bytes allows it.
func lz4Pack(data []byte) []byte {
	var out []byte
	length := func(n int) {
		for n -= 15; n >= 0; n -= 255 {
			out = append(out, byte(min(n, 255)))
			if n < 255 {
				break
			}
		}
	}
	for i := 0; ; {
		run := 0 // number of bytes from i+1 on that equal byte i
		j := i
		for ; j < len(data); j++ {
			for run = 0; j+1+run < len(data)-5 && data[j+1+run] == data[j]; run++ {
			}
			if run >= 20 {
				break
			}
		}
		if j >= len(data) {
			out = append(out, byte(min(len(data)-i, 15)<<4))
			length(len(data) - i)
			return append(out, data[i:]...)
		}
		literals := j + 1 - i
		out = append(out, byte(min(literals, 15)<<4|min(run-4, 15)))
		length(literals)
		out = append(append(out, data[i:j+1]...), 1, 0)
		length(run - 4)
		i = j + 1 + run
	}
}
