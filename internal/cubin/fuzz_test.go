package cubin

import (
	"errors"
	"testing"
)

// For any bytes, Parse ends with objects or with a *FormatError.
func FuzzParse(f *testing.F) {
	plain := sample().bytes()
	for _, image := range [][]byte{
		plain, []byte(samplePTX),
		container(sampleEntry{kind: Cubin, flags: flagLZ4, payload: lz4Pack(plain), unpacked: uint64(len(plain))}, sampleEntry{kind: PTX, payload: []byte(samplePTX)}),
		container(sampleEntry{kind: Cubin, flags: flagZstd, payload: []byte{0x28, 0xb5, 0x2f, 0xfd, 0}, unpacked: 8}),
	} {
		f.Add(image)
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		_, err := Parse(image)
		if format := (*FormatError)(nil); err != nil && !errors.As(err, &format) {
			t.Fatalf("error of type %T: %v", err, err)
		}
	})
}
