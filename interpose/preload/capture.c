/* capture.c: see capture.h. */
#include "capture.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core.h"
#include "driver.h"
#include "graphs.h"
#include "maps.h"
#include "medusa.h"
#include "table.h"

struct capture {
	CUstream stream;
	bool ptsz; /* begun by a per-thread function: the null stream has another meaning there */
};

/* Under the lock; n_captures may be read without it. */
static struct capture *captures;
static size_t captures_cap;
static _Atomic size_t n_captures;

bool capture_active(void) { return atomic_load(&n_captures) > 0; }

/* An engine that restores marks a phase before it captures. There may be no reader of the pipe, so the write must not block. */
static void tell_unmarked(void)
{
	const char *path = getenv(MEDUSA_ENV_UNMARKED);
	int fd = path ? open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	(void)!write(fd, "", 1);
	close(fd);
}

static void note_begin(CUstream stream, bool ptsz)
{
	static bool looked;
	bool unmarked;
	core_lock();
	unmarked = !looked && core_mode() == MODE_REPLAY && maps_phases() == 0;
	looked = true;
	if (table_grow((void **)&captures, &captures_cap, n_captures + 1, sizeof *captures))
		captures[n_captures++] = (struct capture){stream, ptsz};
	core_unlock();
	/* mutant: server that knows nothing of Medusa */
	if (unmarked)
		tell_unmarked();
}

static void note_end(CUstream stream, bool ptsz)
{
	core_lock();
	for (size_t i = 0; i < n_captures; i++)
		if (captures[i].stream == stream && (stream || captures[i].ptsz == ptsz)) {
			captures[i] = captures[--n_captures];
			break;
		}
	core_unlock();
}

/* v3 first, because v2 refuses captures whose edges have data. */
static CUresult graph_of(const struct capture *c, CUstreamCaptureStatus *status, CUgraph *graph)
{
	const CUgraphNode *deps;
	const CUgraphEdgeData *edges;
	size_t n;
	uint64_t id;
	CUresult rc = c->ptsz ? REAL(cuStreamGetCaptureInfo_v3_ptsz)(c->stream, status, &id, graph, &deps, &edges, &n)
			      : REAL(cuStreamGetCaptureInfo_v3)(c->stream, status, &id, graph, &deps, &edges, &n);
	if (rc != CUDA_SUCCESS)
		rc = c->ptsz ? REAL(cuStreamGetCaptureInfo_v2_ptsz)(c->stream, status, &id, graph, &deps, &n)
			     : REAL(cuStreamGetCaptureInfo_v2)(c->stream, status, &id, graph, &deps, &n);
	return rc;
}

/* Returns whether the stream takes part in a capture, whose graph and nodes so far it gives; the caller frees nodes. */
bool capture_nodes(CUstream stream, CUgraph *graph, CUgraphNode **nodes, size_t *n)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	struct capture c = {stream, false};
	CUresult rc = graph_of(&c, &status, graph);
	*nodes = NULL;
	*n = 0;
	if (rc != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return false;
	rc = REAL(cuGraphGetNodes)(*graph, NULL, n);
	if (rc == CUDA_SUCCESS && *n > 0) {
		*nodes = calloc(*n, sizeof **nodes);
		rc = *nodes ? REAL(cuGraphGetNodes)(*graph, *nodes, n) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	return rc == CUDA_SUCCESS;
}

static void record_moment(const struct capture *c)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUgraph graph = NULL;
	CUgraphNode *nodes = NULL;
	size_t n = 0;
	struct trace_writer *w;
	CUresult rc = graph_of(c, &status, &graph);
	if (rc == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return;
	if (rc == CUDA_SUCCESS)
		rc = REAL(cuGraphGetNodes)(graph, NULL, &n);
	if (rc == CUDA_SUCCESS && n > 0) {
		nodes = calloc(n, sizeof *nodes);
		rc = nodes ? REAL(cuGraphGetNodes)(graph, nodes, &n) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (rc != CUDA_SUCCESS) {
		core_fault("cuStreamGetCaptureInfo", "result %d: nodes of an active capture cannot be distinguished from later ones", (int)rc);
	} else {
		_Static_assert(sizeof *nodes == sizeof(uint64_t), "handles are recorded as they lie");
		core_lock();
		w = core_trace();
		if (w)
			trace_moment(w, (uintptr_t)graph, (const uint64_t *)nodes, n);
		core_unlock();
	}
	free(nodes);
}

void capture_moment(void)
{
	struct capture *active;
	size_t n;
	if (!capture_active() || core_mode() != MODE_RECORD)
		return;
	core_lock();
	n = n_captures;
	active = malloc((n + 1) * sizeof *active);
	for (size_t i = 0; active && i < n; i++)
		active[i] = captures[i];
	core_unlock();
	for (size_t i = 0; active && i < n; i++)
		record_moment(&active[i]);
	free(active);
}

static CUresult ended(CUresult rc, CUstream stream, CUgraph *graph, bool ptsz)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	if (rc != CUDA_SUCCESS) { /* the wrong thread or stream: the capture continues */
		if (ptsz)
			REAL(cuStreamIsCapturing_ptsz)(stream, &status);
		else
			REAL(cuStreamIsCapturing)(stream, &status);
		if (status != CU_STREAM_CAPTURE_STATUS_NONE)
			return rc;
	}
	note_end(stream, ptsz);
	if (rc == CUDA_SUCCESS && *graph)
		graphs_captured(*graph);
	return rc;
}

/* Hooks a function that begins a capture on `stream`, one of its arguments. */
#define BEGIN(name, ptsz, args, ...) \
	CUresult name args \
	{ \
		CUresult rc; \
		if (!hook_enter()) \
			return REAL(name)(__VA_ARGS__); \
		rc = REAL(name)(__VA_ARGS__); \
		if (rc == CUDA_SUCCESS) \
			note_begin(stream, ptsz); \
		hook_leave(); \
		return rc; \
	}

#define CAPTURE(suffix, ptsz) \
	BEGIN(cuStreamBeginCapture##suffix, ptsz, (CUstream stream), stream) \
	BEGIN(cuStreamBeginCapture_v2##suffix, ptsz, (CUstream stream, CUstreamCaptureMode mode), stream, mode) \
	BEGIN(cuStreamBeginCaptureToGraph##suffix, ptsz, \
	      (CUstream stream, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n, CUstreamCaptureMode mode), \
	      stream, graph, deps, edges, n, mode) \
	CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph *graph) \
	{ \
		CUresult rc; \
		if (!hook_enter()) \
			return REAL(cuStreamEndCapture##suffix)(stream, graph); \
		rc = ended(REAL(cuStreamEndCapture##suffix)(stream, graph), stream, graph, ptsz); \
		hook_leave(); \
		return rc; \
	}
CAPTURE(, false)
CAPTURE(_ptsz, true)
