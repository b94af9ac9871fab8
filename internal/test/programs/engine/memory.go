package main

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/internal/test/programs"
)

// Calls that only this engine makes.
var (
	memAllocPitch    = cuda.Driver("cuMemAllocPitch_v2")
	memAllocAsync    = cuda.Driver("cuMemAllocAsync")
	memAllocFromPool = cuda.Driver("cuMemAllocFromPoolAsync")
	memFreeAsync     = cuda.Driver("cuMemFreeAsync")
	memAllocManaged  = cuda.Driver("cuMemAllocManaged")
	memHostAlloc     = cuda.Driver("cuMemHostAlloc")
	memFreeHost      = cuda.Driver("cuMemFreeHost")
	memHostRegister  = cuda.Driver("cuMemHostRegister_v2")
	deviceGetPool    = cuda.Driver("cuDeviceGetDefaultMemPool")
	memReserve       = cuda.Driver("cuMemAddressReserve")
	memCreate        = cuda.Driver("cuMemCreate")
	memMap           = cuda.Driver("cuMemMap")
	memSetAccess     = cuda.Driver("cuMemSetAccess")
	copyToDevice     = cuda.Driver("cuMemcpyHtoD_v2")
	copyToHost       = cuda.Driver("cuMemcpyDtoH_v2")
)

// room hands out zeroed memory outside of the Go heap: what C keeps a pointer to.
type room struct{ free []byte }

const roomChunk = 1 << 20

func (r *room) bytes(n int) ([]byte, error) {
	n = (n + 63) &^ 63
	if n > len(r.free) {
		chunk, err := syscall.Mmap(-1, 0, max(n, roomChunk), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			return nil, fmt.Errorf("map %d bytes: %w", n, err)
		}
		r.free = chunk
	}
	out := r.free[:n:n]
	r.free = r.free[n:]
	return out, nil
}

func addr(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

func alloc[T any](r *room) (*T, error) {
	var zero T
	b, err := r.bytes(int(unsafe.Sizeof(zero)))
	if err != nil {
		return nil, err
	}
	return (*T)(unsafe.Pointer(unsafe.SliceData(b))), nil
}

// allocate makes the buffers of one phase, in order, and frees those that are due.
func (p *program) allocate(capture bool) error {
	due := map[int][]int{}
	made := 0
	for i := range p.plan.Buffers {
		b := &p.plan.Buffers[i]
		if b.Capture != capture {
			continue
		}
		work := func() error { return p.make(i, b) }
		if b.Thread {
			work = func() error { return p.e.elsewhere(func() error { return p.make(i, b) }) }
		}
		if err := work(); err != nil {
			return fmt.Errorf("buffer %d: %w", i, err)
		}
		made++
		if b.Freed > 0 {
			due[made+b.Freed-1] = append(due[made+b.Freed-1], i)
		}
		for _, k := range due[made] {
			if err := p.release(k); err != nil {
				return fmt.Errorf("free buffer %d: %w", k, err)
			}
		}
		delete(due, made)
	}
	for at := made; len(due) > 0; at++ {
		for _, k := range due[at] {
			if err := p.release(k); err != nil {
				return fmt.Errorf("free buffer %d: %w", k, err)
			}
		}
		delete(due, at)
	}
	return nil
}

func (p *program) make(i int, b *programs.Buffer) error {
	// Not on the stack, which moves while nothing but a number refers to it.
	got, err := alloc[struct{ at, pitch uint64 }](&p.e.room)
	if err != nil {
		return err
	}
	out, size := uintptr(unsafe.Pointer(&got.at)), uintptr(b.Size)
	switch b.Kind {
	case programs.Device:
		err = func() error {
			d, err := cuda.MemAlloc(b.Size)
			got.at = uint64(d)
			return err
		}()
	case programs.Pitch:
		err = memAllocPitch.Call(out, uintptr(unsafe.Pointer(&got.pitch)), size, 1, 4)
	case programs.Async:
		err = memAllocAsync.Call(out, size, uintptr(p.e.streams[0]))
	case programs.Pool:
		err = memAllocFromPool.Call(out, size, p.e.pool, uintptr(p.e.streams[0]))
	case programs.Pinned:
		err = memHostAlloc.Call(out, size, 2)
	case programs.Registered:
		var data []byte
		// With room behind it: where two registrations touch, nothing tells the end of one from the start of the other.
		if data, err = p.e.room.bytes(int(b.Size) + 4096); err == nil {
			got.at = addr(data)
			err = memHostRegister.Call(uintptr(got.at), size, 2)
		}
	case programs.Mapped:
		got.at, err = p.e.mapped(b.Size, 1)
	case programs.Spanning:
		got.at, err = p.e.mapped(mappingBytes, 2)
		got.at += mappingBytes - b.Size/2
	case programs.Managed:
		err = memAllocManaged.Call(out, size, 1)
	case programs.Block:
		got.at = p.addr[b.Parent] + b.Offset
	}
	p.addr[i] = got.at
	return err
}

const mappingBytes = 2 << 20 // the least that can be mapped

// mapped reserves addresses and maps pieces of device memory there, one behind the other.
func (e *engine) mapped(size, pieces uint64) (uint64, error) {
	c, err := alloc[struct {
		at, handle uint64
		prop       [8]uint32 // CUmemAllocationProp: pinned, of device 0
		access     [3]uint32 // CUmemAccessDesc: device 0, read and write
	}](&e.room)
	if err != nil {
		return 0, err
	}
	c.prop[0], c.prop[2] = 1, 1
	c.access[0], c.access[2] = 1, 3
	if err := memReserve.Call(uintptr(unsafe.Pointer(&c.at)), uintptr(size*pieces), 0, 0, 0); err != nil {
		return 0, err
	}
	for i := range pieces {
		if err := memCreate.Call(uintptr(unsafe.Pointer(&c.handle)), uintptr(size), uintptr(unsafe.Pointer(&c.prop)), 0); err != nil {
			return 0, err
		}
		if err := memMap.Call(uintptr(c.at+i*size), uintptr(size), 0, uintptr(c.handle), 0); err != nil {
			return 0, err
		}
	}
	return c.at, memSetAccess.Call(uintptr(c.at), uintptr(size*pieces), uintptr(unsafe.Pointer(&c.access)), 1)
}

func (p *program) release(i int) error {
	at := uintptr(p.addr[i])
	p.addr[i] = 0
	switch p.plan.Buffers[i].Kind {
	case programs.Pinned:
		return memFreeHost.Call(at)
	case programs.Async, programs.Pool:
		if err := memFreeAsync.Call(at, uintptr(p.e.streams[0])); err != nil {
			return err
		}
		return p.e.streams[0].Synchronize()
	}
	return cuda.DevicePtr(at).Free()
}

// put writes bytes to any memory, as the host does.
func put(to uint64, data []byte) error {
	return copyToDevice.Call(uintptr(to), uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)))
}

