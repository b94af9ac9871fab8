/*
 * tensormap.c: tensor maps, as opaque as a driver's.
 *
 * In: the arguments of the encoding calls. Out: 128 bytes with the address in the first eight, which is all that is known
 * of a driver's own. The rest depends on every other argument and has no meaning. Fails: INVALID_VALUE for ranks, extents and alignments that the documentation
 * rules out; INVALID_CONTEXT on a thread without a context. No instruction that reads tensor maps is interpreted.
 */
#include "calls/calls.h"

#include <string.h>

#define MAX_RANK 5
#define MAX_BOX 256

static uint64_t mix(uint64_t h, uint64_t v)
{
	return (h ^ v) * 0x9e3779b97f4a7c15u + (h >> 29);
}

static bool valid(int type, uint32_t rank, const uint64_t *dim, const uint64_t *strides, const uint32_t *box, const uint32_t *steps)
{
	if (type < 0 || type > 12 || !rank || rank > MAX_RANK || !dim || !box || !steps || (rank > 1 && !strides))
		return false;
	for (uint32_t i = 0; i < rank; i++)
		if (!dim[i] || dim[i] > (uint64_t)1 << 32 || !box[i] || box[i] > MAX_BOX || !steps[i] || steps[i] > 8)
			return false;
	for (uint32_t i = 0; i + 1 < rank; i++)
		if (strides[i] % 16 || strides[i] >= (uint64_t)1 << 40)
			return false;
	return true;
}

/* Rows of the box are whole units of 16 bytes, and not longer than a swizzled one. Only floats have a NaN to be filled with. */
static bool box_fits(int type, uint32_t inner, int interleave, int swizzle, int fill)
{
	static const uint32_t sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4}, longest[] = {UINT32_MAX, 32, 64, 128};
	uint32_t bytes = inner * sizes[type];
	return interleave || (bytes % 16 == 0 && bytes <= longest[swizzle] && (!fill || type >= 6));
}

CUresult sim_cuTensorMapEncodeTiled(struct call *c, CUtensorMap *map, int type, uint32_t rank, void *address, const uint64_t *dim,
                                    const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,
                                    int l2, int fill)
{
	CUresult r = call_context(c); /* driver 580.159 asks for one */
	if (r)
		return r;
	if (!map || (uintptr_t)map % 64 || !address || (uintptr_t)address % 16 || interleave < 0 || interleave > 2 || swizzle < 0 ||
	    swizzle > 3 || l2 < 0 || l2 > 3 || fill < 0 || fill > 1 || !valid(type, rank, dim, strides, box, steps) ||
	    !box_fits(type, box[0], interleave, swizzle, fill))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t h = mix(mix(mix(mix(mix(mix(1, (uint64_t)type), rank), (uint64_t)interleave), (uint64_t)swizzle), (uint64_t)l2), (uint64_t)fill);
	for (uint32_t i = 0; i < rank; i++)
		h = mix(mix(mix(h, dim[i]), box[i]), steps[i]);
	for (uint32_t i = 0; i + 1 < rank; i++)
		h = mix(h, strides[i]);
	map->opaque[0] = (uintptr_t)address;
	for (int i = 1; i < 16; i++) {
		h = mix(h, (uint64_t)i);
		map->opaque[i] = h >> 32; /* 32 bits: never like an address of a device */
	}
	return CUDA_SUCCESS;
}

CUresult sim_cuTensorMapReplaceAddress(struct call *c, CUtensorMap *map, void *address)
{
	(void)c;
	if (!map || (uintptr_t)map % 64 || !address || (uintptr_t)address % 16)
		return CUDA_ERROR_INVALID_VALUE;
	map->opaque[0] = (uintptr_t)address;
	return CUDA_SUCCESS;
}
