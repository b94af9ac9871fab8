package materialize

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"medusa/artifacts"
	"medusa/restore/digest"
)

// DigestError is memory in which a restored graph left other bytes than the natively captured one.
type DigestError struct {
	Graph        string // empty: before any replay, or after the last
	Alloc        uint32
	Name         string // of the tensor, if the engine named one
	Class        digest.Class
	Offset, Size uint64 // the chunk, in bytes of the allocation
	Differing    int    // chunks of this graph that differ in all
	Varies       bool   // two restored replays differ from each other, too
}

func (e *DigestError) Error() string {
	where := e.Graph
	if where == "" {
		where = "engine at ready"
	}
	text := fmt.Sprintf("verify graph %q: %s memory alloc#%d %s bytes %d to %d: restored and native differ (%d chunks in all)",
		where, e.Class, e.Alloc, e.Name, e.Offset, e.Offset+e.Size, e.Differing)
	if e.Varies {
		text += "; so do two restored replays: its results vary (does it add up floats in an order that varies?)"
	}
	return text
}

// compareDigests compares the restored run with the native one. If two native replays left a chunk alike, both restored
// ones must leave it so. If they did not, its hashes are not compared (only a measured bound is), and outside
// temporaries it marks its graph as not deterministic.
func compareDigests(native, restored *digest.Digest) ([]artifacts.GraphCheck, error) {
	if len(native.Graphs) != len(restored.Graphs) {
		return nil, fmt.Errorf("verify: %d graphs replayed natively, %d restored", len(native.Graphs), len(restored.Graphs))
	}
	// mutant: memory at ready, weights at the end
	for _, part := range [][2][]digest.Range{{native.Ready, restored.Ready}, {native.End, restored.End}} {
		if _, err := compareRanges("", part[0], part[1]); err != nil {
			return nil, err
		}
	}
	var out []artifacts.GraphCheck
	for i := range native.Graphs {
		n, r := &native.Graphs[i], &restored.Graphs[i]
		if n.Label != r.Label {
			return nil, fmt.Errorf("verify graph %d: %q natively, %q restored", i, n.Label, r.Label)
		}
		check, err := compareRanges(n.Label, n.Ranges, r.Ranges)
		if err != nil {
			return nil, err
		}
		if check.BytesCompared == 0 {
			return nil, fmt.Errorf("verify graph %q: no memory could be compared (did the engine name its outputs?)", n.Label)
		}
		ranges, _ := reached(n.Ranges, r.Ranges)
		check.Label, check.Canary = n.Label, digest.ResultsOf(&digest.Graph{Ranges: ranges})
		out = append(out, check)
	}
	return out, nil
}

// reached splits the ranges of a native run into those that the restored run has as well, and the others. Others exist if a word has
// become presumed padding that still counts as a pointer in the native run's graphs.
func reached(native, restored []digest.Range) (common, others []digest.Range) {
	if len(native) == len(restored) {
		return native, nil
	}
	for _, n := range native {
		if k := len(common); k < len(restored) && restored[k].Alloc == n.Alloc && restored[k].Offset == n.Offset {
			common = append(common, n)
		} else {
			others = append(others, n)
		}
	}
	return common, others
}

// within reports whether both restored replays left numbers within the bound that native ones measured.
func within(native, restored *digest.Varying) bool {
	return restored != nil && len(restored.Values) == 2 && native.Within(restored.Values[0]) && native.Within(restored.Values[1])
}

func compareRanges(graph string, native, restored []digest.Range) (artifacts.GraphCheck, error) {
	check := artifacts.GraphCheck{NativeDeterministic: true}
	native, unreached := reached(native, restored)
	for _, r := range unreached {
		// mutant: memory that only a native graph writes
		if len(r.Written) > 0 {
			return check, &DigestError{Graph: graph, Alloc: r.Alloc, Name: r.Name, Class: r.Class, Offset: r.Offset, Size: r.Size, Differing: 1}
		}
	}
	if len(native) != len(restored) {
		return check, fmt.Errorf("verify graph %q: %d memory ranges natively, %d restored", graph, len(native), len(restored))
	}
	sum := sha256.New()
	var first *DigestError
	for i := range native {
		n, r := &native[i], &restored[i]
		if n.Alloc != r.Alloc || n.Offset != r.Offset || n.Size != r.Size || n.Class != r.Class || n.Stride != r.Stride {
			return check, fmt.Errorf("verify graph %q: memory range %d is alloc#%d+%d natively, alloc#%d+%d restored",
				graph, i, n.Alloc, n.Offset, r.Alloc, r.Offset)
		}
		temporary := n.Class == digest.Temporary || n.Class == digest.Unstable
		for c := range n.Chunks() {
			offset, size := n.Span(c)
			if !n.Stable(c) && n.Class == digest.Output && !n.Written.Has(c) && r.Written.Has(c) && first == nil {
				first = &DigestError{Graph: graph, Alloc: n.Alloc, Name: n.Name, Class: n.Class, Offset: offset, Size: size, Differing: 1}
			}
			if !n.Stable(c) {
				check.NativeDeterministic = check.NativeDeterministic && temporary
				if v := n.VaryingAt(c); v != nil {
					// mutant: results beyond the bound
					if !within(v, r.VaryingAt(c)) && first == nil {
						first = &DigestError{Graph: graph, Alloc: n.Alloc, Name: n.Name, Class: n.Class, Offset: offset, Size: size, Differing: 1, Varies: true}
					}
					check.BytesCompared += size
				}
				continue
			}
			want := n.Hash(0, c)
			// mutant: verification before the name
			if !bytes.Equal(want, r.Hash(0, c)) || !bytes.Equal(want, r.Hash(1, c)) {
				if first == nil {
					first = &DigestError{Graph: graph, Alloc: n.Alloc, Name: n.Name, Class: n.Class, Offset: offset, Size: size}
				}
				first.Differing++
				first.Varies = first.Varies || !r.Stable(c)
			}
			check.BytesCompared += size
			sum.Write(want)
		}
	}
	if first != nil {
		return check, first
	}
	check.Digest = hex.EncodeToString(sum.Sum(nil))
	return check, nil
}