func get(from uint64, size int) ([]byte, error) {
	out := make([]byte, size)
	return out, copyToHost.Call(uintptr(unsafe.Pointer(&out[0])), uintptr(from), uintptr(size))
}

// words is what the host puts into a buffer: a function of the program, the buffer and the round.
func words(seed uint64, buffer, round int) []byte {
	h := seed*0x9e3779b97f4a7c15 + uint64(buffer)<<32 + uint64(round)
	var out []byte
	for range programs.Words {
		h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
		out = binary.LittleEndian.AppendUint32(out, uint32(h>>32)%1000)
	}
	return out
}

// initialise gives every buffer of one phase that holds something a defined content.
func (p *program) initialise(capture bool) error {
	for i := range p.plan.Buffers {
		b := &p.plan.Buffers[i]
		if b.Capture != capture || p.addr[i] == 0 || b.Temporary || b.Kind == programs.Managed {
			continue
		}
		data := words(p.plan.Seed, i, 0)
		full := make([]byte, b.Size)
		copy(full, data[:min(len(data), len(full))])
		if err := put(p.addr[i], full); err != nil {
			return fmt.Errorf("fill buffer %d: %w", i, err)
		}
	}
	for t := range p.plan.Tables {
		table := &p.plan.Tables[t]
		if p.plan.Buffers[table.Buffer].Capture != capture {
			continue
		}
		if err := put(p.addr[table.Buffer], p.pointers(table.Targets)); err != nil {
			return fmt.Errorf("fill table %d: %w", t, err)
		}
	}
	return nil
}

func (p *program) pointers(to []programs.Pointer) []byte {
	var out []byte
	for _, t := range to {
		out = binary.LittleEndian.AppendUint64(out, p.at(t))
	}
	return out
}

// at is the address of a place in this process.
func (p *program) at(to programs.Pointer) uint64 {
	if to.Buffer < 0 {
		return p.modules[-1-to.Buffer].state + to.Offset
	}
	return p.addr[to.Buffer] + to.Offset
}
