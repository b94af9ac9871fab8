package check

import (
	"encoding/binary"
	"math"
	"testing"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/digest"
)

// A graph's own results are numbers. It may leave any bytes in results of other graphs, whose memory it uses as scratch.
func TestFindInResults(t *testing.T) {
	const at, size, second = 0x1000, 3 * digest.ChunkBytes, 2*digest.ChunkBytes + 100
	output := func(offset, size uint64, dtype graphir.DType, graphs ...uint32) graphir.Tensor {
		return graphir.Tensor{Role: graphir.RoleOutput, DType: dtype, At: graphir.Pointer{Offset: offset}, Size: size, Graphs: graphs}
	}
	first, nan, minus := output(0, 64, graphir.F32, 0), math.Float32bits(float32(math.NaN())), uint32(math.MaxUint32)
	for name, tt := range map[string]struct {
		tensors []graphir.Tensor
		place   uint64
		word    uint32
		written digest.Bits
		want    digest.Bits
	}{
		"an integer in another graph's result":          {[]graphir.Tensor{first, output(64, 64, graphir.F32, 1)}, 64, minus, digest.Bits{7}, nil},
		"NaN in its own":                                {[]graphir.Tensor{first, output(64, 64, graphir.F32, 1)}, 60, nan, digest.Bits{7}, digest.Bits{1}},
		"behind its own":                                {[]graphir.Tensor{first, output(64, 64, graphir.F32, 1)}, 64, nan, digest.Bits{7}, nil},
		"its own, in another chunk":                     {[]graphir.Tensor{first, output(second, 64, graphir.F32, 0, 1)}, second, nan, digest.Bits{7}, digest.Bits{4}},
		"in two chunks, of which the second is written": {[]graphir.Tensor{output(second-200, 400, graphir.F32, 0)}, second + 40, nan, digest.Bits{4}, digest.Bits{2}},
		"not written":                                   {[]graphir.Tensor{first, output(second, 64, graphir.F32, 0, 1)}, second, nan, digest.Bits{3}, nil},
		"a result of which nobody says whose it is":     {[]graphir.Tensor{first, output(64, 64, graphir.F32)}, 64, nan, digest.Bits{7}, digest.Bits{1}},
		"half of a number":                              {[]graphir.Tensor{first, output(64, 64, graphir.BF16, 1), output(64, 64, graphir.F32, 0)}, 64, 0x7f80, digest.Bits{7}, nil},
		"a number of half the size":                     {[]graphir.Tensor{first, output(64, 64, graphir.BF16, 0)}, 64, 0x7f80, digest.Bits{7}, digest.Bits{1}},
	} {
		memory := make([]byte, size)
		binary.LittleEndian.PutUint32(memory[tt.place:], tt.word)
		spec := &graphir.Spec{Tensors: tt.tensors}
		h := &hasher{spec: spec, base: []uint64{at}, read: func(to []byte, from cuda.DevicePtr) error {
			copy(to, memory[from-at:])
			return nil
		}}
		s := span{size: size, stride: 1, chunk: digest.ChunkBytes, class: digest.Output, tensor: noTensor, handed: graphir.F32}
		r := digest.Range{Size: size, Class: digest.Output, Stride: 1, Written: tt.written}
		c := &Checker{spec: spec, hasher: h, spans: []span{s}}
		out := digest.Graph{Ranges: []digest.Range{r}}
		if err := c.findNotFinite(0, &out); err != nil {
			t.Fatal(err)
		}
		if got := out.Ranges[0].NotFinite; string(got) != string(tt.want) {
			t.Errorf("%s: chunks %v hold no numbers, want %v", name, got, tt.want)
		}
	}
}
