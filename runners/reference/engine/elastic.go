package engine

import (
	"errors"
	"fmt"

	"medusa/internal/cuda"
)

// kvPage is the granularity of an elastic KV cache: the driver's physical memory comes in pages of this size.
const kvPage = 2 << 20

// kvRanges is the memory of an elastic KV cache. For each layer's keys and for its values, addresses are reserved for the largest cache. Physical
// memory is mapped from the beginning of each range on, so a block that one layer has, all have. Graphs hold addresses of the ranges, which
// never change; their kernels touch only the blocks that block tables name.
//
// The first pages of a range are one mapping, which is made in the phase "kv_cache" and stays. Medusa records it like any other memory.
// Pages beyond it come and go one by one, after the start.
type kvRanges struct {
	memory *memory
	ranges int    // how many there are in all
	size   uint64 // of each range, whole pages
	block  uint64 // bytes of a block in one range
	least  int    // pages that are always mapped while the engine is awake
	all    []kvRange
	kept   int // pages that are mapped again when the engine wakes
}

type kvRange struct {
	at    cuda.DevicePtr
	pages int // mapped from its beginning on
}

// KVSize describes an elastic KV cache. Sizes are in bytes, over all layers.
type KVSize struct {
	Range  uint64 `json:"range_bytes"`  // reserved addresses
	Least  uint64 `json:"least_bytes"`  // always mapped
	Mapped uint64 `json:"mapped_bytes"` // now
	Page   uint64 `json:"page_bytes"`   // of a page in each range: sizes are multiples of it
	Blocks int    `json:"blocks"`       // usable now, the null block included
}

// KVSizeError is a size that an elastic KV cache cannot have.
type KVSizeError struct{ Asked, Least, Most uint64 }

func (e *KVSizeError) Error() string {
	return fmt.Sprintf("resize KV cache: %d bytes are not between the least, %d, and the most, %d", e.Asked, e.Least, e.Most)
}

// ErrFixedKV says that the KV cache has one size.
var ErrFixedKV = errors.New("resize KV cache: the engine was started without --kv elastic")

// newKVRanges plans ranges of equal size in a number of bytes, which hold at least a number of blocks. It allocates no memory.
func newKVRanges(ranges int, bytes, block uint64, blocks int, m *memory) *kvRanges {
	return &kvRanges{
		memory: m,
		ranges: ranges,
		size:   bytes / uint64(ranges) / kvPage * kvPage,
		block:  block,
		least:  int(alignUp(uint64(blocks)*block, kvPage) / kvPage),
	}
}

// add reserves the next range and maps its first pages.
func (r *kvRanges) add() (cuda.DevicePtr, error) {
	at, err := cuda.MemAddressReserve(r.size, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	if err := r.memory.fill(piece{at, uint64(r.least) * kvPage}); err != nil {
		return 0, errors.Join(err, at.AddressFree(r.size))
	}
	r.all = append(r.all, kvRange{at, r.least})
	return at, nil
}

// pages is the number of pages that every range has.
func (r *kvRanges) pages() int {
	n := int(r.size / kvPage)
	for _, x := range r.all {
		n = min(n, x.pages)
	}
	return n
}

// blocksIn is the number of whole blocks in a number of pages of each range.
func (r *kvRanges) blocksIn(pages int) int {
	return int(min(uint64(pages)*kvPage/r.block, 1<<31-1))
}

// bytesOf is the size of a number of pages of each range.
func (r *kvRanges) bytesOf(pages int) uint64 { return uint64(pages) * kvPage * uint64(r.ranges) }

// pagesIn is the number of pages of each range that a number of bytes pays for.
func (r *kvRanges) pagesIn(bytes uint64) int { return int(bytes / kvPage / uint64(r.ranges)) }

// check refuses a number of bytes that the ranges cannot have.
func (r *kvRanges) check(bytes uint64) error {
	if n := r.pagesIn(bytes); n < r.least || uint64(n) > r.size/kvPage {
		return &KVSizeError{bytes, r.bytesOf(r.least), r.bytesOf(int(r.size / kvPage))}
	}
	return nil
}

// resize maps or unmaps pages until every range has a number of them. If a call fails, the ranges get their old number again, as far as
// the driver allows it. The pages that go must not be in use.
func (r *kvRanges) resize(pages int) error {
	before := r.pages()
	err := r.move(pages)
	if err != nil {
		// mutant: resize that fails half way
		err = errors.Join(err, r.move(before))
	}
	return err
}

// move goes page by page over all ranges, so that the pages that every range has are as many as possible whenever a call fails.
func (r *kvRanges) move(pages int) error {
	for page := r.least; page < pages; page++ {
		for i := range r.all {
			x := &r.all[i]
			if x.pages > page {
				continue
			}
			if err := r.memory.fill(piece{x.at + cuda.DevicePtr(page)*kvPage, kvPage}); err != nil {
				return fmt.Errorf("map page %d of KV-cache range %d: %w", page, i, err)
			}
			x.pages = page + 1
		}
	}
	for page := int(r.size/kvPage) - 1; page >= pages; page-- {
		for i := range r.all {
			x := &r.all[i]
			if x.pages <= page {
				continue
			}
			if err := (x.at + cuda.DevicePtr(page)*kvPage).Unmap(kvPage); err != nil {
				return fmt.Errorf("unmap page %d of KV-cache range %d: %w", page, i, err)
			}
			x.pages = page
		}
	}
	return nil
}

// sleep unmaps everything, and returns how many bytes that were.
func (r *kvRanges) sleep() (freed uint64, err error) {
	r.kept, freed = r.pages(), r.bytesOf(r.pages())
	if err := r.move(r.least); err != nil {
		return 0, err
	}
	for i := range r.all {
		if err := r.all[i].at.Unmap(uint64(r.least) * kvPage); err != nil {
			return 0, fmt.Errorf("unmap KV-cache range %d: %w", i, err)
		}
		r.all[i].pages = 0
	}
	return freed, nil
}

// wake maps the least part, and then as many of the pages from before as the device has room for. If it has no room for the least part, no page
// is mapped.
func (r *kvRanges) wake() error {
	for i := range r.all {
		x := &r.all[i]
		if err := r.memory.fill(piece{x.at, uint64(r.least) * kvPage}); err != nil {
			for j := range r.all[:i] {
				err = errors.Join(err, r.all[j].at.Unmap(uint64(r.least)*kvPage))
				r.all[j].pages = 0
			}
			return fmt.Errorf("map KV-cache range %d: %w", i, err)
		}
		x.pages = r.least
	}
	// mutant: memory of a KV cache that wakes
	if r.move(r.kept) != nil {
		return r.move(r.pages()) // unmaps pages that some ranges lack
	}
	return nil
}

// release gives memory and addresses back.
func (r *kvRanges) release() (err error) {
	if r.pages() > 0 {
		_, err = r.sleep()
	}
	for _, x := range r.all {
		err = errors.Join(err, x.at.AddressFree(r.size))
	}
	r.all = nil
	return err
}
