package materialize

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/interpose"
)

// An artifact holds nothing of a communicator, so each rank can be run without the others. Such a series starts the engine's command for one rank
// after another, on one GPU. The engine has a local operation in place of each call of the communicator (restore.Session.StandIn).

// peers is what a run is told about the other ranks. record-b has other data in their place than record-a: saved contents that depend on these data
// differ between the two, and so does a number in a graph. The compiler then notices them as it notices all that varies from start to start.
func (e *engine) peers(run string) contract.Peers {
	switch {
	case e.alone == 0:
		return ""
	// mutant: recordings with other data from peers
	case run == runRecordB:
		return contract.PeersOther
	}
	return contract.PeersAbsent
}

// runAlone starts the command for each rank. A command that fails may have left all that it should (after): then the other ranks are run as well.
func (e *engine) runAlone(ctx context.Context, name string, cfg interpose.Config) (first error) {
	for rank := range e.alone {
		own := cfg
		own.ExtraEnv = slices.Concat(cfg.ExtraEnv, []string{fmt.Sprintf("%s=%d", contract.EnvRank, rank), fmt.Sprintf("%s=%d", contract.EnvWorldSize, e.alone)})
		err := e.start(ctx, name, fmt.Sprintf(".%d%s", rank, logSuffix), own)
		var failed *EngineError
		if err != nil && (!errors.As(err, &failed) || cfg.Mode == interpose.Record && !e.sealed(rankFile(cfg.TracePath, rank, e.alone))) {
			return ofRank(rank, e.alone, err)
		}
		if first == nil {
			first = ofRank(rank, e.alone, err)
		}
	}
	return first
}

// sealed reports whether a rank has left its trace at ready.
func (e *engine) sealed(path string) bool {
	_, err := e.ready(path)
	return err == nil
}

// unseen is the memory of a start that no run of the series shows.
func (o *Options) unseen() uint64 {
	if o.Alone == 0 {
		return 0
	}
	return o.Communicator
}

// leaveRoom makes the profiles those of ranks that have a communicator: its memory stays allocated, and is not left to the KV cache.
func leaveRoom(caches []cache, communicator uint64) error {
	for rank := range caches {
		k := &caches[rank]
		if communicator >= k.FreeAfter || communicator >= k.KVBytes && !k.Elastic() {
			return ofRank(rank, len(caches), fmt.Errorf("size KV cache: the communicator takes %d bytes, and the profile left %d for the cache (set --communicator-memory)", communicator, k.KVBytes))
		}
		// mutant: memory of a communicator that no run sees
		k.FreeAfter -= communicator
		if !k.Elastic() {
			k.KVBytes -= communicator
		}
		k.profiled = k.KVBytes // what it takes is no headroom
	}
	return nil
}

// alike gives all ranks the smallest cache, as ranks do that can ask each other.
func alike(caches []cache) {
	least := slices.MinFunc(caches, func(a, b cache) int { return int(int64(a.KVBytes) - int64(b.KVBytes)) })
	for i := range caches {
		caches[i].KVBytes = least.KVBytes
	}
}

// unstable reports whether saved contents have bytes that differed between the recordings.
func unstable(spec *graphir.Spec) bool {
	return slices.ContainsFunc(spec.Contents, func(c graphir.Content) bool { return len(c.Unstable) > 0 })
}

// forgetResults notes that a rank was verified alone. With all ranks, graphs with collective calls have other results, so a start has none to compare
// with.
func forgetResults(part *artifacts.Artifact) {
	v := &part.Verification
	v.Alone = true
	for i := range v.Graphs {
		// mutant: results without peers
		if part.Spec.HasCollectives(i) {
			v.Graphs[i].Canary = ""
		}
	}
}
