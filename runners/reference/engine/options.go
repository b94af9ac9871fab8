package engine

import (
	"fmt"
	"slices"

	"medusa/runners/reference/config"
)

// Start says how the engine starts if no graphs are restored.
type Start string

// The ways to start.
const (
	// StartNative profiles the KV cache's size with a forward and captures a graph for every batch size.
	StartNative Start = "native"
	// StartKVOnly takes the KV cache's size as given and captures.
	StartKVOnly Start = "kv-only"
	// StartNoGraphs makes no profile and no captures: every decode step launches its kernels one by one.
	StartNoGraphs Start = "no-graphs"
)

// KV says how the KV cache gets its memory.
type KV string

// The ways to lay out a KV cache.
const (
	// KVFixed allocates the cache once.
	KVFixed KV = "fixed"
	// KVElastic reserves the addresses of the largest cache, and maps as much memory as is wanted at the time.
	KVElastic KV = "elastic"
)

// Options are the engine's settings. Model or Preset is required; the other fields have defaults.
type Options struct {
	Model  string // checkpoint directory
	Preset string // a built-in shape with weights that are allocated and never filled

	Device           int
	BatchSizes       []int   // of captured graphs; default: vLLM's 35 sizes from 1 to 256
	MaxModelLen      int     // tokens of the longest sequence; default: the model's positions, at most 2048
	MaxBatchedTokens int     // tokens of the largest prefill; default: MaxModelLen, at least the largest batch
	PageSize         int     // tokens of a KV-cache block; default 16
	Utilization      float64 // share of the device's memory that the engine may use; default 0.9
	KVCacheBytes     uint64  // given size of the KV cache; 0: decided by the profile forward
	KV               KV      // default KVFixed
	KVMappedBytes    uint64  // memory of an elastic KV cache once the engine is ready; 0: as much as there is, up to the cache's size
	SleepMode        bool    // weights and KV cache can give their memory back
	Start            Start   // default StartNative
}

// defaultBatchSizes are the sizes that vLLM captures by default up to 256 sequences: 1, 2, 4, 8, 16 ... 256.
func defaultBatchSizes() []int {
	sizes := []int{1, 2, 4}
	for n := 8; n <= 256; n += 8 {
		sizes = append(sizes, n)
	}
	return sizes
}

// complete fills the defaults in and checks the result.
func (o Options) complete(c *config.Config) (Options, error) {
	if len(o.BatchSizes) == 0 {
		o.BatchSizes = defaultBatchSizes()
	}
	o.BatchSizes = slices.Clone(o.BatchSizes)
	slices.Sort(o.BatchSizes)
	if o.PageSize == 0 {
		o.PageSize = 16
	}
	if o.MaxModelLen == 0 {
		o.MaxModelLen = min(c.MaxPositions, 2048)
	}
	if o.MaxBatchedTokens == 0 {
		o.MaxBatchedTokens = max(o.MaxModelLen, o.maxBatch())
	}
	if o.Utilization == 0 {
		o.Utilization = 0.9
	}
	if o.Start == "" {
		o.Start = StartNative
	}
	if o.KV == "" {
		o.KV = KVFixed
	}
	switch {
	case o.BatchSizes[0] < 1 || o.maxBatch() > 65535 || len(slices.Compact(slices.Clone(o.BatchSizes))) != len(o.BatchSizes):
		return o, fmt.Errorf("check options: batch sizes %v must be distinct and between 1 and 65535", o.BatchSizes)
	case o.PageSize < 1:
		return o, fmt.Errorf("check options: page size %d must be positive", o.PageSize)
	case o.MaxModelLen < 2 || o.MaxModelLen > c.MaxPositions:
		return o, fmt.Errorf("check options: maximum length %d must be between 2 and the model's %d positions", o.MaxModelLen, c.MaxPositions)
	case o.MaxBatchedTokens < o.MaxModelLen || o.MaxBatchedTokens < o.maxBatch():
		return o, fmt.Errorf("check options: %d tokens a prefill are less than the maximum length %d or the largest batch %d",
			o.MaxBatchedTokens, o.MaxModelLen, o.maxBatch())
	case !(o.Utilization > 0 && o.Utilization <= 1):
		return o, fmt.Errorf("check options: memory utilization %v must be above 0 and at most 1", o.Utilization)
	case !slices.Contains([]Start{StartNative, StartKVOnly, StartNoGraphs}, o.Start):
		return o, fmt.Errorf("check options: start %q is none of %s, %s, %s", o.Start, StartNative, StartKVOnly, StartNoGraphs)
	case o.KV != KVFixed && o.KV != KVElastic:
		return o, fmt.Errorf("check options: KV cache %q is neither %s nor %s", o.KV, KVFixed, KVElastic)
	case o.KV != KVElastic && o.KVMappedBytes != 0:
		return o, fmt.Errorf("check options: %d mapped bytes of a KV cache that is not elastic (pass --kv %s)", o.KVMappedBytes, KVElastic)
	}
	return o, nil
}

func (o Options) maxBatch() int { return o.BatchSizes[len(o.BatchSizes)-1] }

// maxBlocks is the number of KV-cache blocks of the longest sequence.
func (o Options) maxBlocks() int { return (o.MaxModelLen + o.PageSize - 1) / o.PageSize }

// args is the part of the options that decides the form of the graphs.
func (o Options) args() string {
	memory := ""
	if o.SleepMode {
		memory = " sleep_mode=true"
	}
	if o.KV == KVElastic { // any number of mapped bytes fits the same graphs
		memory += " kv=elastic"
	}
	return fmt.Sprintf("batch_sizes=%v max_model_len=%d max_batched_tokens=%d page_size=%d utilization=%v kv_cache_bytes=%d%s",
		o.BatchSizes, o.MaxModelLen, o.MaxBatchedTokens, o.PageSize, o.Utilization, o.KVCacheBytes, memory)
}
