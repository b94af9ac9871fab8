/* content.c: see content.h. */
#include "content.h"

#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "driver.h"
#include "globals.h"
#include "graph_node.h"
#include "maps.h"
#include "multicast.h"
#include "table.h"

#define PIECE ((uint64_t)1 << 20)

struct range {
	uint64_t addr, size;
	bool live;
};

/* All under the lock. */
static struct range *blocks;
static size_t n_blocks, blocks_cap;
static struct map block_at; /* address -> index */

void content_block(uint64_t addr, uint64_t size, bool live)
{
	uint64_t i = map_get(&block_at, addr, n_blocks);
	if (i == n_blocks) {
		if (!table_grow((void **)&blocks, &blocks_cap, n_blocks + 1, sizeof *blocks))
			return;
		map_put(&block_at, addr, n_blocks++);
	}
	blocks[i] = (struct range){addr, size, live};
}

void content_blocks(void (*visit)(uint64_t addr, uint64_t size, bool live))
{
	for (size_t i = 0; i < n_blocks; i++)
		visit(blocks[i].addr, blocks[i].size, blocks[i].live);
}

void content_forget(uint64_t addr, uint64_t size)
{
	for (size_t i = 0; i < n_blocks;) {
		if (blocks[i].addr - addr >= size) {
			i++;
			continue;
		}
		map_remove(&block_at, blocks[i].addr);
		blocks[i] = blocks[--n_blocks];
		if (i < n_blocks)
			map_put(&block_at, blocks[i].addr, i);
	}
}

/* A range to be saved: live, and inside one allocation. */
struct piece {
	uint32_t alloc;
	enum alloc_kind kind;
	CUcontext ctx;
	uint64_t base, offset, size;
};

struct plan {
	struct piece *pieces;
	size_t n, cap;
};

static void plan_piece(struct plan *p, const struct alloc *a, uint64_t addr, uint64_t end)
{
	if (table_grow((void **)&p->pieces, &p->cap, p->n + 1, sizeof *p->pieces))
		p->pieces[p->n++] = (struct piece){a->id, a->kind, a->ctx, a->addr, addr - a->addr, end - addr};
}

static void plan_alloc(struct plan *p, const struct alloc *a)
{
	bool marked = false;
	for (size_t i = 0; i < n_blocks; i++) {
		const struct range *b = &blocks[i]; /* it may begin in the previous mapping and end in the next one */
		/* mutant: contents of a block across mappings */
		uint64_t from = b->addr > a->addr ? b->addr : a->addr, end = a->addr + a->size;
		if (b->addr + b->size < end)
			end = b->addr + b->size;
		if (from >= end)
			continue;
		marked = true;
		/* mutant: temporary buffers are not saved */
		if (b->live)
			plan_piece(p, a, from, end);
	}
	if (!marked)
		plan_piece(p, a, a->addr, a->addr + a->size);
}

/* The recorder does not save host memory that the process registered, nor another process's memory, nor memory of multicast objects. */
static bool is_candidate(const struct alloc *a)
{
	return a->live && a->kind != ALLOC_REGISTERED && a->kind != ALLOC_IPC && !(a->kind == ALLOC_VMM && !a->trigger && multicast_has(a->id)) &&
	       (maps_phases() == 0 || (maps_capture_phase() > 0 && a->phase >= maps_capture_phase()));
}

static void make_plan(struct plan *p)
{
	const struct alloc *a;
	core_lock();
	for (size_t i = 0; (a = maps_nth(i)); i++)
		if (is_candidate(a))
			plan_alloc(p, a);
	core_unlock();
}

static CUresult read_piece(const struct piece *p, uint64_t at, void *out, uint64_t size)
{
	if (p->kind == ALLOC_PINNED) {
		memcpy(out, (const void *)(uintptr_t)(p->base + at), size);
		return CUDA_SUCCESS;
	}
	return REAL(cuMemcpyDtoH_v2)(out, p->base + at, size);
}

static void record_piece(const struct piece *p, void *buffer)
{
	CUresult rc = CUDA_SUCCESS;
	for (uint64_t done = 0; done < p->size && rc == CUDA_SUCCESS; done += PIECE) {
		uint64_t size = p->size - done < PIECE ? p->size - done : PIECE;
		struct trace_writer *w;
		rc = read_piece(p, p->offset + done, buffer, size);
		core_lock();
		w = core_trace();
		if (w && rc == CUDA_SUCCESS)
			trace_content(w, p->alloc, p->offset + done, (struct trace_bytes){buffer, size});
		core_unlock();
	}
	if (rc != CUDA_SUCCESS)
		core_fault("cuMemcpyDtoH", "result %d: contents of allocation %u are missing", (int)rc, p->alloc);
}

void content_record(void)
{
	struct plan plan = {0};
	void *buffer = malloc(PIECE);
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUcontext ctx = NULL;
	CUresult rc;
	bool pushed;
	graph_node_check_hosts();
	make_plan(&plan);
	if (!buffer)
		goto out;
	REAL(cuCtxGetCurrent)(&ctx);
	if (!ctx && plan.n == 0)
		goto out;
	pushed = !ctx && REAL(cuCtxPushCurrent_v2)(plan.pieces[0].ctx) == CUDA_SUCCESS;
	REAL(cuThreadExchangeStreamCaptureMode)(&mode);
	rc = REAL(cuCtxSynchronize)();
	for (size_t i = 0; i < plan.n && rc == CUDA_SUCCESS; i++)
		record_piece(&plan.pieces[i], buffer);
	if (rc == CUDA_SUCCESS)
		globals_record();
	else
		core_fault("cuCtxSynchronize", "result %d: contents of device memory are missing", (int)rc);
	REAL(cuThreadExchangeStreamCaptureMode)(&mode);
	if (pushed)
		REAL(cuCtxPopCurrent_v2)(&ctx);
out:
	free(plan.pieces);
	free(buffer);
}
