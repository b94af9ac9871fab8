/* graph_node.c: see graph_node.h. */
#include "graph_node.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core.h"
#include "events.h"
#include "maps.h"

/* Of host memory that one node may read. More is no parameter of a graph but data of the engine's. */
#define HOST_LIMIT ((uint64_t)64 << 20)

const char *graph_node_event(uint32_t graph, CUgraphNode node, CUgraphNodeType type)
{
	bool records = type == CU_GRAPH_NODE_TYPE_EVENT_RECORD;
	CUevent event = NULL;
	struct trace_writer *w;
	uint32_t index;
	CUresult rc = records ? REAL(cuGraphEventRecordNodeGetEvent)(node, &event) : REAL(cuGraphEventWaitNodeGetEvent)(node, &event);
	if (rc != CUDA_SUCCESS)
		return "the driver does not tell its event";
	core_lock();
	index = events_index(event);
	w = core_trace();
	if (w && index != UINT32_MAX)
		trace_event_node(w, graph, (uintptr_t)node, records, index);
	core_unlock();
	return index == UINT32_MAX ? "the creation of its event was not seen, or the event is gone" : NULL;
}

static bool in_allocation(uint64_t addr)
{
	const struct alloc *a;
	bool found = false;
	core_lock();
	for (size_t i = 0; !found && (a = maps_nth(i)); i++)
		found = a->live && addr - a->addr < a->size;
	core_unlock();
	return found;
}

/* The rows that the copy reads, one behind the other. The kernel copies them: whether the memory is still mapped is the
 * process's affair, and a wrong address must not end it. */
static void record_host(uint32_t graph, CUgraphNode node, const CUDA_MEMCPY3D *p)
{
	uint64_t width = p->WidthInBytes, rows = p->Height * p->Depth, size = width * rows;
	uint8_t *rows_out;
	struct trace_writer *w;
	bool ok = size > 0 && size / width == rows && size <= HOST_LIMIT;
	rows_out = ok ? malloc(size) : NULL;
	for (uint64_t r = 0; rows_out && ok && r < rows; r++) {
		uint64_t y = p->srcY + r % p->Height, z = p->srcZ + r / p->Height;
		uint64_t from = (uintptr_t)p->srcHost + (z * p->srcHeight + y) * p->srcPitch + p->srcXInBytes;
		struct iovec local = {rows_out + r * width, width}, remote = {(void *)(uintptr_t)from, width};
		ok = process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)width;
	}
	core_lock();
	w = core_trace();
	if (w && rows_out && ok)
		trace_host_data(w, graph, (uintptr_t)node, (struct trace_bytes){rows_out, size});
	core_unlock();
	free(rows_out);
}

const char *graph_node_memcpy(uint32_t graph, CUgraphNode node)
{
	CUDA_MEMCPY3D p;
	struct trace_writer *w;
	if (REAL(cuGraphMemcpyNodeGetParams)(node, &p) != CUDA_SUCCESS)
		return "the driver does not tell its parameters";
	if (p.srcMemoryType == CU_MEMORYTYPE_ARRAY || p.dstMemoryType == CU_MEMORYTYPE_ARRAY)
		return "it copies an array";
	if (p.srcMemoryType == CU_MEMORYTYPE_HOST && !in_allocation((uintptr_t)p.srcHost))
		record_host(graph, node, &p);
	if (p.srcMemoryType == CU_MEMORYTYPE_HOST)
		p.srcDevice = (uintptr_t)p.srcHost;
	if (p.dstMemoryType == CU_MEMORYTYPE_HOST)
		p.dstDevice = (uintptr_t)p.dstHost;
	core_lock();
	w = core_trace();
	if (w)
		trace_memcpy(w, graph, (uintptr_t)node, p.srcMemoryType, p.srcDevice, p.srcXInBytes, p.srcY, p.srcZ, p.srcPitch, p.srcHeight,
			p.dstMemoryType, p.dstDevice, p.dstXInBytes, p.dstY, p.dstZ, p.dstPitch, p.dstHeight, p.WidthInBytes, p.Height, p.Depth);
	core_unlock();
	return NULL;
}
