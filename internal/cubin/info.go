package cubin

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Attributes of a kernel's .nv.info section, and the forms of entries.
const (
	infoParamBank    = 0x0a
	infoParam        = 0x17
	infoParamBytes   = 0x19
	infoParamV2      = 0x45
	formSized        = 4
	infoParamSize    = 12
	infoParamSizeV2  = 12
	maxParamsPerInfo = 1 << 12
)

// readInfo reads the entries of a kernel's section and returns its parameters in order. isKernel is false if no entry describes
// parameters, not even an empty list.
func readInfo(s *section) (params []Param, isKernel bool, err error) {
	type ordered struct {
		ordinal uint16
		Param
	}
	var found []ordered
	for at := uint64(0); at < uint64(len(s.data)); {
		if uint64(len(s.data))-at < 4 {
			return nil, false, bad(s.name, s.offset+at, "an entry of %d bytes", uint64(len(s.data))-at)
		}
		form, attr, value := s.data[at], s.data[at+1], uint64(binary.LittleEndian.Uint16(s.data[at+2:]))
		at += 4
		var payload []byte
		if form == formSized {
			if value > uint64(len(s.data))-at {
				return nil, false, bad(s.name, s.offset+at, "an attribute of %d bytes in %d", value, uint64(len(s.data))-at)
			}
			payload = s.data[at : at+value]
			at += value
		}
		switch attr {
		case infoParamBank, infoParamBytes:
			isKernel = true
		case infoParam:
			if len(payload) < infoParamSize {
				return nil, false, bad(s.name, s.offset+at, "a parameter of %d bytes", len(payload))
			}
			found = append(found, ordered{binary.LittleEndian.Uint16(payload[4:]),
				Param{uint32(binary.LittleEndian.Uint16(payload[6:])), binary.LittleEndian.Uint32(payload[8:]) >> 18}})
		case infoParamV2:
			if len(payload) < infoParamSizeV2 {
				return nil, false, bad(s.name, s.offset+at, "a parameter of %d bytes", len(payload))
			}
			found = append(found, ordered{binary.LittleEndian.Uint16(payload[4:]),
				Param{uint32(binary.LittleEndian.Uint16(payload[6:])), uint32(binary.LittleEndian.Uint16(payload[8:]))}})
		}
		if len(found) > maxParamsPerInfo {
			return nil, false, bad(s.name, s.offset+at, "more than %d parameters", maxParamsPerInfo)
		}
	}
	slices.SortStableFunc(found, func(a, b ordered) int { return cmp.Compare(a.ordinal, b.ordinal) })
	for i, p := range found {
		if int(p.ordinal) != i {
			return nil, false, bad(s.name, s.offset, "parameter %d is number %d", i, p.ordinal)
		}
		params = append(params, p.Param)
	}
	return params, isKernel || len(params) > 0, nil
}
