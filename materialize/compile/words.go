package compile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"

	"medusa/graphir"
)

// prover decides words at one moment of both runs.
type prover struct {
	a, b   *liveSet
	maps   *tensorMaps // nil: there are none
	blocks *blocks     // of kernel parameters
	lo, hi uint64      // no word outside points into a live allocation of either run
	kept   uint32      // numbers of allocations from here on are not in both runs; 0: all are
	cut    uint64      // a Content ends at the first word from this byte of it on
}

// proverAt returns a prover for moments of the two runs.
func proverAt(a, b addresses, atA, atB uint64, maps *tensorMaps) (*prover, error) {
	la, err := a.liveAt(atA)
	if err != nil {
		return nil, err
	}
	lb, err := b.liveAt(atB)
	if err != nil {
		return nil, err
	}
	p := newProver(la, lb, maps)
	p.kept = uint32(a.kept)
	return p, nil
}

func newProver(a, b *liveSet, maps *tensorMaps) *prover {
	p := &prover{a: a, b: b, maps: maps, cut: maxContent}
	p.spans()
	return p
}

func (p *prover) spans() {
	alo, ahi := p.a.span()
	blo, bhi := p.b.span()
	p.lo, p.hi = min(alo, blo), max(ahi, bhi)
}

// steps is the number of steps that the moves took.
func (p *prover) steps() int { return p.a.steps + p.b.steps }

// moveTo moves the prover to other moments.
func (p *prover) moveTo(atA, atB uint64) error {
	before := p.steps()
	if err := cmp.Or(p.a.moveTo(atA), p.b.moveTo(atB)); err != nil {
		return err
	}
	if p.steps() != before {
		p.spans()
	}
	return nil
}

// WordError is a word that the two runs do not prove to be either a pointer or a constant.
type WordError struct {
	Where  string // graph, node, kernel, parameter
	Offset uint64 // byte offset inside the parameter or the saved buffer
	A, B   uint64 // its value in the two runs
	Reason string
	// Retry says that recording again with other gaps can decide it.
	Retry bool
	// Unwritten says that the word can be bytes that no code wrote, such as the padding of a struct. Remains of earlier calls
	// on a stack are sometimes an address, or half of one beside a value of four bytes, and hardly ever the same in both runs.
	// Only check-restored tells it from an address that the engine gets differently in each start.
	Unwritten bool
}

func (e *WordError) Error() string {
	return fmt.Sprintf("prove word: %s: byte %d is %#x in record-a and %#x in record-b: %s", e.Where, e.Offset, e.A, e.B, e.Reason)
}

// word decides one aligned 8-byte word (design: pointers are proven, not guessed).
//
//	the same (allocation, offset) in both runs, at different addresses  → pointer
//	the same bytes in both runs, in no live allocation of either        → constant
//	the same bytes, yet in a live allocation                            → unproven; record again
//	different bytes that lead nowhere, or to different memory           → error
func (p *prover) word(a, b uint64) (ptr graphir.Pointer, isPointer bool, err *WordError) {
	// mutant: words outside of all memory
	if a == b && (a < p.lo || a > p.hi) {
		return ptr, false, nil
	}
	ra, na := p.a.resolve(a)
	rb, nb := p.b.resolve(b)
	if a == b {
		// mutant: constant equal to a live address
		if na+nb == 0 {
			return ptr, false, nil
		}
		return ptr, false, &WordError{A: a, B: b, Retry: true,
			Reason: "the same in both runs, yet inside a live allocation of one: a constant or a pointer that did not move"}
	}
	matches := 0
	for _, x := range ra[:na] {
		for _, y := range rb[:nb] {
			// mutant: offset in both runs
			if x == y && (x.Space != graphir.SpaceAlloc || p.kept == 0 || x.Index < p.kept) {
				ptr, matches = x, matches+1
			}
		}
	}
	switch {
	// mutant: one meaning in both runs
	case matches == 1:
		return ptr, true, nil
	case matches > 1 && p.a.oneModule(a) && p.b.oneModule(b):
		return ra[0], true, nil
	case matches > 1: // mutant: address between two allocations
		return ptr, false, &WordError{A: a, B: b, Retry: true,
			Reason: "the end of one allocation and the start of the next in both runs"}
	case na+nb == 0:
		return ptr, false, &WordError{A: a, B: b, Unwritten: true, Reason: "it differs and leads to no live allocation in either run"}
	default:
		return ptr, false, &WordError{A: a, B: b, Unwritten: true,
			Reason: fmt.Sprintf("it leads to %s in record-a and to %s in record-b", describe(ra[:na]), describe(rb[:nb]))}
	}
}

func describe(ps []graphir.Pointer) string {
	if len(ps) == 0 {
		return "no live allocation"
	}
	return ps[0].String()
}

