// Package devicehash computes digest.Sum of device memory on the device, so that checking a start does
// not copy gigabytes to the host.
//
// In: ranges of device memory and the objects that pointers lead to. Out: for each range the hashes of its chunks, the same that
// digest.Objects.Canonicalise and digest.Sum give on the host. New fails if the driver cannot load or run the kernel, or if the
// kernel's hashes of known bytes are not the host's; the caller then hashes on the host. Hash fails with the driver's error.
//
// The kernel is hash.cu, shipped as PTX (`make hash-ptx`), which the driver compiles for the device at hand.
package devicehash

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/restore/digest"
)

//go:embed hash.ptx
var ptx []byte

const (
	kernelName = "medusa_hash"
	finiteName = "medusa_finite"
	threads    = 256 // a block, as many words of a chunk at a time
)

// Hasher is the loaded kernel with memory of its own.
type Hasher struct {
	module   cuda.Module
	kernel   cuda.Function
	finite   cuda.Function
	args     *cuda.Args
	objects  digest.Objects
	table    cuda.DevicePtr // of objects
	out      cuda.DevicePtr
	capacity uint64 // hashes that out holds
}

// Range is device memory from an address that is a multiple of 8, of which every Stride-th chunk of Chunk bytes, a multiple of
// 8, counts.
type Range struct {
	Addr, Size, Stride, Chunk uint64
	Pointers                  bool // words that lie in an object are hashed as object and offset
}

// Chunks returns how many hashes the range has.
func (r *Range) Chunks() uint64 { return digest.Chunks(r.Size, r.Stride, r.Chunk) }

// New loads the kernel and tries it. chunks bounds the results of one call of Hash. If New fails, it gives everything back.
func New(objects digest.Objects, chunks uint64) (*Hasher, error) {
	h := &Hasher{args: cuda.NewArgs(), objects: objects, capacity: max(chunks, proofChunks)}
	err := h.open()
	if err == nil {
		err = h.prove()
	}
	if err != nil {
		return nil, fmt.Errorf("load hash kernel: %w", errors.Join(err, h.Close()))
	}
	return h, nil
}

func (h *Hasher) open() (err error) {
	if h.module, err = cuda.ModuleLoadData(append(ptx[:len(ptx):len(ptx)], 0)); err != nil {
		return err
	}
	if h.kernel, err = h.module.Function(kernelName); err != nil {
		return err
	}
	if h.finite, err = h.module.Function(finiteName); err != nil {
		return err
	}
	if h.out, err = cuda.MemAlloc(h.capacity * digest.HashBytes); err != nil {
		return err
	}
	if len(h.objects) == 0 {
		return nil
	}
	table := unsafe.Slice((*byte)(unsafe.Pointer(&h.objects[0])), uintptr(len(h.objects))*unsafe.Sizeof(h.objects[0]))
	if h.table, err = cuda.MemAlloc(uint64(len(table))); err != nil {
		return err
	}
	return cuda.CopyToDevice(h.table, table)
}

// Close gives everything back.
func (h *Hasher) Close() error {
	var errs []error
	for _, p := range []cuda.DevicePtr{h.table, h.out} {
		if p != 0 {
			errs = append(errs, p.Free())
		}
	}
	if h.module != 0 {
		errs = append(errs, h.module.Unload())
	}
	return errors.Join(errs...)
}

// Hash returns the hashes of each range's chunks, contiguous. It waits for the default stream only.
func (h *Hasher) Hash(ranges []Range) ([][]byte, error) {
	var chunks uint64
	for i := range ranges {
		if err := h.launch(&ranges[i], chunks); err != nil {
			return nil, fmt.Errorf("hash %d bytes at %#x: %w", ranges[i].Size, ranges[i].Addr, err)
		}
		chunks += ranges[i].Chunks()
	}
	sums := make([]byte, chunks*digest.HashBytes)
	if err := cuda.CopyToHost(sums, h.out); err != nil {
		return nil, fmt.Errorf("read hashes of device memory: %w", err)
	}
	out := make([][]byte, len(ranges))
	for i := range ranges {
		n := ranges[i].Chunks() * digest.HashBytes
		out[i], sums = sums[:n:n], sums[n:]
	}
	return out, nil
}

