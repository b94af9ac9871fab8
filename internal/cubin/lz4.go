package cubin

import "errors"

var errLZ4 = errors.New("damaged LZ4 block")

// lz4Block unpacks one raw LZ4 block (the LZ4 block format description): sequences of literals and matches, of which the last has
// literals only. It fails if more than size bytes come out.
func lz4Block(src []byte, size uint64) ([]byte, error) {
	// One byte of input makes at most 255 bytes of output.
	out := make([]byte, 0, min(size, 255*uint64(len(src))))
	for i := 0; i < len(src); {
		token := src[i]
		i++
		literals, next, ok := lz4Length(src, i, int(token>>4))
		if !ok || literals > len(src)-next || uint64(literals) > size-uint64(len(out)) {
			return nil, errLZ4
		}
		out = append(out, src[next:next+literals]...)
		i = next + literals
		if i == len(src) {
			return out, nil
		}
		if len(src)-i < 2 {
			return nil, errLZ4
		}
		distance := int(src[i]) | int(src[i+1])<<8
		match, next, ok := lz4Length(src, i+2, int(token&15))
		match += 4
		if !ok || distance == 0 || distance > len(out) || uint64(match) > size-uint64(len(out)) {
			return nil, errLZ4
		}
		i = next
		for range match { // one byte at a time, because a match may overlap its own output
			out = append(out, out[len(out)-distance])
		}
	}
	return nil, errLZ4
}

// lz4Length reads the extra bytes of a length of 15.
func lz4Length(src []byte, i, length int) (total, next int, ok bool) {
	if length < 15 {
		return length, i, true
	}
	for ; i < len(src); i++ {
		length += int(src[i])
		if src[i] != 255 {
			return length, i + 1, true
		}
	}
	return 0, i, false
}
