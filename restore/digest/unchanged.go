package digest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Unchanged are chunks of memory that a restored process holds before its graphs run and still after it: the contents that the engine
// and the restorer put there. A later start has to hold the same.
type Unchanged struct {
	Chunks []byte `json:"chunks,omitempty"` // one bit a chunk, in the order of the ranges, the lowest bit first
	Sum    string `json:"sum,omitempty"`    // SHA-256 over the hashes of the chunks whose bit is set, in hex
}

// StaysUnchanged are the classes that Unchanged covers. The engine may change weights, KV cache and inputs.
var StaysUnchanged = []Class{Other, Permanent}

// UnchangedOf returns the chunks of the ranges, hashed before the replays, that the replays did not change. apart says which bytes of an allocation
// another start need not have; nil: it has all.
func UnchangedOf(before []Range, graphs []Graph, apart func(alloc uint32, offset, size uint64) bool) Unchanged {
	type place struct {
		alloc  uint32
		offset uint64
	}
	at := make(map[place]int, len(before)) // the first of the range's bits
	chunks := 0
	for i := range before {
		at[place{before[i].Alloc, before[i].Offset}] = chunks
		chunks += before[i].Chunks()
	}
	u := Unchanged{Chunks: bytes.Repeat([]byte{0xff}, (chunks+7)/8)}
	if chunks%8 != 0 {
		u.Chunks[len(u.Chunks)-1] = 1<<(chunks%8) - 1
	}
	was := make(map[place]*Range, len(before))
	for i := range before {
		was[place{before[i].Alloc, before[i].Offset}] = &before[i]
	}
	for g := range graphs {
		for i := range graphs[g].Ranges {
			r := &graphs[g].Ranges[i]
			old := was[place{r.Alloc, r.Offset}]
			if old == nil || old.Class != r.Class {
				continue
			}
			first := at[place{r.Alloc, r.Offset}]
			for c := range r.Chunks() {
				// mutant: chunks that replays change are left out
				if !r.Stable(c) || !bytes.Equal(r.Hash(0, c), old.Hash(0, c)) {
					u.Chunks[(first+c)/8] &^= 1 << ((first + c) % 8)
				}
			}
		}
	}
	for i := range before {
		r := &before[i]
		first := at[place{r.Alloc, r.Offset}]
		for c := range r.Chunks() {
			offset, size := r.Span(c)
			// mutant: memory with results of peers
			if apart != nil && apart(r.Alloc, offset, size) {
				u.Chunks[(first+c)/8] &^= 1 << ((first + c) % 8)
			}
		}
	}
	u.Sum, _ = u.SumOf(before)
	return u
}

// SumOf returns the sum that the ranges have in the chunks that stay unchanged.
func (u *Unchanged) SumOf(ranges []Range) (string, error) {
	sum := sha256.New()
	n := 0
	for i := range ranges {
		for c := range ranges[i].Chunks() {
			if n/8 < len(u.Chunks) && u.Chunks[n/8]&(1<<(n%8)) != 0 {
				sum.Write(ranges[i].Hash(0, c))
			}
			n++
		}
	}
	if (n+7)/8 != len(u.Chunks) {
		return "", fmt.Errorf("compare memory of %d chunks: there is a record of %d", n, 8*len(u.Chunks))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
