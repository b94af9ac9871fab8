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

	ranges *kvRanges // of an elastic cache, otherwise nil
	limit  int       // if not 0, blocks from here on are about to go
	// retired are those of them that no sequence has.
	retired []int32
}

// kvBlockBytes is the size of one block over all layers, keys and values.
func kvBlockBytes(c *config.Config, pageSize int, storage kernels.Storage) uint64 {
	return 2 * uint64(c.Layers) * uint64(c.KVHeads) * uint64(c.HeadDim) * uint64(pageSize) * elements[storage].size
}

// allocateKV makes a cache of as many blocks as fit into a number of bytes.
func allocateKV(c *config.Config, o Options, storage kernels.Storage, bytes uint64, m *memory) (*kvCache, error) {
	perBlock, least := kvBlockBytes(c, o.PageSize, storage), o.maxBlocks()+1
	block := perBlock / uint64(2*c.Layers)
	cache := &kvCache{blocks: int(min(bytes/perBlock, 1<<31-1))}
	if o.KV == KVElastic {
		cache.ranges = newKVRanges(2*c.Layers, bytes, block, least, m)
		cache.blocks = cache.ranges.blocksIn(int(cache.ranges.size / kvPage))
	}
	if cache.blocks < least {
		return nil, fmt.Errorf("allocate KV cache: %d bytes hold %d blocks, one sequence needs %d (shorten --max-model-len or raise --gpu-memory-utilization)",
			bytes, cache.blocks, least)
	}
	allocate := m.allocate
	if r := cache.ranges; r != nil {
		allocate = func(uint64) (cuda.DevicePtr, error) { return r.add() }
		cache.blocks = r.blocksIn(r.least)
		if asked := o.KVMappedBytes; asked != 0 && asked < r.bytesOf(r.least) {
			return nil, r.check(asked)
		}
	}
	size := uint64(cache.blocks) * block
	shape := []int{cache.blocks, c.KVHeads, o.PageSize, c.HeadDim}
	for i := range c.Layers {
		for _, which := range []struct {
			name string
			list *[]cuda.DevicePtr
		}{{"key", &cache.k}, {"value", &cache.v}} {
			p, err := allocate(size)
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
func (c *kvCache) give(ids []int32) {
	for _, id := range ids {
		// mutant: blocks that are about to go
		if c.limit != 0 && int(id) >= c.limit {
			c.retired = append(c.retired, id)
			continue
		}
		c.free = append(c.free, id)
	}
}

// retire hands out no blocks from the n-th on any more, and reports whether no sequence has one of them.
func (c *kvCache) retire(n int) bool {
	c.resized(c.blocks)
	c.limit = n
	ids := c.free
	c.free = nil
	c.give(ids)
	return len(c.retired) == c.blocks-n
}

// resized says that the cache has n blocks now. It hands all of them out, retired ones too.
func (c *kvCache) resized(n int) {
	var free []int32
	for id := n - 1; id >= c.blocks; id-- {
		free = append(free, int32(id))
	}
	for _, id := range append(c.retired, c.free...) {
		if int(id) < n {
			free = append(free, id)
		}
	}
	c.blocks, c.free, c.retired, c.limit = n, free, nil, 0
}

// release frees the cache's memory.
func (c *kvCache) release(m *memory, asleep bool) error {
	if c.ranges != nil {
		c.k, c.v = nil, nil
		return c.ranges.release()
	}
	var err error
	for _, p := range append(append([]cuda.DevicePtr(nil), c.k...), c.v...) {
		err = errors.Join(err, m.free(p, asleep))
	}
	c.k, c.v = nil, nil
	return err
}
