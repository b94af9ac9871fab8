package materialize

import (
	"context"
	"fmt"
	"path/filepath"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/interpose"
	"medusa/materialize/recording"
)

// Identify starts the engine once, natively, until it has stated its identity, and returns the identity of an artifact for it,
// by rank. Only the engine can say it: it does not follow from the command line and the machine.
func Identify(ctx context.Context, o Options) (_ []artifacts.Identity, err error) {
	dir, remove, err := runFolder()
	if err != nil {
		return nil, fmt.Errorf("identify engine: %w", err)
	}
	defer remove()
	defer func() { err = keepOutput(err, "") }()
	e := &engine{argv: o.Argv, library: o.Library, dir: dir, log: o.Log}
	path := filepath.Join(dir, "identify.trace")
	// An engine that states no identity ends at ready.
	cfg := interpose.Config{Library: o.Library, Mode: interpose.Record, TracePath: path, ExitAtIdentity: true, ExitAtReady: true,
		ExtraEnv: contract.Start{Run: contract.RunProfile, Weights: o.Contents}.Environ()}
	ranks, err := after(e.run(ctx, "identify", cfg), func() ([]*recording.Recording, error) { return readRanks("identify", path, e.recording) })
	if err != nil {
		return nil, err
	}
	var all []artifacts.Identity
	for rank, r := range ranks {
		id := identityFactors(r)
		if len(id) == 0 {
			return nil, fmt.Errorf("identify engine: it marked no identity (it does not support Medusa, or its plug-in is switched off: see docs/engines.md)")
		}
		if err := id.Validate(); err != nil {
			return nil, ofRank(rank, len(ranks), err)
		}
		all = append(all, id)
	}
	return all, nil
}
