package mutate

import "medusa/graphir"

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
