// Package digest is the output of a verifying run: hashes of all memory before and after each graph was replayed.
//
// The runs check-native and check-restored each write one Digest, from the same allocation roles, fills and order of ranges;
// comparing the two says whether a restored graph computed the same as the captured one. Every graph is replayed twice, with
// equal inputs and different garbage in its temporaries, so that chunks which natively depend on garbage show up as such.
//
// Read fails with a *FormatError on anything that Write did not produce.
package digest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"medusa/internal/atomicfile"
)

// ChunkBytes is the span of memory that one hash covers; the last chunk of a range may be shorter.
const ChunkBytes = 64 << 10

// HashBytes is the length of one hash (Sum).
const HashBytes = 16

// version changes with the meaning of any field.
const version = 3

// Class is the part that a range of memory plays. It decides how the range is treated before a replay and how its
// hashes are to be compared.
type Class string

const (
	// Weight memory is the engine's and only read: its hash must never change. Compare it.
	Weight Class = "weight"
	// KV and Input memory is filled with the same pseudo-random data before every replay. Compare it.
	KV    Class = "kv"
	Input Class = "input"
	// Output memory is filled with bytes that all differ between the two replays, so that chunks that a graph does not write show.
	// Compare the chunks that it writes, and demand that they stay the same. Memory of the graphs' own, through which one graph hands
	// its results to the next, is filled as inputs are.
	Output Class = "output"
	// Permanent memory is given its saved content before every replay. Compare it.
	Permanent Class = "permanent"
	// Other memory is unnamed memory of the engine: workspaces, counters. Its contents at ready are put back
	// before every replay. Compare it.
	Other Class = "other"
	// Temporary memory is the graphs' scratch, filled with other garbage before every replay. Compare a chunk only
	// if both native replays agree on it: there, the graph overwrote all of it.
	Temporary Class = "temporary"
	// Unstable bytes of saved contents differed between recordings and led nowhere; they are treated as Temporary.
	Unstable Class = "unstable"
)

// Digest is everything that one verifying run hashed.
type Digest struct {
	Version int    `json:"version"`
	Device  string `json:"device"`
	// Free is the device memory left in bytes once the self test was served.
	Free uint64 `json:"free"`
	// Ready holds Other and Weight memory as it was when the engine was ready, before anything was filled. A difference
	// between check-native and check-restored was left by skipped work.
	Ready []Range `json:"ready"`
	// Skipped holds Other and Weight memory that changed between warm-up and ready, before and after (check-native): by work that a
	// restored start skips, or that only a verifying run does.
	Skipped []Range `json:"skipped,omitempty"`
	// Unchanged is the Other and Permanent memory that no replay changed since the graphs had been restored (check-restored).
	Unchanged Unchanged `json:"unchanged"`
	// Weights is the hash of Weight memory when the graphs had been restored (check-restored).
	Weights string `json:"weights,omitempty"`
	// Computes says that a kernel of some graph wrote a result (check-native). On a device that runs no kernels, none does.
	Computes bool `json:"computes,omitempty"`
	// Graphs stand in the order of graphir.Spec.Graphs.
	Graphs []Graph `json:"graphs"`
	// End holds Weight memory after the last replay.
	End []Range `json:"end"`
}

// Graph is the memory after two replays of one graph.
type Graph struct {
	Label  string  `json:"label"`
	Batch  int64   `json:"batch"`
	Ranges []Range `json:"ranges"`
	// Stepped says that the engine has made this graph's step without a graph (check-native): Eager of the ranges holds.
	Stepped bool `json:"stepped,omitempty"`
	// ReadsInputs and ReadsKV say that the graph refers to inputs, and to the KV cache (check-native).
	ReadsInputs bool `json:"reads_inputs,omitempty"`
	ReadsKV     bool `json:"reads_kv,omitempty"`
	// Stale lists Permanent memory that serving the self test changed and that changes the graph's results (check-native):
	// the engine writes it, and a restored engine does not know its address. It holds no hashes.
	Stale []Range `json:"stale,omitempty"`
}

// Range is a piece of one allocation. Alloc is the index in the allocation sequence; Offset and Size are in bytes.
type Range struct {
	Alloc  uint32 `json:"alloc"`
	Offset uint64 `json:"offset"`
	Size   uint64 `json:"size"`
	Class  Class  `json:"class"`
	Name   string `json:"name,omitempty"` // of the tensor, if one is named
	// Pool says that it is memory of the graphs' own: bytes that one graph leaves there are scratch to others.
	Pool bool `json:"pool,omitempty"`
	// Stride is n if only every n-th chunk was hashed, to bound the time a large KV cache takes.
	Stride uint64 `json:"stride"`
	// Chunk is the number of bytes that one hash covers; 0: ChunkBytes. In an output it divides its rows, if these are known: Row bytes
	// each, of which the range begins at byte Place of the tensor.
	Chunk uint64 `json:"chunk,omitempty"`
	Row   uint64 `json:"row,omitempty"`
	Place uint64 `json:"place,omitempty"`
	// First and Second hold the hashes of the first and second replay, HashBytes a chunk. Second is empty if it
	// equals First.
	First  []byte `json:"first"`
	Second []byte `json:"second,omitempty"`
	// Written are the chunks of filled memory that differ from their fill after either replay. Eager are those that differ after the
	// engine's own step without a graph (check-native, if the engine can make one). NotFinite are chunks of floating-point results that
	// hold a NaN or an infinity after the first replay (check-native).
	Written   Bits `json:"written,omitempty"`
	Eager     Bits `json:"eager,omitempty"`
	NotFinite Bits `json:"not_finite,omitempty"`
	// OtherInputs and OtherKV are the chunks of outputs that change in a replay with other inputs or another KV cache (check-native).
	// OtherInputs also has such chunks of the KV cache.
	OtherInputs Bits `json:"other_inputs,omitempty"`
	OtherKV     Bits `json:"other_kv,omitempty"`
	// Varying are chunks of results that natively differ from replay to replay, within a bound.
	Varying []Varying `json:"varying,omitempty"`
}

