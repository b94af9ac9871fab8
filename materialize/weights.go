package materialize

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/materialize/compile"
	"medusa/materialize/recording"
)

// An artifact serves every checkpoint of its configuration, unless its graphs hold a value made from weights. An engine that can load other values has
// them in record-b. A word that depends on them then differs between the recordings, as an address does, and is no pointer: it is presumed padding,
// an unstable byte of saved contents, or an error. Verification runs with the checkpoint's own weights, and fails if such a word matters. Both
// recordings are then made with these weights, and their contents become part of the identity.

// tiedFolder is the folder below a series' own that has the runs in which the contents of weights count.
const tiedFolder = "tied"

// attempt is a candidate, or how far the attempt to make one came.
type attempt struct {
	*candidate
	a, b  []*recording.Recording // by rank
	specs []*graphir.Spec
	pads  compile.Paddings // of compiling
}

// makeCandidate records, compiles and verifies with the given sizes of the KV caches. If the graphs depend on the contents of the weights, the candidate
// is tied to them.
func makeCandidate(ctx context.Context, e *engine, o Options, caches []cache, steps int) (_ *candidate, err error) {
	free := &attempt{}
	if e.tied == "" { // else the candidate with larger KV caches was
		e.contents = contract.ContentsOther
		free, err = attemptCandidate(ctx, e, o, caches, steps)
		if err == nil || errors.Is(err, errStopped) || ctx.Err() != nil || !free.hadOtherWeights() {
			return free.candidate, err
		}
		o.Step(1, steps, "record-a: record it again, with the same weights in both recordings: "+firstLine(err))
	}
	counting := *e
	counting.contents, counting.kept = contract.ContentsCount, nil
	counting.dir = filepath.Join(e.dir, tiedFolder)
	// mutant: recordings of a resumed series that is tied
	if o.Resume {
		counting.kept, _ = counting.readSeries() // the series may not have come so far
	}
	if err := os.MkdirAll(counting.dir, 0o700); err != nil {
		return nil, fmt.Errorf("materialize %s: %w", o.Output, err)
	}
	tied, errTied := attemptCandidate(ctx, &counting, o, caches, steps)
	if errTied == nil && e.tied == "" {
		e.tied = tieReason(err, free, tied)
		o.Note("the artifact is tied to its weights: " + e.tied)
	}
	return tied.candidate, errTied
}

// hadOtherWeights reports whether record-b loaded other weights than record-a, or could not.
func (t *attempt) hadOtherWeights() bool {
	states := func(ranks []*recording.Recording) bool {
		return slices.ContainsFunc(ranks, func(r *recording.Recording) bool { return identityFactors(r).Has(artifacts.KeyModelCheckpoint) })
	}
	// mutant: engines that do not load other weights
	return t.a != nil && !states(t.a) && (t.b == nil || states(t.b))
}

// tieReason is why a candidate counts the contents of weights: the error without that, and the words that other weights change.
func tieReason(err error, free, tied *attempt) string {
	const most = 3
	words := changedWords(free, tied)
	if n := len(words) - most; n > 0 {
		words = append(words[:most], fmt.Sprintf("%d more", n))
	}
	if len(words) == 0 {
		return "with other weights: " + firstLine(err)
	}
	return fmt.Sprintf("with other weights, %s differs: %s", strings.Join(words, ", "), firstLine(err))
}

// changedWords names the words of parameters and the saved buffers that differ only between recordings with different weights.
func changedWords(free, tied *attempt) (words []string) {
	name := func(p compile.Padding) string { return fmt.Sprintf("byte %d of %s", p.Cause.Offset, p.Cause.Where) }
	var same []string
	for _, p := range tied.pads {
		same = append(same, name(p))
	}
	for _, p := range free.pads {
		if n := name(p); !slices.Contains(same, n) {
			words = append(words, n)
		}
	}
	for rank := range min(len(free.specs), len(tied.specs)) {
		stable := map[string]bool{}
		for _, c := range tied.specs[rank].Contents {
			stable[bufferName(&c)] = len(c.Unstable) == 0
		}
		for _, c := range free.specs[rank].Contents {
			if n := bufferName(&c); len(c.Unstable) > 0 && stable[n] {
				words = append(words, fmt.Sprintf("%s from byte %d on", n, c.Offset+c.Unstable[0].Offset))
			}
		}
	}
	return slices.Compact(words)
}

func bufferName(c *graphir.Content) string {
	return fmt.Sprintf("saved buffer %s#%d", c.Space, c.Alloc)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
