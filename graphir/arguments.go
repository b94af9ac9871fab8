package graphir

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Argument is a stretch of a kernel node's parameter buffer. It is one parameter of the kernel's layout or, if Gap is set,
// non-zero bytes or pointers outside of all parameters. Offset and Size are in bytes.
type Argument struct {
	Offset, Size uint32
	Gap          bool
	Pieces       []Piece // at least one, in order
}

// Piece is a part of an argument: a pointer or, if Relocation is nil, constant bytes.
type Piece struct {
	Offset     uint32 // in the parameter buffer
	Relocation *Relocation
	Bytes      []byte
}

// Arguments cuts a node's parameter buffer along its kernel's layout. It covers every pointer and every non-zero byte. The spec
// must be valid.
func (s *Spec) Arguments(n *KernelNode) []Argument {
	var out []Argument
	relocations, end := n.Relocations, uint32(0)
	cut := func(from, to uint32, gap bool) {
		inside := 0
		for inside < len(relocations) && relocations[inside].Offset < to {
			inside++
		}
		if gap && inside == 0 && zero(n.Params[from:to]) {
			return
		}
		out = append(out, Argument{from, to - from, gap, pieces(n.Params, relocations[:inside], from, to)})
		relocations = relocations[inside:]
	}
	for _, p := range s.Kernels[n.Kernel].Params {
		if p.Offset > end {
			cut(end, p.Offset, true)
		}
		cut(p.Offset, p.Offset+p.Size, false)
		end = p.Offset + p.Size
	}
	cut(end, uint32(len(n.Params)), true)
	return out
}

func pieces(params []byte, relocations []Relocation, from, to uint32) []Piece {
	var out []Piece
	for i := range relocations {
		f := &relocations[i]
		if f.Offset > from {
			out = append(out, Piece{Offset: from, Bytes: params[from:f.Offset]})
		}
		out = append(out, Piece{Offset: f.Offset, Relocation: f})
		from = f.Offset + f.Size()
	}
	if from < to {
		out = append(out, Piece{Offset: from, Bytes: params[from:to]})
	}
	return out
}

// String formats an argument as a pointer, a number, or the pieces of a struct passed by value.
func (a *Argument) String() string {
	if len(a.Pieces) == 1 {
		if f := a.Pieces[0].Relocation; f != nil {
			if f.Size() != a.Size {
				return "{" + f.String() + "}"
			}
			return f.String()
		}
		return constant(a.Pieces[0].Bytes)
	}
	texts := make([]string, len(a.Pieces))
	for i, p := range a.Pieces {
		if p.Relocation != nil {
			texts[i] = p.Relocation.String()
		} else {
			texts[i] = fmt.Sprintf("%x", p.Bytes)
		}
	}
	return "{" + strings.Join(texts, " ") + "}"
}

// constant formats values of 1, 2, 4 and 8 bytes as little-endian numbers, and all others as bytes.
func constant(b []byte) string {
	switch len(b) {
	case 1:
		return fmt.Sprintf("0x%02x", b[0])
	case 2:
		return fmt.Sprintf("0x%04x", binary.LittleEndian.Uint16(b))
	case 4:
		return fmt.Sprintf("0x%08x", binary.LittleEndian.Uint32(b))
	case 8:
		return fmt.Sprintf("0x%016x", binary.LittleEndian.Uint64(b))
	default:
		return fmt.Sprintf("{%x}", b)
	}
}

func zero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
