package rebuild

import (
	"fmt"
	"math"
	"syscall"
	"unsafe"

	"medusa/internal/contract"
	"medusa/internal/cuda"
)

// call is one call of a program.
type call = contract.Call

// noNode marks calls that concern the graph as a whole.
const noNode = -1

// step is the purpose of a program's call, so that a failing index can be named.
type step struct {
	call cuda.Entry
	node int32
}

// program is a flat list of driver calls. The targets of their pointers lie in an arena; handles that one call stores and a
// later one passes lie there too (slots).
type program struct {
	calls []call
	steps []step
}

// arg is one argument; a slot's value is read when the call is made.
type arg struct {
	value uint64
	slot  bool
}

func val(v uint64) arg                   { return arg{value: v} }
func ptr[T any](p *T) arg                { return arg{value: uint64(uintptr(unsafe.Pointer(p)))} }
func slot(p *uint64) arg                 { return arg{value: uint64(uintptr(unsafe.Pointer(p))), slot: true} }
func (p *program) reset()                { p.calls, p.steps = p.calls[:0], p.steps[:0] }
func (p *program) describe(i int) string { return p.steps[i].String() }

func (s step) String() string {
	if s.node == noNode {
		return s.call.String()
	}
	return fmt.Sprintf("node %d: %s", s.node, s.call)
}

// add appends a call. The function's address is filled in by play, so a program can be laid out with no driver.
func (p *program) add(c cuda.Entry, node int, args ...arg) {
	p.calls = append(p.calls, call{Nargs: uint32(len(args))})
	next := &p.calls[len(p.calls)-1]
	for i, a := range args {
		next.Arg[i] = a.value
		if a.slot {
			next.Deref |= 1 << i
		}
	}
	p.steps = append(p.steps, step{c, int32(node)})
}

// arena hands out memory that C may read at any time: outside the Go heap, never moved, freed all at once.
type arena struct {
	chunks [][]byte
	next   int // chunk to use after this one
	free   []byte
}

const (
	arenaChunk = 4 << 20
	arenaAlign = 16
)

// bytes returns size bytes at an address divisible by 16. They are zero unless the arena was reset.
func (a *arena) bytes(size int) ([]byte, error) {
	if size < 0 || size > math.MaxInt-arenaAlign {
		return nil, fmt.Errorf("map %d bytes for graph parameters: no address space has as many", size)
	}
	rounded := (size + arenaAlign - 1) &^ (arenaAlign - 1)
	for rounded > len(a.free) {
		if a.next == len(a.chunks) {
			chunk, err := syscall.Mmap(-1, 0, max(rounded, arenaChunk), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			if err != nil {
				return nil, fmt.Errorf("map %d bytes for graph parameters: %w", rounded, err)
			}
			a.chunks = append(a.chunks, chunk)
		}
		a.free = a.chunks[a.next]
		a.next++
	}
	b := a.free[:size:size]
	a.free = a.free[rounded:]
	return b, nil
}

// reset takes everything back, for use again.
func (a *arena) reset() { a.next, a.free = 0, nil }

// release unmaps everything.
func (a *arena) release() {
	for _, c := range a.chunks {
		// Unmapping a whole mapping of our own cannot fail.
		_ = syscall.Munmap(c)
	}
	*a = arena{}
}

// place returns n values of T in the arena, zero unless the arena was reset. T must hold no Go pointers.
func place[T any](a *arena, n int) ([]T, error) {
	if n == 0 {
		return nil, nil
	}
	var zero T
	b, err := a.bytes(n * int(unsafe.Sizeof(zero)))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n), nil
}
