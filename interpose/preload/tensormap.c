/*
 * tensormap.c: the hooks of the calls that make tensor maps (TMA descriptors).
 *
 * A tensor map is opaque: 128 bytes with an address somewhere inside. Therefore the arguments of its encoding are kept, and
 * graphs are searched for its bytes. In: the encoding calls. Out: tensor_map and tensor_moved records.
 */
#include "core.h"
#include "driver.h"

#define MAP_BYTES(map) ((struct trace_bytes){(map), sizeof(CUtensorMap)})

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, uint32_t rank, void *address, const uint64_t *dim, const uint64_t *strides,
				const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int l2, int fill)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuTensorMapEncodeTiled)(map, type, rank, address, dim, strides, box, steps, interleave, swizzle, l2, fill);
	rc = REAL(cuTensorMapEncodeTiled)(map, type, rank, address, dim, strides, box, steps, interleave, swizzle, l2, fill);
	if (rc == CUDA_SUCCESS) {
		struct trace_writer *w;
		core_lock();
		w = core_trace();
		if (w)
			trace_tensor_map(w, MAP_BYTES(map), (uintptr_t)address, 1, (uint32_t)type, (uint32_t)interleave, (uint32_t)swizzle,
				(uint32_t)l2, (uint32_t)fill, dim, rank, strides, rank - 1, box, rank, steps, rank);
		core_unlock();
	}
	hook_leave();
	return rc;
}

static void note_other(const CUtensorMap *map, const void *address)
{
	struct trace_writer *w;
	core_lock();
	w = core_trace();
	if (w)
		trace_tensor_map(w, MAP_BYTES(map), (uintptr_t)address, 0, 0, 0, 0, 0, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0);
	core_unlock();
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, int type, uint32_t rank, void *address, const uint64_t *dim, const uint64_t *strides,
				 const int *lower, const int *upper, uint32_t channels, uint32_t pixels, const uint32_t *steps,
				 int interleave, int swizzle, int l2, int fill)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuTensorMapEncodeIm2col)(map, type, rank, address, dim, strides, lower, upper, channels, pixels, steps,
						     interleave, swizzle, l2, fill);
	rc = REAL(cuTensorMapEncodeIm2col)(map, type, rank, address, dim, strides, lower, upper, channels, pixels, steps, interleave,
					   swizzle, l2, fill);
	if (rc == CUDA_SUCCESS)
		note_other(map, address);
	hook_leave();
	return rc;
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *map, int type, uint32_t rank, void *address, const uint64_t *dim,
				     const uint64_t *strides, int lower, int upper, uint32_t channels, uint32_t pixels,
				     const uint32_t *steps, int interleave, int mode, int swizzle, int l2, int fill)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuTensorMapEncodeIm2colWide)(map, type, rank, address, dim, strides, lower, upper, channels, pixels, steps,
							 interleave, mode, swizzle, l2, fill);
	rc = REAL(cuTensorMapEncodeIm2colWide)(map, type, rank, address, dim, strides, lower, upper, channels, pixels, steps,
					       interleave, mode, swizzle, l2, fill);
	if (rc == CUDA_SUCCESS)
		note_other(map, address);
	hook_leave();
	return rc;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	CUresult rc;
	CUtensorMap before;
	if (!hook_enter())
		return REAL(cuTensorMapReplaceAddress)(map, address);
	if (map)
		before = *map;
	rc = REAL(cuTensorMapReplaceAddress)(map, address);
	if (rc == CUDA_SUCCESS) {
		struct trace_writer *w;
		core_lock();
		w = core_trace();
		if (w)
			trace_tensor_moved(w, MAP_BYTES(&before), MAP_BYTES(map), (uintptr_t)address);
		core_unlock();
	}
	hook_leave();
	return rc;
}
