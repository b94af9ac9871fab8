package supervisor

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"medusa/artifacts"
	"medusa/artifacts/probe"
)

// fitsHere returns a function that compares the facts of an identity about devices with the devices of this machine. It runs the probe
// once. The engine's process compares the whole identity. This check comes before any directory is unpacked.
func fitsHere(ctx context.Context, relaxed artifacts.Relaxed) func(artifacts.Identity) error {
	devices := sync.OnceValues(func() ([]artifacts.Identity, error) {
		found, err := probe.Devices(ctx)
		if err != nil {
			return nil, err
		}
		var out []artifacts.Identity
		for _, d := range found.Devices {
			out = append(out, probe.Factors(found.Driver, d))
		}
		return out, nil
	})
	return func(want artifacts.Identity) error {
		here, err := devices()
		if err != nil {
			return fmt.Errorf("compare device (directories stay packed): %w", err)
		}
		var first *artifacts.Mismatch
		for _, got := range here {
			known := slices.DeleteFunc(slices.Clone(got), func(f artifacts.Factor) bool { _, said := want.Get(f.Key); return !said })
			said := slices.DeleteFunc(slices.Clone(want), func(f artifacts.Factor) bool { _, said := known.Get(f.Key); return !said })
			m := artifacts.Compare(said, known, relaxed)
			if m == nil {
				return nil
			}
			if first == nil {
				first = m
			}
		}
		return fmt.Errorf("compare device (directories stay packed): %w", first)
	}
}
