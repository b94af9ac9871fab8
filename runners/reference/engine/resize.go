package engine

import (
	"errors"
	"fmt"

	"medusa/internal/cuda"
)

// KVSize describes the memory of an elastic KV cache.
func (e *Engine) KVSize() (KVSize, error) {
	r := e.kv.ranges
	if r == nil {
		return KVSize{}, ErrFixedKV
	}
	// A sleeping cache has no blocks, but keeps its list of them.
	blocks := min(e.kv.blocks, r.blocksIn(r.pages()))
	return KVSize{r.bytesOf(int(r.size / kvPage)), r.bytesOf(r.least), r.bytesOf(r.pages()), r.bytesOf(1), blocks}, nil
}

// FreeMemory is the free memory of the device in bytes.
func (e *Engine) FreeMemory() (uint64, error) {
	free, _, err := cuda.MemInfo()
	return free, err
}

// BlocksFor is the number of blocks that an elastic KV cache has with a number of bytes.
func (e *Engine) BlocksFor(bytes uint64) (int, error) {
	r := e.kv.ranges
	if r == nil {
		return 0, ErrFixedKV
	}
	return r.blocksIn(r.pagesIn(bytes)), r.check(bytes)
}

// ResizeKV gives an elastic KV cache a number of bytes, rounded down to whole pages of every range. Blocks that are to go are not handed out
// any more. As long as sequences have some of them, no page is unmapped and the answer is false: call it again after a sequence was dropped, or
// call KeepKV. After an error the cache has its old size.
func (e *Engine) ResizeKV(bytes uint64) (done bool, err error) {
	blocks, err := e.BlocksFor(bytes)
	if err != nil {
		return false, err
	}
	c, r := e.kv, e.kv.ranges
	// mutant: blocks in use are not unmapped
	if blocks < c.blocks && !c.retire(blocks) {
		return false, nil
	}
	// Work that the driver has not finished may still use the pages.
	if err = e.device.compute.Synchronize(); err == nil {
		err = r.resize(r.pagesIn(bytes))
	}
	c.resized(r.blocksIn(r.pages()))
	if err != nil {
		return false, fmt.Errorf("resize KV cache to %d bytes: %w", bytes, err)
	}
	return true, nil
}

// KeepKV ends a resize that ResizeKV has not finished. All blocks are handed out again.
func (e *Engine) KeepKV() { e.kv.resized(e.kv.blocks) }

// stretchKV maps the memory of an elastic KV cache, once the graphs are there and their verification is over. If the device has less memory
// than that, the engine serves with the blocks that it has.
func (e *Engine) stretchKV() {
	r := e.kv.ranges
	if r == nil {
		return
	}
	bytes := min(e.kvRoom, r.bytesOf(int(r.size/kvPage)))
	if asked := e.options.KVMappedBytes; asked != 0 {
		bytes = min(bytes, asked)
	}
	if err := r.move(max(r.pagesIn(bytes), r.least)); err != nil {
		err = errors.Join(err, r.move(r.pages())) // unmaps pages that some ranges lack
		e.notices = append(e.notices, fmt.Sprintf("KV cache has %d of %d bytes: %v", r.bytesOf(r.pages()), bytes, err))
	}
	e.kv.resized(r.blocksIn(r.pages()))
}