// NotFinite returns which chunks of the range hold a number that is NaN or infinite. low and high are the exponents' bits of the
// two numbers in a word of 32 bits, or both those of the one.
func (h *Hasher) NotFinite(r Range, low, high uint32) (digest.Bits, error) {
	found := make([]byte, 8*r.Chunks())
	if r.Addr%8 != 0 || r.Chunk%8 != 0 || r.Chunks() > h.capacity {
		return nil, fmt.Errorf("look for NaN in %d bytes at %#x: chunks of %d bytes", r.Size, r.Addr, r.Chunk)
	}
	h.args.Reset().U64(r.Addr).U64(r.Size).U64(r.Stride).U64(r.Chunk).I32(int(int32(low))).I32(int(int32(high))).Ptr(h.out)
	err := cuda.CopyToDevice(h.out, found)
	if err == nil {
		err = h.finite.Launch(cuda.Dim3{uint32(r.Chunks()), 1, 1}, cuda.Dim3{threads, 1, 1}, 0, 0, h.args)
	}
	if err == nil {
		err = cuda.CopyToHost(found, h.out)
	}
	if err != nil {
		return nil, fmt.Errorf("look for NaN in %d bytes at %#x: %w", r.Size, r.Addr, err)
	}
	var bits digest.Bits
	for i := range r.Chunks() {
		if found[8*i] != 0 {
			bits.Add(int(i))
		}
	}
	return bits, nil
}

// launch hashes one range into the place of a chunk in out.
func (h *Hasher) launch(r *Range, first uint64) error {
	if r.Addr%8 != 0 || r.Chunk%8 != 0 || first+r.Chunks() > h.capacity {
		return fmt.Errorf("%d hashes from the %d-th on, %d have room", r.Chunks(), first, h.capacity)
	}
	low, high := uint64(1), uint64(0)
	// mutant: pointers hashed as what they point to, on the device
	if r.Pointers && len(h.objects) > 0 {
		low, high = h.objects.Bounds()
	}
	h.args.Reset().U64(r.Addr).U64(r.Size).U64(r.Stride).U64(r.Chunk).Ptr(h.table).I32(len(h.objects)).U64(low).U64(high).
		Ptr(h.out + cuda.DevicePtr(first*digest.HashBytes))
	return h.kernel.Launch(cuda.Dim3{uint32(r.Chunks()), 1, 1}, cuda.Dim3{threads, 1, 1}, 0, 0, h.args)
}

// The proof's memory: a whole chunk, a part of one, and an odd end.
const (
	proofBytes  = digest.ChunkBytes + 3*8*threads + 5
	proofChunks = 2
)

// prove compares the kernel's hashes with the host's: a driver that compiles the kernel wrongly must
// not make a good start look bad.
func (h *Hasher) prove() error {
	data := make([]byte, proofBytes)
	for i := 0; i+8 <= len(data); i += 8 {
		word := uint64(i) * 0x2545f4914f6cdd1d
		if n := len(h.objects); n > 0 && i%64 == 0 {
			o := h.objects[i/64%n]
			word = o.Base + uint64(i)%(o.Size+2)
		}
		binary.LittleEndian.PutUint64(data[i:], word)
	}
	data[len(data)-1] = 1
	at, err := cuda.MemAlloc(uint64(len(data)))
	if err != nil {
		return err
	}
	got, err := h.hashOf(at, data)
	if err := errors.Join(err, at.Free()); err != nil {
		return err
	}
	h.objects.Canonicalise(data, 0)
	want := append(digest.Sum(data[:digest.ChunkBytes]), digest.Sum(data[digest.ChunkBytes:])...)
	// mutant: hash kernel proven before use
	if !bytes.Equal(got, want) {
		return fmt.Errorf("hash known bytes: the device gives %x, the host %x", got, want)
	}
	return nil
}

func (h *Hasher) hashOf(at cuda.DevicePtr, data []byte) ([]byte, error) {
	if err := cuda.CopyToDevice(at, data); err != nil {
		return nil, err
	}
	sums, err := h.Hash([]Range{{Addr: uint64(at), Size: uint64(len(data)), Stride: 1, Chunk: digest.ChunkBytes, Pointers: true}})
	if err != nil {
		return nil, err
	}
	return sums[0], nil
}
