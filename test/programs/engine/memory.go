package main

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/test/programs"
)

// room hands out zeroed memory outside of the Go heap, to which C may keep a pointer.
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
	var at cuda.DevicePtr
	var host cuda.HostPtr
	var err error
	switch b.Kind {
	case programs.Device:
		at, err = cuda.MemAlloc(b.Size)
	case programs.Pitch:
		at, _, err = cuda.MemAllocPitch(b.Size, 1, 4)
	case programs.Async:
		at, err = cuda.MemAllocAsync(b.Size, p.e.streams[0])
	case programs.Pool:
		at, err = p.e.pool.AllocAsync(b.Size, p.e.streams[0])
	case programs.Pinned:
		host, err = cuda.MemHostAlloc(b.Size, cuda.MemHostAllocMapped)
	case programs.Registered:
		var data []byte
		// With room behind it: if two registrations touch, the end of one cannot be told from the start of the
		// other.
		if data, err = p.e.room.bytes(int(b.Size) + 4096); err == nil {
			host = cuda.HostPtr(addr(data))
			err = host.Register(b.Size, cuda.MemHostRegisterMapped)
		}
	case programs.Mapped:
		at, err = mapped(b.Size, 1)
	case programs.Spanning:
		at, err = mapped(mappingBytes, 2)
		at += cuda.DevicePtr(mappingBytes - b.Size/2)
	case programs.Managed:
		at, err = cuda.MemAllocManaged(b.Size, cuda.MemAttachGlobal)
	case programs.Block:
		at = cuda.DevicePtr(p.addr[b.Parent] + b.Offset)
	}
	p.addr[i] = uint64(at) | uint64(host)
	return err
}

const mappingBytes = 2 << 20 // the least that can be mapped

// mapped reserves addresses and maps pieces of device memory there, one behind the other.
func mapped(size, pieces uint64) (cuda.DevicePtr, error) {
	device := cuda.MemLocation{Type: cuda.MemLocationDevice}
	at, err := cuda.MemAddressReserve(size*pieces, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	for i := range pieces {
		piece, err := cuda.MemCreate(size, &cuda.MemAllocationProp{Type: cuda.MemAllocationPinned, Location: device}, 0)
		if err != nil {
			return 0, err
		}
		if err := (at + cuda.DevicePtr(i*size)).Map(size, 0, piece, 0); err != nil {
			return 0, err
		}
	}
	return at, at.SetAccess(size*pieces, []cuda.MemAccessDesc{{Location: device, Flags: cuda.MemAccessReadWrite}})
}

func (p *program) release(i int) error {
	at := cuda.DevicePtr(p.addr[i])
	p.addr[i] = 0
	switch p.plan.Buffers[i].Kind {
	case programs.Pinned:
		return cuda.HostPtr(at).Free()
	case programs.Async, programs.Pool:
		if err := at.FreeAsync(p.e.streams[0]); err != nil {
			return err
		}
		return p.e.streams[0].Synchronize()
	}
	return at.Free()
}

// put writes bytes to any memory, as the host does.
func put(to uint64, data []byte) error {
	return cuda.CopyToDevice(cuda.DevicePtr(to), data)
}

// words are the values that the host puts into a buffer: a function of the program, the buffer and the round.
func words(seed uint64, buffer, round int) []byte {
	h := seed*0x9e3779b97f4a7c15 + uint64(buffer)<<32 + uint64(round)
	var out []byte
	for range programs.Words {
		h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
		out = binary.LittleEndian.AppendUint32(out, uint32(h>>32)%1000)
	}
	return out
}

// initialise gives every buffer of one phase that has contents a defined content.
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
