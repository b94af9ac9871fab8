package digest

import (
	"bytes"
	"encoding/binary"
	"sort"
	"sync"
)

// The constants of Sum; package devicehash's kernel has the same.
const (
	sumStep  = 0x9e3779b97f4a7c15
	sumMix1  = 0xbf58476d1ce4e5b9
	sumMix2  = 0x94d049bb133111eb
	sumMix3  = 0xd6e8feb86659fd93
	wordSize = 8
)

// Sum is the hash of one chunk, which a device computes as well (package devicehash): every word passes through a function
// of its own, and the results are added up, so that any number of threads may share the work in any order.
//
// The chunk is a row of little-endian 64-bit words, the last one filled up with zeros. Word w at place i, counted from 0,
// is mixed, modulo 2^64, by
//
//	x = w XOR (i+1)*step; x = (x XOR x>>32)*mix1; x = (x XOR x>>29)*mix2; x = x XOR x>>32
//	y = x*mix3; y = y XOR y>>31
//
// and the hash is the sum of all x plus the size in bytes, then the sum of all y.
//
// Each step can be undone, so a change within one word is always noticed, in both sums. If several words differ, as
// they do when a kernel, a copy or an address is wrong, both sums meet by chance only: once in 2^128 pairs of chunks,
// as far as the mixing is as good as it looks in tests. It is no protection against an attacker who chooses the
// contents; an artifact's signature is.
func Sum(chunk []byte) []byte {
	// mutant: a chunk of zeros is one in all its bytes
	if len(chunk) == ChunkBytes && bytes.Equal(chunk, zeros[:]) {
		return bytes.Clone(zeroSum())
	}
	return sum(chunk)
}

// On the simulated GPU, most memory of a large model was never written. Comparing a chunk with zeros is
// thirty times as fast as hashing it.
var (
	zeros   [ChunkBytes]byte
	zeroSum = sync.OnceValue(func() []byte { return sum(zeros[:]) })
)

func sum(chunk []byte) []byte {
	x, y := uint64(len(chunk)), uint64(0)
	key := uint64(0)
	add := func(w uint64) {
		key += sumStep
		w ^= key
		w = (w ^ w>>32) * sumMix1
		w = (w ^ w>>29) * sumMix2
		w ^= w >> 32
		x += w
		w *= sumMix3
		y += w ^ w>>31
	}
	for ; len(chunk) >= wordSize; chunk = chunk[wordSize:] {
		add(binary.LittleEndian.Uint64(chunk))
	}
	if len(chunk) > 0 {
		var last [wordSize]byte
		copy(last[:], chunk)
		add(binary.LittleEndian.Uint64(last[:]))
	}
	out := make([]byte, HashBytes)
	binary.LittleEndian.PutUint64(out, x)
	binary.LittleEndian.PutUint64(out[wordSize:], y)
	return out
}

// Object is something that pointers lead to.
type Object struct{ Base, Size, ID uint64 }

// Objects are all that a process has, by ascending base.
type Objects []Object

// Canonicalise replaces every aligned word that points into an object by object and offset, so that equal contents hash
// equal in processes whose addresses differ. offset is the place of buf in its object, whose base is aligned.
func (o Objects) Canonicalise(buf []byte, offset uint64) {
	if len(o) == 0 {
		return
	}
	low, high := o.Bounds()
	for i := int(-offset & (wordSize - 1)); i+wordSize <= len(buf); i += wordSize {
		word := binary.LittleEndian.Uint64(buf[i:])
		if word < low || word > high {
			continue
		}
		if canonical, ok := o.find(word); ok {
			binary.LittleEndian.PutUint64(buf[i:], canonical)
		}
	}
}

// Bounds returns the lowest and the highest address that may point into an object. There has to be one.
func (o Objects) Bounds() (low, high uint64) {
	last := o[len(o)-1]
	return o[0].Base, last.Base + last.Size
}

// find returns the canonical word of an address. One past an end belongs to the object that begins there, if any. No
// address of user space has its upper bits set: a canonical word equals no plain one.
func (o Objects) find(addr uint64) (canonical uint64, ok bool) {
	n := sort.Search(len(o), func(i int) bool { return o[i].Base > addr })
	if n == 0 {
		return 0, false
	}
	at := o[n-1]
	offset := addr - at.Base
	return 1<<63 | at.ID<<40 | offset&(1<<40-1), offset <= at.Size
}
