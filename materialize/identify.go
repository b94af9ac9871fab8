package materialize

import (
	"context"
	"fmt"

	"medusa/artifacts"
)

// Identify starts the engine once, natively, up to ready, and returns what an artifact for it would be valid for. The
// engine says it itself: neither its command line nor the machine tells what it makes of them.
func Identify(ctx context.Context, o Options) (artifacts.Identity, error) {
	dir, remove, err := scratch()
	if err != nil {
		return nil, fmt.Errorf("identify engine: %w", err)
	}
	defer remove()
	e := &engine{argv: o.Argv, library: o.Library, dir: dir, log: o.Log}
	r, err := e.record(ctx, "identify", "profile", placement{}, 0)
	if err != nil {
		return nil, err
	}
	id := r.identityFactors()
	if len(id) == 0 {
		return nil, fmt.Errorf("identify engine: it marked no identity (it does not support Medusa)")
	}
	return id, id.Validate()
}
