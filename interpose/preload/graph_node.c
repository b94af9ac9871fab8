/* graph_node.c: see graph_node.h. */
#include "graph_node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core.h"
#include "events.h"
#include "maps.h"
#include "table.h"

/* Bytes of host memory that one node may read. More than that is data of the engine and not a parameter of a graph. */
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
	return index == UINT32_MAX ? "the creation of its event was not seen (it may be another process's), or the event is gone" : NULL;
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

/* The host memory that copies read, to be compared again at `ready`. Under the lock. */
struct source {
	uint32_t graph;
	CUgraphNode node;
	CUDA_MEMCPY3D params;
	uint8_t *rows;
	uint64_t size;
};
static struct source *sources;
static size_t n_sources, sources_cap;

/* The memory may be unmapped by now, so reading it must fail instead of crashing. Sandboxes may forbid the call. */
static bool read_own(void *to, uint64_t from, uint64_t size)
{
	struct iovec local = {to, size}, remote = {(void *)(uintptr_t)from, size};
	ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	int fd;
	if (got < 0 && errno != EFAULT && (fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)) >= 0) {
		got = pread(fd, to, size, (off_t)from);
		close(fd);
	}
	return got == (ssize_t)size;
}

/* Returns the rows that the copy reads, one after another. The kernel copies them, because the process may have unmapped the
 * memory and a wrong address must not crash it. */
static uint8_t *read_rows(const CUDA_MEMCPY3D *p, uint64_t *size)
{
	uint64_t width = p->WidthInBytes, rows = p->Height * p->Depth;
	uint8_t *out;
	bool ok;
	*size = width * rows;
	ok = *size > 0 && *size / width == rows && *size <= HOST_LIMIT;
	out = ok ? malloc(*size) : NULL;
	for (uint64_t r = 0; out && ok && r < rows; r++) {
		uint64_t y = p->srcY + r % p->Height, z = p->srcZ + r / p->Height;
		/* mutant: rows of host memory */
		uint64_t from = (uintptr_t)p->srcHost + (z * p->srcHeight + y) * p->srcPitch + p->srcXInBytes;
		ok = read_own(out + r * width, from, width);
	}
	if (ok)
		return out;
	free(out);
	return NULL;
}

static void record_host(uint32_t graph, CUgraphNode node, const CUDA_MEMCPY3D *p)
{
	struct source s = {graph, node, *p, NULL, 0};
	struct trace_writer *w;
	s.rows = read_rows(p, &s.size);
	if (!s.rows)
		return;
	core_lock();
	w = core_trace();
	if (w)
		trace_host_data(w, graph, (uintptr_t)node, (struct trace_bytes){s.rows, s.size});
	if (table_grow((void **)&sources, &sources_cap, n_sources + 1, sizeof *sources))
		sources[n_sources++] = s;
	core_unlock();
}

/* A graph reads host memory at every launch. Memory that changes between launches is not a constant part of the graph. */
void graph_node_check_hosts(void)
{
	for (size_t i = 0;; i++) {
		struct source s;
		struct trace_writer *w;
		uint64_t size;
		uint8_t *now;
		core_lock();
		s = i < n_sources ? sources[i] : (struct source){0};
		core_unlock();
		if (!s.rows)
			return;
		now = read_rows(&s.params, &size);
		core_lock();
		w = core_trace();
		/* mutant: host memory that changes */
		if (w && (!now || memcmp(now, s.rows, size) != 0))
			trace_host_changed(w, s.graph, (uintptr_t)s.node);
		core_unlock();
		free(now);
	}
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
