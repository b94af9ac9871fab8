/*
 * run.c: the effect of one piece of work on memory.
 *
 * In: parameters that were checked when the work was submitted. Out: memory. Fails: with the result that a device reports
 * asynchronously, ILLEGAL_ADDRESS above all, and a line in the error log with the facts that a device would not tell: kernel,
 * thread and address.
 */
#include "streams/streams.h"

#include <string.h>
#include <time.h>

static CUresult fault_result(const struct ptx_fault *f)
{
	switch (f->kind) {
	case PTX_OK: break;
	case PTX_ILLEGAL_ADDRESS: return CUDA_ERROR_ILLEGAL_ADDRESS;
	case PTX_MISALIGNED: return CUDA_ERROR_MISALIGNED_ADDRESS;
	case PTX_UNSUPPORTED: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
	case PTX_DEADLOCK: return CUDA_ERROR_LAUNCH_TIMEOUT;
	case PTX_TRAP: return CUDA_ERROR_LAUNCH_FAILED;
	}
	return CUDA_ERROR_UNKNOWN;
}

CUresult run_launch(const struct launch *l)
{
	if (l->function->module->unloaded) {
		error_log("error %d: kernel %s was launched after its module was unloaded", CUDA_ERROR_INVALID_HANDLE,
		          function_name(l->function));
		return CUDA_ERROR_INVALID_HANDLE;
	}
	if (!config_get()->compute)
		return CUDA_SUCCESS;
	struct ptx_fault f = {.kind = PTX_OK};
	struct ptx_memory memory = memory_of(l->function->module->ctx);
	ptx_order_seed = config_get()->seed;
	if (ptx_launch(l->function->code, l->grid, l->block, l->shared, l->params, &memory, &f) == 0)
		return CUDA_SUCCESS;
	CUresult r = fault_result(&f);
	error_log("error %d: kernel %s block (%u,%u,%u) thread (%u,%u,%u) address 0x%llx: %s", (int)r, function_name(l->function),
	          f.block[0], f.block[1], f.block[2], f.thread[0], f.thread[1], f.thread[2], (unsigned long long)f.addr, f.text);
	return r;
}

/* The begin of row y of slice z. */
static uint64_t row_address(uint64_t base, size_t pitch, size_t height, size_t x, size_t y, size_t z)
{
	return base + (z * height + y) * pitch + x;
}

static CUresult bad_copy(const char *what, uint64_t addr, size_t bytes)
{
	error_log("error %d: %s %zu bytes at address 0x%llx: in no live allocation that the device may touch", CUDA_ERROR_ILLEGAL_ADDRESS, what, bytes,
	          (unsigned long long)addr);
	return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void take_time(uint64_t bytes)
{
	uint64_t rate = config_get()->copy_rate;
	if (rate) {
		struct timespec t = {(time_t)(bytes / rate), (long)((double)(bytes % rate) / (double)rate * 1e9)};
		nanosleep(&t, NULL);
	}
}

CUresult run_copy(const CUDA_MEMCPY3D *p, const struct context *src_ctx, const struct context *dst_ctx)
{
	take_time(p->WidthInBytes * p->Height * p->Depth);
	uint64_t src = p->srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)p->srcHost : p->srcDevice;
	uint64_t dst = p->dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)p->dstHost : p->dstDevice;
	for (size_t z = 0; z < p->Depth; z++)
		for (size_t y = 0; y < p->Height; y++) {
			uint64_t from = row_address(src, p->srcPitch, p->srcHeight, p->srcXInBytes, p->srcY + y, p->srcZ + z);
			uint64_t to = row_address(dst, p->dstPitch, p->dstHeight, p->dstXInBytes, p->dstY + y, p->dstZ + z);
			if (!range_host(from) && !range_reached(src_ctx, from, p->WidthInBytes, BY_COPY))
				return bad_copy("copy from", from, p->WidthInBytes);
			if (!range_host(to) && !range_reached(dst_ctx, to, p->WidthInBytes, BY_COPY))
				return bad_copy("copy to", to, p->WidthInBytes);
			memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, p->WidthInBytes);
		}
	return CUDA_SUCCESS;
}

