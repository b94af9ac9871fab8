package mutate

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"medusa/artifacts/artifactpb"
	"medusa/graphir/graphpb"
)

// directed are changes of several fields that have to agree, which single edits seldom hit. Each describes itself, or returns ""
// if the artifact has no place for it.
var directed = []func(a *Artifact, r *rand.Rand, outside string) string{
	bundle, hugeHost, contentElsewhere, contentIntoEngine, impossibleLaunch, sizes, pointers, childOfItself, overlap, otherKind,
}

// Hostile returns paths that a bundled directory could name, all below outside.
func Hostile(outside string) []string {
	return []string{filepath.Join(outside, "new"), filepath.Join(outside, "etc"), filepath.Join(outside, "etc", "cron.d"),
		filepath.Join(outside, "link"), filepath.Join(outside, "a", "b", "c"), filepath.Join(outside, "medusa-caches-1", "triton"),
		filepath.Join(outside, "taken", "medusa-caches-1", "triton")}
}

// bundle gives the artifact a directory to place.
func bundle(a *Artifact, r *rand.Rand, outside string) string {
	if outside == "" {
		return ""
	}
	paths := Hostile(outside)
	path := paths[r.IntN(len(paths))]
	name := []string{"jit", "triton", "torchinductor", "cuda"}[r.IntN(4)]
	data, size, files := Pack(Entry{Name: "cron.d/", Mode: 0o755}, Entry{Name: "cron.d/job", Data: "* * * * * root true\n", Mode: 0o644},
		Entry{Name: "preload", Data: "/evil.so\n", Mode: 0o755})
	sum := sha256.Sum256(data)
	m := a.ranks[0].manifest
	m.Layers = append(m.Layers, &artifactpb.Layer{Name: name, Path: path, Sha256: sum[:], PackedSize: uint64(len(data)), Size: size, Files: files})
	a.layers = append(a.layers, layer{sum, data})
	return fmt.Sprintf("bundle %s at %s", name, path)
}

func (a *Artifact) any(r *rand.Rand) *rank { return &a.ranks[r.IntN(len(a.ranks))] }

// hugeHost adds a host buffer that is larger than any memory.
func hugeHost(a *Artifact, r *rand.Rand, _ string) string {
	k := a.any(r)
	n := []uint64{1<<63 - 1, 1 << 63, 1<<64 - 1, 1 << 47, 1 << 40}[r.IntN(5)]
	if len(k.graph.HostSize) == 0 {
		k.graph.Version = max(k.graph.Version, 2)
	}
	k.graph.HostSize = append(k.graph.HostSize, n)
	return fmt.Sprintf("host buffer of %d bytes", n)
}

func (k *rank) content(r *rand.Rand) *graphpb.Content {
	if len(k.buffers.Contents) == 0 {
		return nil
	}
	return k.buffers.Contents[r.IntN(len(k.buffers.Contents))]
}

// contentElsewhere points a saved content at any other object, or past the end of its own.
func contentElsewhere(a *Artifact, r *rand.Rand, _ string) string {
	k := a.any(r)
	c := k.content(r)
	if c == nil || len(k.graph.AllocSize) == 0 {
		return ""
	}
	c.Alloc = uint32(r.IntN(len(k.graph.AllocSize)))
	if r.IntN(2) == 0 {
		c.Offset = number(c.Offset, r)
	}
	if r.IntN(4) == 0 {
		c.Space = uint32(r.IntN(4))
	}
	return fmt.Sprintf("content at space %d, %d+%d", c.Space, c.Alloc, c.Offset)
}

// contentIntoEngine adds a content over memory that the engine owns and has filled by then.
func contentIntoEngine(a *Artifact, r *rand.Rand, _ string) string {
	k := a.any(r)
	c := k.content(r)
	if c == nil {
		return ""
	}
	var engine []uint32
	for i, owner := range k.graph.AllocOwner {
		if owner == 0 && i < len(k.graph.AllocSize) && k.graph.AllocSize[i] >= 4096 {
			engine = append(engine, uint32(i))
		}
	}
	if len(engine) == 0 {
		return ""
	}
	to := engine[r.IntN(len(engine))]
	k.buffers.Contents = append(k.buffers.Contents, &graphpb.Content{Alloc: to, Blob: c.Blob})
	return fmt.Sprintf("content over the engine's allocation %d", to)
}

