/*
 * overhead.c: device memory that no call asked for: contexts, code, local memory, executable graphs, other processes.
 *
 * In: the objects of the other parts. Out: bytes that are not free: those of SIMGPU_NEIGHBOUR and of the processes of SIMGPU_SHARED, and with
 * SIMGPU_OVERHEAD=charged more, in whole pages, and more or less of them by the seed, so that two equal processes do not leave the same.
 */
#include "memory/memory.h"

#define CONTEXT_BYTES (256 * MIB)
#define LOCAL_MEMORY_BYTES (8 * MIB)
#define CODE_BYTES (384 * 1024)
#define NODE_BYTES 2048

static uint64_t held[MOST_DEVICES], asked;

static uint64_t some_pages(uint64_t what, uint64_t most)
{
	return random_of(what) % (most + 1) * PAGE_SIZE_DEVICE;
}

void overhead_context(CUdevice dev, bool begins)
{
	uint64_t bytes = CONTEXT_BYTES + LOCAL_MEMORY_BYTES + some_pages(1, 4);
	held[dev] += begins ? bytes : -bytes;
	usage_tell();
}

void overhead_code(CUdevice dev)
{
	held[dev] += CODE_BYTES;
	usage_tell();
}

void overhead_nodes(CUdevice dev, uint64_t count, bool begins)
{
	held[dev] += begins ? count * NODE_BYTES : -(count * NODE_BYTES);
	usage_tell();
}

uint64_t overhead_own(CUdevice dev)
{
	return config_get()->overhead ? (held[dev] + PAGE_SIZE_DEVICE - 1) / PAGE_SIZE_DEVICE * PAGE_SIZE_DEVICE : 0;
}

uint64_t overhead(CUdevice dev)
{
	uint64_t processes = config_get()->neighbour + shared_by_others(dev);
	if (!config_get()->overhead)
		return processes;
	/* The share of other processes changes from one question to the next. */
	uint64_t others = some_pages(2, 3) + some_pages(1000 + ++asked, 1) + processes;
	return overhead_own(dev) + others;
}