CUresult run_fill(const CUDA_MEMSET_NODE_PARAMS *p, const struct context *ctx)
{
	for (size_t y = 0; y < p->height; y++) {
		uint64_t row = p->dst + y * p->pitch;
		if (!range_reached(ctx, row, p->width * p->elementSize, BY_KERNEL))
			return bad_copy("memset of", row, p->width * p->elementSize);
		if (p->value == 0)
			memory_zero(row, p->width * p->elementSize);
		else if (p->elementSize == 1)
			memset((void *)(uintptr_t)row, (int)(p->value & 0xff), p->width);
		else
			for (size_t x = 0; x < p->width; x++)
				memcpy((void *)(uintptr_t)(row + x * p->elementSize), &p->value, p->elementSize);
	}
	return CUDA_SUCCESS;
}

/* Whether a wait is over. */
static bool holds(const CUstreamMemOpValue *v, bool wide)
{
	uint64_t now = 0, want = wide ? v->value64 : v->value, all = wide ? UINT64_MAX : UINT32_MAX;
	memcpy(&now, (const void *)(uintptr_t)v->address, wide ? 8 : 4);
	switch (v->flags) {
	case CU_STREAM_WAIT_VALUE_GEQ: return ((now - want) & all) <= all >> 1; /* around the end of the numbers, too */
	case CU_STREAM_WAIT_VALUE_EQ: return now == want;
	case CU_STREAM_WAIT_VALUE_AND: return (now & want) != 0;
	default: return (~(now | want) & all) != 0;
	}
}

bool mem_ops_held(const struct mem_ops *m, const struct context *ctx)
{
	const CUstreamMemOpValue *v = &m->ops[0].waitValue;
	bool wide = v->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
	return (wide || v->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32) && range_reached(ctx, v->address, wide ? 8 : 4, BY_KERNEL) && !holds(v, wide);
}

/* A wait lets work of other streams run, and other threads, as long as it takes. */
CUresult run_mem_ops(const struct mem_ops *m, const struct context *ctx)
{
	for (unsigned i = 0; i < m->count; i++) {
		const CUstreamMemOpValue *v = &m->ops[i].waitValue;
		bool wide = v->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || v->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
		bool wait = v->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || v->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
		for (;;) {
			if (!range_reached(ctx, v->address, wide ? 8 : 4, BY_KERNEL))
				return bad_copy("memory operation on", v->address, wide ? 8 : 4);
			if (!wait || holds(v, wide))
				break;
			if (ctx->sticky)
				return ctx->sticky;
			if (!queue_other()) {
				struct timespec t = {0, 50000};
				driver_unlock();
				nanosleep(&t, NULL);
				driver_lock();
			}
		}
		if (!wait)
			memcpy((void *)(uintptr_t)v->address, &v->value64, wide ? 8 : 4);
	}
	return CUDA_SUCCESS;
}

/* Host functions run without the driver's lock: they may wait for other threads that use the driver. */
void run_host(const struct host_call *h)
{
	struct host_call call = *h;
	struct thread_state *t = thread_state();
	bool before = t->in_host_function;
	t->in_host_function = true;
	driver_unlock();
	call.fn(call.data);
	driver_lock();
	t->in_host_function = before;
}

void run_callback(const struct op *op)
{
	CUstreamCallback fn = op->callback.fn;
	void *data = op->callback.data;
	CUstream stream = op->stream->is_legacy ? NULL : (CUstream)op->stream;
	struct thread_state *t = thread_state();
	bool before = t->in_host_function;
	t->in_host_function = true;
	driver_unlock();
	fn(stream, CUDA_SUCCESS, data);
	driver_lock();
	t->in_host_function = before;
}
