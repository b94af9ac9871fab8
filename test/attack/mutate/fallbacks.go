package mutate

import (
	"errors"

	"medusa/graphir"
	"medusa/graphir/graphpb"
)

// SmallCache returns the artifact with a KV cache of so many bytes, about which its profile and its tensors agree. The recorded
// allocation stays as it was, so that a start falls back after the engine has made the small one.
func (a *Artifact) SmallCache(bytes uint64) ([]byte, error) {
	c := a.clone()
	for _, k := range c.ranks {
		k.manifest.KvProfile.KvBytes = bytes
		for _, t := range k.buffers.Tensors {
			if t.Role == uint32(graphir.RoleKV) {
				t.Size = min(t.Size, bytes)
			}
		}
	}
	return c.bytes()
}

// IntoEngine returns the artifact with a saved content for the beginning of the i-th allocation that the engine fills.
func (a *Artifact) IntoEngine(i int) ([]byte, error) {
	c := a.clone()
	k := &c.ranks[0]
	for alloc, owner := range k.graph.AllocOwner {
		if graphir.Owner(owner) != graphir.OwnerEngine {
			continue
		}
		if i--; i < 0 {
			k.buffers.Contents = append(k.buffers.Contents, &graphpb.Content{Alloc: uint32(alloc), Blob: k.buffers.Contents[0].Blob})
			return c.bytes()
		}
	}
	return nil, errors.New("spoil artifact: the engine has not as many allocations")
}
