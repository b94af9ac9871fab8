package engine

import (
	"errors"
	"fmt"

	"medusa/internal/cuda"
	"medusa/runners/reference/kernels"
	"medusa/runners/reference/marks"

	"medusa/runners/reference/config"
)

// nullBlock is the block that padding points at. No sequence ever gets it.
const nullBlock = 0

// CacheFullError says that no KV-cache block is left.
type CacheFullError struct{ Blocks int }

func (e *CacheFullError) Error() string {
	return fmt.Sprintf("allocate KV-cache block: all %d are in use (more memory or shorter texts are needed)", e.Blocks)
}

// kvCache is the paged cache: for every layer an allocation of keys and one of values, both cut into blocks of a number
// of tokens.
type kvCache struct {
	k, v   []cuda.DevicePtr
	blocks int
	free   []int32 // taken from the end
}

// kvBlockBytes is the size of one block over all layers, keys and values.
func kvBlockBytes(c *config.Config, pageSize int, storage kernels.Storage) uint64 {
	return 2 * uint64(c.Layers) * uint64(c.KVHeads) * uint64(c.HeadDim) * uint64(pageSize) * elements[storage].size
}

// allocateKV makes a cache of as many blocks as fit into a number of bytes.
func allocateKV(c *config.Config, o Options, storage kernels.Storage, bytes uint64, m *memory) (*kvCache, error) {
	perBlock := kvBlockBytes(c, o.PageSize, storage)
	cache := &kvCache{blocks: int(min(bytes/perBlock, 1<<31-1))}
	if least := o.maxBlocks() + 1; cache.blocks < least {
		return nil, fmt.Errorf("allocate KV cache: %d bytes hold %d blocks, one sequence needs %d (shorten --max-model-len or raise --gpu-memory-utilization)",
			bytes, cache.blocks, least)
	}
	size := uint64(cache.blocks) * perBlock / uint64(2*c.Layers)
	shape := []int{cache.blocks, c.KVHeads, o.PageSize, c.HeadDim}
	for i := range c.Layers {
		for _, which := range []struct {
			name string
			list *[]cuda.DevicePtr
		}{{"key", &cache.k}, {"value", &cache.v}} {
			p, err := m.allocate(size)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("allocate KV cache of layer %d, %d bytes: %w", i, size, err), cache.release(m, false))
			}
			*which.list = append(*which.list, p)
			marks.Named(marks.Tensor{Name: fmt.Sprintf("kv_cache.%d.%s", i, which.name), Addr: p, Size: size,
				Role: marks.KV, DType: elements[storage].mark, Shape: shape})
		}
	}
	for id := cache.blocks - 1; id > nullBlock; id-- {
		cache.free = append(cache.free, int32(id))
	}
	return cache, nil
}

// keys and values are a layer's cache, 0 before there is one: the profile forward runs on padding and touches none.
func (c *kvCache) keys(layer int) cuda.DevicePtr   { return c.address(c.k, layer) }
func (c *kvCache) values(layer int) cuda.DevicePtr { return c.address(c.v, layer) }

func (c *kvCache) address(list []cuda.DevicePtr, layer int) cuda.DevicePtr {
	if layer >= len(list) {
		return 0
	}
	return list[layer]
}

// take returns a block that no sequence uses.
func (c *kvCache) take() (int32, error) {
	if len(c.free) == 0 {
		return 0, &CacheFullError{c.blocks}
	}
	id := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	return id, nil
}

// give takes blocks back.
func (c *kvCache) give(ids []int32) { c.free = append(c.free, ids...) }

// release frees the cache's memory.
func (c *kvCache) release(m *memory, asleep bool) error {
	var err error
	for _, p := range append(append([]cuda.DevicePtr(nil), c.k...), c.v...) {
		err = errors.Join(err, m.free(p, asleep))
	}
	c.k, c.v = nil, nil
	return err
}
