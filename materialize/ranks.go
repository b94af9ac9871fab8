package materialize

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/spill"
	"medusa/materialize/compile"
	"medusa/materialize/recording"
)

// An engine with several worker processes leaves a trace of each: FILE.0, FILE.1 and so on, by rank. Each rank is compiled
// and verified like an engine of its own; all of them become one artifact.

const (
	traceSuffix  = ".trace"
	logSuffix    = ".log"    // the engine's output of a run
	secondSuffix = ".second" // medusa.h: another process of the same rank reached a phase
)

func removeTraces(path string) error {
	files, err := filepath.Glob(globQuote(path) + "*")
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

// globQuote makes a pattern that matches the name itself.
func globQuote(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// readRanks reads the traces of one run, by rank; an engine of one worker has one trace, without a rank.
func readRanks(run, path string, read func(path string) (*recording.Recording, error)) ([]*recording.Recording, error) {
	files, err := filepath.Glob(globQuote(path) + "*")
	if err != nil {
		return nil, fmt.Errorf("find traces of %s: %w", run, err)
	}
	ranks := map[int]string{}
	for _, f := range files {
		rest := strings.TrimPrefix(f, path)
		if first, ok := strings.CutSuffix(f, secondSuffix); ok {
			return nil, fmt.Errorf("read trace of %s: two worker processes wanted to write %s (an engine with several workers sets "+contract.EnvRank+" and "+contract.EnvWorldSize+" for each)",
				run, filepath.Base(first))
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(rest, ".")); err == nil {
			ranks[n] = f
		}
	}
	if len(ranks) == 0 {
		r, err := read(path)
		if err != nil {
			return nil, err
		}
		return []*recording.Recording{r}, nil
	}
	// A parent that only asks for its devices leaves a trace, too, but it is no worker.
	if r, err := recording.Read(path); err == nil && r.ReadyOrder != recording.NoOrder {
		return nil, fmt.Errorf("read trace of %s: beside %d ranks, a process without a rank reached %q", run, len(ranks), "ready")
	}
	var all []*recording.Recording
	for n := range len(ranks) {
		if ranks[n] == "" {
			return nil, fmt.Errorf("read traces of %s: %d ranks left one, rank %d did not", run, len(ranks), n)
		}
		r, err := read(ranks[n])
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", n, err)
		}
		if count, _ := identityFactors(r).Get(artifacts.KeyRankCount); count != strconv.Itoa(len(ranks)) {
			return nil, fmt.Errorf("read traces of %s: rank %d identifies itself as one of %q ranks, %d left a trace", run, n, count, len(ranks))
		}
		all = append(all, r)
	}
	return all, nil
}

// compileRanks compiles each rank on its own.
func compileRanks(a, b []*recording.Recording) (specs []*graphir.Spec, pads compile.Paddings, err error) {
	if len(a) != len(b) {
		return nil, nil, fmt.Errorf("compile: %d ranks in record-a, %d in record-b", len(a), len(b))
	}
	for i := range a {
		spec, own, err := compile.Compile(a[i], b[i], &spill.File{Dir: filepath.Dir(a[i].Path)})
		if err != nil {
			return nil, nil, ofRank(i, len(a), err)
		}
		specs, pads = append(specs, spec), append(pads, own...)
	}
	return specs, pads, nil
}

// ofRank adds the rank to an error.
func ofRank(rank, ranks int, err error) error {
	if err == nil || ranks == 1 {
		return err
	}
	return fmt.Errorf("rank %d: %w", rank, err)
}

// byRank lists the parts of an artifact.
func byRank(a *artifacts.Artifact) []*artifacts.Artifact {
	return slices.Concat([]*artifacts.Artifact{a}, a.Peers)
}

// rankFile is a rank's file if others write to path (package restore).
func rankFile(path string, rank, ranks int) string {
	if ranks == 1 {
		return path
	}
	return path + "." + strconv.Itoa(rank)
}
