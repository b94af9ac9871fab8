package cubin

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

const (
	elfMagic      = "\x7fELF"
	elfHeader     = 64
	sectionHeader = 64
	symbolSize    = 24
	machineCUDA   = 190

	sectionNoBits  = 8
	sectionSymbols = 2
	symbolObject   = 1
)

// section is one section header. Its data is empty if the file has no bytes for it.
type section struct {
	name             string
	kind, link, info uint32
	offset, size     uint64
	data             []byte
}

// parseCubin reads a cubin: an ELF file of the CUDA machine. It does not check OSABI and e_version, because both change with the
// toolkit; e_version is the toolkit's own version.
func parseCubin(data []byte) (Object, error) {
	o := Object{Kind: Cubin}
	if len(data) < elfHeader || string(data[:4]) != elfMagic || data[4] != 2 || data[5] != 1 {
		return o, bad("cubin", 0, "not a 64-bit little-endian ELF file")
	}
	if machine := binary.LittleEndian.Uint16(data[18:]); machine != machineCUDA {
		return o, bad("cubin", 18, "machine %d, not %d", machine, machineCUDA)
	}
	flags := binary.LittleEndian.Uint32(data[48:])
	o.Arch = flags & 0xff
	if data[8] >= 8 { // from this ABI version on, the number is in another place
		o.Arch = flags >> 8 & 0xff
	}
	sections, err := readSections(data)
	if err != nil {
		return o, err
	}
	if o.Kernels, err = kernelsOf(sections); err != nil {
		return o, err
	}
	o.Globals, err = globalsOf(sections)
	return o, err
}

func readSections(data []byte) ([]section, error) {
	w := words{data, "cubin sections"}
	start, count := binary.LittleEndian.Uint64(data[40:]), uint64(binary.LittleEndian.Uint16(data[60:]))
	if size := binary.LittleEndian.Uint16(data[58:]); count > 0 && size != sectionHeader {
		return nil, bad("cubin", 58, "section headers of %d bytes", size)
	}
	table, err := w.bytes(start, count*sectionHeader)
	if err != nil {
		return nil, err
	}
	sections := make([]section, count)
	for i := range sections {
		h := table[i*sectionHeader:]
		s := &sections[i]
		s.kind, s.link, s.info = binary.LittleEndian.Uint32(h[4:]), binary.LittleEndian.Uint32(h[40:]), binary.LittleEndian.Uint32(h[44:])
		s.offset, s.size = binary.LittleEndian.Uint64(h[24:]), binary.LittleEndian.Uint64(h[32:])
		if s.kind == sectionNoBits || s.kind == 0 {
			continue
		}
		if s.data, err = w.bytes(s.offset, s.size); err != nil {
			return nil, err
		}
	}
	names := uint64(binary.LittleEndian.Uint16(data[62:]))
	if count == 0 {
		return nil, nil
	}
	if names >= count {
		return nil, bad("cubin", 62, "section %d of %d holds the names", names, count)
	}
	strtab := words{sections[names].data, "cubin section names"}
	for i := range sections {
		if sections[i].name, err = strtab.text(uint64(binary.LittleEndian.Uint32(table[i*sectionHeader:]))); err != nil && i > 0 {
			return nil, err
		}
	}
	return sections, nil
}

// kernelsOf lists the functions with code and parameters. Device functions have code only.
func kernelsOf(sections []section) ([]Kernel, error) {
	code := make(map[string]bool)
	for i := range sections {
		if name, ok := strings.CutPrefix(sections[i].name, ".text."); ok {
			code[name] = true
		}
	}
	var kernels []Kernel
	for i := range sections {
		s := &sections[i]
		name, ok := strings.CutPrefix(s.name, ".nv.info.")
		if !ok || !code[name] {
			continue
		}
		params, isKernel, err := readInfo(s)
		if err != nil {
			return nil, err
		}
		if isKernel {
			kernels = append(kernels, Kernel{Name: name, Params: params})
			delete(code, name) // ignore a second section of that name
		}
	}
	slices.SortFunc(kernels, func(a, b Kernel) int { return strings.Compare(a.Name, b.Name) })
	return kernels, nil
}

// globalsOf lists the module's variables from its symbols.
func globalsOf(sections []section) ([]Global, error) {
	var globals []Global
	for i := range sections {
		s := &sections[i]
		if s.kind != sectionSymbols {
			continue
		}
		if uint64(s.link) >= uint64(len(sections)) {
			return nil, bad("cubin symbols", s.offset, "section %d of %d holds the names", s.link, len(sections))
		}
		names := words{sections[s.link].data, "cubin symbol names"}
		for at := 0; at+symbolSize <= len(s.data); at += symbolSize {
			sym := s.data[at:]
			home := int(binary.LittleEndian.Uint16(sym[6:]))
			if sym[4]&15 != symbolObject || home >= len(sections) {
				continue
			}
			where := sections[home].name
			constant := where == ".nv.constant3"
			if !constant && where != ".nv.global" && where != ".nv.global.init" {
				continue
			}
			name, err := names.text(uint64(binary.LittleEndian.Uint32(sym)))
			if err != nil {
				return nil, err
			}
			globals = append(globals, Global{Name: name, Size: binary.LittleEndian.Uint64(sym[16:]), Constant: constant})
		}
	}
	slices.SortFunc(globals, func(a, b Global) int { return cmp.Compare(a.Name, b.Name) })
	return globals, nil
}
