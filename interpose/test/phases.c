/*
 * phases.c: makes the marks of an engine: phases, tensors, identity, KV profile, blocks. Memory from before "warmup" belongs to
 * the engine. Of later memory, live blocks of a marked allocation and all of an unmarked one are contents.
 */
#include "common.h"

enum { PAGE = 2 << 20 };

/* Two contiguous mappings, and a block across their boundary. */
static void mappings(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr range;
	CHECK(cuMemAddressReserve(&range, 2 * PAGE, 0, 0, 0));
	for (int i = 0; i < 2; i++) {
		CHECK(cuMemCreate(&handle, PAGE, &prop, 0));
		CHECK(cuMemMap(range + (CUdeviceptr)i * PAGE, PAGE, 0, handle, 0));
		CHECK(cuMemSetAccess(range + (CUdeviceptr)i * PAGE, PAGE, &access, 1));
		CHECK(cuMemsetD8(range + (CUdeviceptr)i * PAGE, (unsigned char)(5 + i), PAGE));
	}
	MARK(medusa_mark_block, range, PAGE - 512, 0);
	MARK(medusa_mark_block, range + PAGE - 512, 1536, 1);
	MARK(medusa_mark_block, range + PAGE + 1024, PAGE - 1024, 0);
}

int main(void)
{
	CUdeviceptr weights, pool, whole, gone, again;
	CUmodule module;
	CUfunction f;
	CUstream s;
	CUgraph graph;
	MARK(medusa_mark_phase, "structure");
	start();
	weights = alloc(4096);
	MARK(medusa_mark_tensor, &(struct medusa_tensor){.name = "w", .addr = weights, .size = 4096, .role = MEDUSA_WEIGHT, .dtype = MEDUSA_F32, .ndim = 2, .shape = {32, 32}});
	MARK(medusa_mark_tensor, &(struct medusa_tensor){.name = "ids", .addr = weights + 64, .size = 8, .role = MEDUSA_INPUT, .dtype = MEDUSA_I64, .fill = MEDUSA_DISTINCT, .ndim = 1, .shape = {1}, .lo = -1, .hi = 9});
	MARK(medusa_mark_identity, "model.config", "sha256:12");
	MARK(medusa_mark_kv_profile, &(struct medusa_kv_profile){.kv_bytes = 1, .total = 2, .free_before = 3, .free_after = 4, .peak_forward = 5, .utilization = 0.9, .profile_tokens = 6, .workspace = 7});
	MARK(medusa_mark_elastic, 8, 9);
	MARK(medusa_mark_phase, "warmup");
	pool = alloc(4 << 20);
	whole = alloc(3 << 20);
	gone = alloc(4096);
	CHECK(cuMemsetD8(pool, 1, 4 << 20));
	CHECK(cuMemsetD8(whole, 2, 3 << 20));
	MARK(medusa_mark_block, pool + 512, 1024, 1);
	MARK(medusa_mark_block, pool + 4096, 1024, 1);
	MARK(medusa_mark_block, pool + 4096, 1024, 0);
	MARK(medusa_mark_block, pool + 8192, 2048, 1);
	MARK(medusa_mark_block, gone, 1024, 1);
	CHECK(cuMemFree(gone));
	again = alloc(4096); /* at the same address; the old blocks are gone */
	CHECK(cuMemsetD8(again, 4, 4096));
	if (again != gone)
		return 4;
	mappings();
	MARK(medusa_mark_phase, "capture");
	CHECK(cuModuleLoadData(&module, module_ptx));
	CHECK(cuModuleGetFunction(&f, module, "add_one"));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 2; i++) {
		/* The function changes between two captures: the second graph needs the new state. */
		CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
		launch_add_one(f, s, whole, 1);
		CHECK(cuStreamEndCapture(s, &graph));
		CHECK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
	}
	MARK(medusa_mark_phase, "ready");
	return 9; /* not reached if ready exits */
}