// param decides the bytes of one parameter, whose first byte is at off in both buffers. Pointers lie at multiples of
// eight, by-value structs included; bytes around whole words must be the same in both runs. Relocations are appended with
// offsets into the buffer, and their bytes in out (a copy of record-a's buffer) are zeroed. A word that differs and leads nowhere
// inside of a by-value struct is presumed to be padding (padding.go), zeroed and handed to pad, and so is an address of free
// memory, and a parameter that is an address of the process's own memory. A struct without members is one such byte.
func (p *prover) param(out, a, b []byte, off, size uint32, relocations []graphir.Relocation, pad func(Padding)) ([]graphir.Relocation, *WordError) {
	end := off + size
	if size < 8 && bytes.Equal(a[off:end], b[off:end]) {
		return relocations, nil // most parameters
	}
	presumed := func(o, n uint32, e *WordError) bool {
		if !e.Unwritten || !p.mayHoldPadding(a, b, off, size) {
			return false
		}
		e.Offset = uint64(o - off)
		for i := o; i < o+n; i++ {
			if a[i] != b[i] {
				out[i] = 0
				pad(Padding{Offset: i, Size: 1, Cause: e})
			}
		}
		return true
	}
	for o := off; o < end; {
		// Tensor maps are aligned in constant memory, in which 528 bytes precede the parameters: a struct with maps has offset 112.
		// Within the struct they are aligned, too.
		// mutant: tensor map in a struct that is aligned in constant memory
		if (o-off)%tensorMapAlign == 0 {
			number, ptr, err := p.maps.at(p, a[o:end], b[o:end])
			if err != nil && !err.Unwritten {
				err.Offset = uint64(o - off)
				return nil, err
			}
			if number != 0 {
				relocations = append(relocations, graphir.Relocation{Offset: o, Pointer: ptr, TensorMap: number})
				clear(out[o : o+graphir.TensorMapBytes])
				o += graphir.TensorMapBytes
				continue
			}
		}
		// mutant: words are aligned
		if o%8 != 0 || o+8 > end {
			if a[o] != b[o] {
				e := &WordError{Offset: uint64(o - off), A: uint64(a[o]), B: uint64(b[o]), Unwritten: true,
					Reason: "a byte that is part of no aligned word differs"}
				if !presumed(o, 1, e) {
					return nil, e
				}
			}
			o++
			continue
		}
		wa, wb := binary.LittleEndian.Uint64(a[o:]), binary.LittleEndian.Uint64(b[o:])
		ptr, isPointer, err := p.word(wa, wb)
		// mutant: addresses of the process's own memory
		if err != nil && err.Unwritten && size == 8 && p.a.inHost(wa) && p.b.inHost(wb) {
			binary.LittleEndian.PutUint64(out[o:], notFollowed)
			pad(Padding{Offset: o, Size: 8, host: true, Cause: err})
			o += 8
			continue
		}
		if err != nil && !presumed(o, 8, err) {
			err.Offset = uint64(o - off)
			return nil, err
		}
		// mutant: half of an old address
		if isPointer && size > 8 && bytes.Equal(a[o:o+4], b[o:o+4]) {
			return nil, &WordError{Offset: uint64(o - off), A: binary.LittleEndian.Uint64(a[o:]), B: binary.LittleEndian.Uint64(b[o:]), Retry: true,
				Reason: "its lower half is the same in both runs: a pointer, or four bytes beside half of one"}
		}
		if isPointer {
			clear(out[o : o+8])
			reason := ""
			// mutant: old address in padding
			if size > 8 {
				reason = p.blocks.leftover(ptr)
			}
			if reason != "" {
				pad(Padding{Offset: o, Size: 8, pointer: p.blocks.target(ptr), Cause: &WordError{
					Offset: uint64(o - off), A: binary.LittleEndian.Uint64(a[o:]), B: binary.LittleEndian.Uint64(b[o:]),
					Reason: fmt.Sprintf("it leads to %s in both runs, %s", ptr, reason)}})
			} else {
				relocations = append(relocations, graphir.Relocation{Offset: o, Pointer: ptr})
			}
		}
		// mutant: pointer inside a by-value struct
		o += 8
	}
	return relocations, nil
}

// mayHoldPadding reports whether a parameter can be a struct with bytes that no code wrote. In a struct of two bytes, an empty
// member is such a byte. Eight bytes can be a struct of a few small members or of an unused capture, unless they may be an
// address of device memory that the recorder does not know. Such memory would lie near the memory that it does know.
func (p *prover) mayHoldPadding(a, b []byte, off, size uint32) bool {
	if size != 8 {
		return true
	}
	near := func(run *liveSet, v uint64) bool {
		lo, hi := run.deviceSpan()
		return lo < hi && v+nearDevice >= lo && v <= hi+nearDevice
	}
	return !near(p.a, binary.LittleEndian.Uint64(a[off:])) && !near(p.b, binary.LittleEndian.Uint64(b[off:]))
}

// nearDevice is how far from known device memory an address of unknown device memory is looked for.
const nearDevice = 1 << 40
