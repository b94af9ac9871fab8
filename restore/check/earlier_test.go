package check

import (
	"slices"
	"testing"

	"medusa/graphir"
	"medusa/restore/digest"
)

func TestOwnedMemory(t *testing.T) {
	s := span{alloc: 1, offset: 100, size: 200, class: digest.Other}
	block := func(alloc uint32, live bool, offset, size uint64) graphir.Block {
		return graphir.Block{Alloc: alloc, Live: live, Offset: offset, Size: size}
	}
	part := func(offset, size uint64) span {
		p := s
		p.offset, p.size = offset, size
		return p
	}
	for _, tt := range []struct {
		name   string
		blocks []graphir.Block
		want   []span
	}{
		{"not suballocated", []graphir.Block{block(2, true, 0, 400)}, []span{s}},
		{"free", []graphir.Block{block(1, false, 0, 400)}, nil},
		{"in part", []graphir.Block{block(1, true, 0, 120), block(1, false, 120, 80), block(1, true, 200, 50), block(1, true, 250, 150)},
			[]span{part(100, 20), part(200, 50), part(250, 50)}},
		{"beside it", []graphir.Block{block(1, true, 0, 100), block(1, true, 300, 100)}, nil},
	} {
		if got := s.owned(tt.blocks); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
