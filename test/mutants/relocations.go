package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/interpose"
	"medusa/materialize"
	"medusa/materialize/compile"
)

// moveRelocations moves n random pointers of an artifact, one at a time, to the same offset of a neighbouring allocation, and
// demands that verification rejects each as a node that differs from the native start's. Whether the kernel follows the pointer,
// and whether a result depends on it, makes no difference.
func moveRelocations(ctx context.Context, n int, seed uint64, build string) error {
	dir, err := os.MkdirTemp("", "relocations-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("LD_LIBRARY_PATH", filepath.Join(build, "simulated")); err != nil {
		return err
	}
	f := &relocations{rng: rand.New(rand.NewPCG(seed, 1)), path: filepath.Join(dir, "x.medusa"), options: materialize.Options{
		Output:  filepath.Join(dir, "good.medusa"),
		Library: filepath.Join(build, "lib", interpose.LibraryName),
		Argv: []string{filepath.Join(build, "reference"), "run", "--model", "runners/reference/models/tiny",
			"--batch-sizes", "1,8,72", "--batches", "1", "--kv-cache-bytes", "33554432"},
		Step: func(int, int, string) {}, Note: func(string) {},
	}}
	if f.good, err = materialize.Run(ctx, f.options); err != nil {
		return err
	}
	for range n {
		if err := f.one(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("relocations: seed %d, %d moved, %d rejected\n", seed, n, n)
	return nil
}

type relocations struct {
	rng     *rand.Rand
	good    *artifacts.Artifact
	path    string
	options materialize.Options
}

// one moves a random pointer.
func (f *relocations) one(ctx context.Context) error {
	gi := f.rng.IntN(len(f.good.Spec.Graphs))
	g := f.good.Spec.Graphs[gi]
	var ni int
	for {
		ni = f.rng.IntN(len(g.Nodes))
		if k := g.Nodes[ni].Kernel(); k != nil && len(k.Relocations) > 0 {
			break
		}
	}
	k := g.Nodes[ni].Kernel()
	fi := f.rng.IntN(len(k.Relocations))
	to, ok := f.neighbour(k.Relocations[fi].Pointer)
	if !ok {
		return f.one(ctx)
	}
	err := f.verify(ctx, gi, ni, func(k *graphir.KernelNode) { k.Relocations[fi].Pointer = to })
	var differs *compile.StructureError
	if !errors.As(err, &differs) {
		return fmt.Errorf("move a pointer of graph %s, node %d, %s, byte %d from %v to %v: verification says %v, not that the node differs", g.Label, ni,
			f.good.Spec.Kernels[k.Kernel].Name, k.Relocations[fi].Offset, k.Relocations[fi].Pointer, to, err)
	}
	return nil
}

// neighbour returns the same offset in the next live allocation that has it, on a random side first.
func (f *relocations) neighbour(p graphir.Pointer) (graphir.Pointer, bool) {
	step := []int{1, -1}[f.rng.IntN(2)]
	for _, step := range []int{step, -step} {
		for i := int(p.Index) + step; i >= 0 && i < len(f.good.Spec.Allocations); i += step {
			if a := f.good.Spec.Allocations[i]; a.Live && p.Offset < a.Size {
				return graphir.Pointer{Index: uint32(i), Offset: p.Offset}, true
			}
		}
	}
	return p, false
}

// verify runs verification on an artifact with one node changed.
func (f *relocations) verify(ctx context.Context, gi, ni int, change func(*graphir.KernelNode)) error {
	bad := *f.good
	spec := *bad.Spec
	bad.Spec = &spec
	spec.Graphs = slices.Clone(spec.Graphs)
	spec.Graphs[gi].Nodes = slices.Clone(spec.Graphs[gi].Nodes)
	k := *spec.Graphs[gi].Nodes[ni].Kernel()
	k.Relocations = slices.Clone(k.Relocations)
	change(&k)
	spec.Graphs[gi].Nodes[ni].Params = &k
	if err := artifacts.Write(f.path, &bad); err != nil {
		return err
	}
	f.options.Log = io.Discard
	_, err := materialize.Verify(ctx, f.options, f.path, &bad)
	return err
}
