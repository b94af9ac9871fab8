package rebuild

import (
	"fmt"
	"math"
	"slices"
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
	call   cuda.Entry
	node   int32
	launch launch
}

// launch has the facts on which the arguments of a call that sets a kernel node's parameters depend, without the values of the
// parameters. Other calls have no launch.
type launch struct {
	kernel, size uint32  // size of the parameters
	at           uintptr // in the arena
	node         uintptr // slot
}

// program is a flat list of driver calls. The targets of their pointers lie in an arena; handles that one call stores and a
// later one passes lie there too (slots). A program and its arena are reset together: most of the calls are then written once more.
type program struct {
	calls []call
	steps []step
	held  int // calls from before the reset, which stay until others are written
}

// arg is one argument; a slot's value is read when the call is made.
type arg struct {
	value uint64
	slot  bool
}

func val(v uint64) arg                   { return arg{value: v} }
func ptr[T any](p *T) arg                { return arg{value: uint64(uintptr(unsafe.Pointer(p)))} }
func slot(p *uint64) arg                 { return arg{value: uint64(uintptr(unsafe.Pointer(p))), slot: true} }
func (p *program) describe(i int) string { return p.steps[i].String() }

func (p *program) reset() { p.held, p.calls, p.steps = len(p.calls), p.calls[:0], p.steps[:0] }

// reserve makes room for n more calls. New memory holds no calls from before the reset.
func (p *program) reserve(n int) {
	if cap(p.calls)-len(p.calls) < n || cap(p.steps)-len(p.steps) < n {
		p.held = 0
	}
	p.calls, p.steps = slices.Grow(p.calls, n), slices.Grow(p.steps, n)
}

// repeats reports whether the next call has stood in its place since before the reset, with its arguments in the same part of the
// arena, and if so appends it.
func (p *program) repeats(l *launch) bool {
	n := len(p.calls)
	// mutant: calls that are written once
	if n >= p.held || p.steps[:n+1][n].launch != *l {
		return false
	}
	p.calls, p.steps = p.calls[:n+1], p.steps[:n+1]
	return true
}

func (s step) String() string {
	if s.node == noNode {
		return s.call.String()
	}
	return fmt.Sprintf("node %d: %s", s.node, s.call)
}

// add appends a call. The function's address is filled in by play, so a program can be laid out with no driver. Arguments beyond the
// given ones keep their earlier values: the player does not read them.
func (p *program) add(c cuda.Entry, node int, args ...arg) {
	p.reserve(1)
	n := len(p.calls)
	p.calls, p.steps = p.calls[:n+1], p.steps[:n+1]
	next := &p.calls[n]
	deref := uint32(0)
	for i := range args {
		next.Arg[i] = args[i].value
		if args[i].slot {
			deref |= 1 << i
		}
	}
	next.Nargs, next.Deref = uint32(len(args)), deref
	p.steps[n] = step{call: c, node: int32(node)}
}

// arena hands out memory that C may read at any time: outside the Go heap, never moved, freed all at once.
type arena struct {
	chunks [][]byte
	next   int // chunk to use after this one
	free   []byte
}

// Chunks are small because the kernel makes all their pages at once, which costs less than a fault a page.
const (
	arenaChunk = 64 << 10
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
			chunk, err := syscall.Mmap(-1, 0, max(rounded, arenaChunk), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_POPULATE)
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