// Bits are some of the chunks of a range, one bit each, the lowest first.
type Bits []byte

// Has reports whether chunk i is one of them.
func (b Bits) Has(i int) bool { return i/8 < len(b) && b[i/8]>>(i%8)&1 != 0 }

// Add puts chunk i in.
func (b *Bits) Add(i int) {
	for len(*b) <= i/8 {
		*b = append(*b, 0)
	}
	(*b)[i/8] |= 1 << (i % 8)
}

// Chunks returns the number of hashes of size bytes, which are at least one, if every stride-th chunk has one.
func Chunks(size, stride, chunk uint64) uint64 { return (size-1)/chunk/stride + 1 }

// chunk is how many bytes one hash covers.
func (r *Range) chunk() uint64 {
	if r.Chunk == 0 {
		return ChunkBytes
	}
	return r.Chunk
}

// Rows returns the first and the last row of the tensor that chunk i has bytes of; ok is false if the rows are unknown.
func (r *Range) Rows(i int) (first, last uint64, ok bool) {
	if r.Row == 0 {
		return 0, 0, false
	}
	offset, size := r.Span(i)
	at := r.Place + offset - r.Offset
	return at / r.Row, (at + size - 1) / r.Row, true
}

// Chunks returns the number of hashed chunks.
func (r *Range) Chunks() int {
	return len(r.First) / HashBytes
}

// Span returns the bytes of the allocation that chunk i covers.
func (r *Range) Span(i int) (offset, size uint64) {
	from := uint64(i) * r.Stride * r.chunk()
	return r.Offset + from, min(r.chunk(), r.Size-from)
}

// Hash returns the hash of chunk i after the first (0) or the second (1) replay.
func (r *Range) Hash(replay, i int) []byte {
	hashes := r.First
	if replay == 1 && len(r.Second) != 0 {
		hashes = r.Second
	}
	return hashes[i*HashBytes : (i+1)*HashBytes]
}

// Stable reports whether both replays left the same bytes in chunk i.
func (r *Range) Stable(i int) bool { return bytes.Equal(r.Hash(0, i), r.Hash(1, i)) }

// Results are the classes that a graph's results lie in.
var Results = []Class{KV, Input, Output}

// SumRanges is the SHA-256, in hex, of all hashes after the first replay.
func SumRanges(ranges []Range) string {
	sum := sha256.New()
	for i := range ranges {
		sum.Write(ranges[i].First)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// ResultsOf returns SumRanges of a graph's results, or "" if its two replays left different results.
func ResultsOf(g *Graph) string {
	var results []Range
	for i := range g.Ranges {
		r := &g.Ranges[i]
		if !slices.Contains(Results, r.Class) {
			continue
		}
		for c := range r.Chunks() {
			if !r.Stable(c) && (r.Class != Output || r.Written.Has(c)) {
				return ""
			}
		}
		results = append(results, *r)
	}
	return SumRanges(results)
}

// FormatError says why a file is no digest.
type FormatError struct {
	File  string
	Cause error
}

func (e *FormatError) Error() string { return fmt.Sprintf("read digest %s: %v", e.File, e.Cause) }

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Cause }

// Read reads a file of Write.
func Read(path string) (*Digest, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d Digest
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, &FormatError{path, err}
	}
	if err := d.validate(); err != nil {
		return nil, &FormatError{path, err}
	}
	return &d, nil
}

// Write stores the digest under its name in one step: a killed run leaves no file there.
func Write(path string, d *Digest) error {
	d.Version = version
	if err := d.validate(); err != nil {
		return fmt.Errorf("write digest %s: %w", path, err)
	}
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("write digest %s: %w", path, err)
	}
	return atomicfile.Write(path, 0o600, bytes.NewReader(data))
}

func (d *Digest) validate() error {
	if d.Version != version {
		return fmt.Errorf("version %d, want %d", d.Version, version)
	}
	if err := validateRanges("ready", d.Ready); err != nil {
		return err
	}
	if err := validateRanges("skipped", d.Skipped); err != nil {
		return err
	}
	for i, g := range d.Graphs {
		if err := validateRanges(fmt.Sprintf("graph %d (%s)", i, g.Label), g.Ranges); err != nil {
			return err
		}
	}
	return validateRanges("end", d.End)
}

func validateRanges(section string, ranges []Range) error {
	for i := range ranges {
		r := &ranges[i]
		if r.Stride == 0 || r.Size == 0 || r.Offset+r.Size < r.Offset {
			return fmt.Errorf("%s: range %d: size %d at offset %d, stride %d", section, i, r.Size, r.Offset, r.Stride)
		}
		chunks := uint64(len(r.First)) / HashBytes
		if want := Chunks(r.Size, r.Stride, r.chunk()); chunks != want || len(r.First)%HashBytes != 0 {
			return fmt.Errorf("%s: range %d: %d bytes of hashes for %d chunks", section, i, len(r.First), want)
		}
		if len(r.Second) != 0 && len(r.Second) != len(r.First) {
			return fmt.Errorf("%s: range %d: %d bytes of hashes after the second replay, %d after the first", section, i, len(r.Second), len(r.First))
		}
	}
	return nil
}