// impossibleLaunch gives a kernel node blocks that no driver takes, so that building fails late.
func impossibleLaunch(a *Artifact, r *rand.Rand, _ string) string {
	k := a.any(r)
	graphs := k.graphs
	if len(a.groups) > 0 {
		graphs = a.groups[len(a.groups)-1].graphs
	}
	if len(graphs) == 0 {
		return ""
	}
	g := graphs[len(graphs)-1]
	if g.Block == nil {
		g.Block = &graphpb.Changes{}
	}
	g.Block.Gap, g.Block.Delta = append(g.Block.Gap, 0), append(g.Block.Delta, 1<<20)
	return "block of 1048576 threads"
}

// sizes changes the ends and the extent of a copy or a memset node.
func sizes(a *Artifact, r *rand.Rand, _ string) string {
	k := a.any(r)
	graphs := k.graphs
	if len(graphs) == 0 {
		return ""
	}
	g := graphs[r.IntN(len(graphs))]
	for _, c := range []*graphpb.Changes{g.Memcpy, g.Memset} {
		if c == nil || len(c.Delta) == 0 {
			continue
		}
		i := r.IntN(len(c.Delta))
		c.Delta[i] = int64(number(uint64(c.Delta[i]), r))
		return fmt.Sprintf("value %d of a copy or a memset = %d", i, c.Delta[i])
	}
	return ""
}

// pointers moves a pointer of a node.
func pointers(a *Artifact, r *rand.Rand, _ string) string {
	k := a.any(r)
	if len(k.graphs) == 0 {
		return ""
	}
	g := k.graphs[r.IntN(len(k.graphs))]
	c := []*graphpb.Changes{g.RelocationAlloc, g.RelocationOffset}[r.IntN(2)]
	if c == nil || len(c.Delta) == 0 {
		return ""
	}
	i := r.IntN(len(c.Delta))
	c.Delta[i] += []int64{-1, 1, 8, 4096, 1 << 32, -(1 << 32)}[r.IntN(6)]
	return fmt.Sprintf("pointer %d moved", i)
}

// childOfItself makes graphs embed each other or themselves.
func childOfItself(a *Artifact, r *rand.Rand, _ string) string {
	k := a.any(r)
	if len(k.graph.Shapes) == 0 {
		return ""
	}
	s := k.graph.Shapes[r.IntN(len(k.graph.Shapes))]
	s.Type, s.Target = 4, uint32(r.IntN(3))
	if len(k.graphs) > 0 && r.IntN(2) == 0 {
		k.graph.Version = max(k.graph.Version, 2)
		k.children = append(k.children, k.graphs[r.IntN(len(k.graphs))])
	}
	return fmt.Sprintf("shape embeds child %d", s.Target)
}

// overlap puts two allocations at one place of the region, or one across the end of the address space.
func overlap(a *Artifact, r *rand.Rand, _ string) string {
	k := a.any(r)
	n := len(k.buffers.AllocAddress)
	if n < 2 {
		return ""
	}
	i, j := r.IntN(n), r.IntN(n)
	k.buffers.AllocAddress[i] = k.buffers.AllocAddress[j]
	if r.IntN(3) == 0 {
		k.buffers.AllocAddress[i] = number(k.buffers.RegionSize, r)
	}
	return fmt.Sprintf("allocation %d at the address of %d", i, j)
}

// otherKind claims another kind of memory for an allocation of the capture phase, which the restorer makes and gives back.
func otherKind(a *Artifact, r *rand.Rand, _ string) string {
	k := a.any(r)
	var made []int
	for i, owner := range k.graph.AllocOwner {
		if owner != 0 && i < len(k.graph.AllocKind) {
			made = append(made, i)
		}
	}
	if len(made) == 0 {
		return ""
	}
	i := made[r.IntN(len(made))]
	k.graph.AllocKind[i] = byte(1 + r.IntN(9))
	return fmt.Sprintf("allocation %d of kind %d", i, k.graph.AllocKind[i])
}
