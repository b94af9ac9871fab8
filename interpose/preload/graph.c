/* graph.c: see graph.h. */
#include "graph.h"

#include <pthread.h>
#include <stdlib.h>

#include "core.h"
#include "function.h"
#include "graph_node.h"
#include "holes.h"

/* Only one walk at a time: two walks that meet the same function would both record it. Take it before the lock of core.h. */
static pthread_mutex_t walking = PTHREAD_MUTEX_INITIALIZER;

struct kernel_node {
	CUDA_KERNEL_NODE_PARAMS params;
	const struct function *function; /* NULL: opaque, because of `reason` */
	const char *reason;
};

struct walk {
	uint32_t id;
	CUgraph graph;
	CUgraphNode *nodes;
	CUgraphNodeType *types;
	const struct hole **holes;   /* by node: the call for which it stands, or NULL */
	const char *bad_hole;        /* why the graph's calls cannot be made anew */
	struct kernel_node *kernels; /* by node */
	uint32_t *children;          /* by node: the trace's id of the embedded graph */
	size_t n_nodes;
	CUgraphNode *from, *to;
	CUgraphEdgeData *edge_data;
	size_t n_edges;
};

static bool read_nodes(struct walk *g)
{
	CUresult rc = REAL(cuGraphGetNodes)(g->graph, NULL, &g->n_nodes);
	g->nodes = calloc(g->n_nodes + 1, sizeof *g->nodes);
	g->types = calloc(g->n_nodes + 1, sizeof *g->types);
	g->kernels = calloc(g->n_nodes + 1, sizeof *g->kernels);
	g->children = calloc(g->n_nodes + 1, sizeof *g->children);
	if (!g->nodes || !g->types || !g->kernels || !g->children) {
		core_fault("cuGraphGetNodes", "out of memory");
		return false;
	}
	if (rc == CUDA_SUCCESS && g->n_nodes > 0)
		rc = REAL(cuGraphGetNodes)(g->graph, g->nodes, &g->n_nodes);
	for (size_t i = 0; i < g->n_nodes && rc == CUDA_SUCCESS; i++)
		rc = REAL(cuGraphNodeGetType)(g->nodes[i], &g->types[i]);
	if (rc != CUDA_SUCCESS)
		core_fault("cuGraphGetNodes", "result %d", (int)rc);
	return rc == CUDA_SUCCESS;
}

/* Asks with room for edge data from the start, because the call that only counts refuses graphs whose edges have data. */
static bool read_edges(struct walk *g)
{
	CUresult rc = CUDA_SUCCESS;
	for (size_t cap = 2 * g->n_nodes + 16;; cap *= 2) {
		free(g->from);
		free(g->to);
		free(g->edge_data);
		g->from = calloc(cap, sizeof *g->from);
		g->to = calloc(cap, sizeof *g->to);
		g->edge_data = calloc(cap, sizeof *g->edge_data);
		g->n_edges = cap;
		if (!g->from || !g->to || !g->edge_data) {
			core_fault("cuGraphGetEdges", "out of memory");
			return false;
		}
		rc = REAL(cuGraphGetEdges_v2)(g->graph, g->from, g->to, g->edge_data, &g->n_edges);
		if (rc != CUDA_SUCCESS || g->n_edges < cap)
			break;
	}
	if (rc != CUDA_SUCCESS)
		core_fault("cuGraphGetEdges", "result %d", (int)rc);
	return rc == CUDA_SUCCESS;
}

static const struct hole *hole_at(const struct walk *g, size_t i) { return g->holes ? g->holes[i] : NULL; }

static size_t index_of(const CUgraphNode *nodes, size_t n, CUgraphNode node)
{
	size_t i = 0;
	while (i < n && nodes[i] != node)
		i++;
	return i;
}

/* One node stands for all that a call of the communicator has added: edges between them go, and edges of any of them become its own. */
static bool contract(struct walk *g)
{
	const struct hole **of = calloc(g->n_nodes + 1, sizeof *of);
	CUgraphNode *stand = calloc(g->n_nodes + 1, sizeof *stand);
	size_t n = 0, e = 0, all = g->n_nodes;
	CUgraphNode *nodes = calloc(all + 1, sizeof *nodes);
	g->holes = calloc(all + 1, sizeof *g->holes);
	if (!of || !stand || !nodes || !g->holes) {
		core_fault("cuGraphGetNodes", "out of memory");
		free(of);
		free(stand);
		free(nodes);
		return false;
	}
	for (size_t i = 0; i < all; i++) {
		nodes[i] = g->nodes[i];
		of[i] = holes_of(g->graph, g->nodes[i]);
		stand[i] = of[i] ? of[i]->nodes[0] : g->nodes[i];
	}
	for (size_t i = 0; i < all; i++)
		if (stand[i] == nodes[i]) {
			g->types[n] = g->types[i];
			g->holes[n] = of[i];
			g->nodes[n++] = nodes[i];
		}
	for (size_t i = 0; i < g->n_edges; i++) {
		size_t from = index_of(nodes, all, g->from[i]), to = index_of(nodes, all, g->to[i]), k = 0;
		/* mutant: edges within a call */
		if (from == all || to == all || (of[from] && of[from] == of[to]))
			continue;
		CUgraphEdgeData d = g->edge_data[i];
		/* mutant: edge with data into a call of the communicator */
		if ((of[from] || of[to]) && (d.from_port || d.to_port || d.type))
			g->bad_hole = "an edge with data leads into it or out of it";
		while (k < e && (g->from[k] != stand[from] || g->to[k] != stand[to]))
			k++;
		if (k < e && (of[from] || of[to]))
			continue;
		g->from[e] = stand[from];
		g->to[e] = stand[to];
		g->edge_data[e++] = d;
	}
	g->n_nodes = n;
	g->n_edges = e;
	free(of);
	free(stand);
	free(nodes);
	return true;
}

static bool has_holes(const struct walk *g)
{
	for (size_t i = 0; i < g->n_nodes; i++)
		if (holes_of(g->graph, g->nodes[i]))
			return true;
	return false;
}

static void read_kernels(struct walk *g)
{
	for (size_t i = 0; i < g->n_nodes; i++) {
		struct kernel_node *k = &g->kernels[i];
		if (g->types[i] != CU_GRAPH_NODE_TYPE_KERNEL || hole_at(g, i))
			continue;
		k->reason = "the driver does not tell its parameters";
		if (REAL(cuGraphKernelNodeGetParams_v2)(g->nodes[i], &k->params) == CUDA_SUCCESS)
			k->function = function_record(k->params.func, k->params.kern, &k->reason);
	}
}

/* Returns the parameters as one buffer: either the caller's own (`extra`), or the single values laid out as the function
 * requires. */
static const char *flatten(const struct kernel_node *k, struct trace_bytes *out, uint8_t **owned)
{
	const struct function *f = k->function;
	void **extra = k->params.extra;
	*owned = NULL;
	*out = (struct trace_bytes){NULL, 0};
	/* mutant: parameters as one buffer */
	if (!k->params.kernelParams && extra) {
		for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
			if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
				out->data = extra[1];
			else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
				out->size = *(size_t *)extra[1];
			else
				return "its launch has an unknown extra option";
		}
		return out->data || out->size == 0 ? NULL : "its parameter buffer is missing";
	}
	if (f->params_size == 0)
		return NULL;
	if (!k->params.kernelParams)
		return "it has no parameters, and its function takes some";
	*owned = calloc(1, f->params_size);
	if (!*owned)
		return "out of memory";
	for (size_t i = 0; i < f->n_params; i++)
		memcpy(*owned + f->params[i].offset, k->params.kernelParams[i], f->params[i].size);
	*out = (struct trace_bytes){*owned, f->params_size};
	return NULL;
}

/* Whether a value is the default of a node without this attribute. All zero is the default of all of them. */
static bool is_default(CUlaunchAttributeID id, const CUlaunchAttributeValue *v)
{
	CUlaunchAttributeValue d = {{0}};
	if (memcmp(v, &d, sizeof d) == 0)
		return true;
	if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
		d.memSyncDomainMap.remote = 1;
	if (id == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
		d.sharedMemCarveout = UINT32_MAX;
	if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION || id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
		d.clusterDim.x = d.clusterDim.y = d.clusterDim.z = 1;
	return memcmp(v, &d, sizeof d) == 0;
}

/* The bytes of the union that are the attribute's. A driver may give back the other bytes as the launch had them, unwritten. */
static size_t attribute_size(CUlaunchAttributeID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return offsetof(CUaccessPolicyWindow, missProp) + sizeof(int);
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
		return sizeof(((CUlaunchAttributeValue *)0)->clusterDim);
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		return sizeof(((CUlaunchAttributeValue *)0)->memSyncDomainMap);
	default:
		return sizeof(int);
	}
}

static size_t read_attrs(CUgraphNode node, CUlaunchAttributeValue *values, struct kernel_attr *attrs)
{
	static const CUlaunchAttributeID ids[] = {
		CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
		CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PRIORITY,
		CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
		CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
	};
	size_t n = 0;
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		memset(&values[n], 0, sizeof values[n]);
		if (REAL(cuGraphKernelNodeGetAttribute)(node, ids[i], &values[n]) != CUDA_SUCCESS)
			continue;
		/* mutant: bytes beside an attribute */
		memset(values[n].pad + attribute_size(ids[i]), 0, sizeof values[n] - attribute_size(ids[i]));
		if (is_default(ids[i], &values[n]))
			continue;
		attrs[n] = (struct kernel_attr){ids[i], {&values[n], sizeof values[n]}};
		n++;
	}
	return n;
}

static void record_opaque(const struct walk *g, size_t i, const char *reason)
{
	struct trace_writer *w;
	core_lock();
	w = core_trace();
	if (w)
		trace_opaque(w, g->id, (uintptr_t)g->nodes[i], (uint32_t)g->types[i], reason);
	core_unlock();
}

static void record_kernel(const struct walk *g, size_t i)
{
	const struct kernel_node *k = &g->kernels[i];
	const CUDA_KERNEL_NODE_PARAMS *p = &k->params;
	CUlaunchAttributeValue values[8];
	struct kernel_attr attrs[8];
	struct trace_bytes params = {0};
	uint8_t *owned = NULL;
	const char *reason = k->function ? flatten(k, &params, &owned) : k->reason;
	if (reason) {
		record_opaque(g, i, reason);
	} else {
		uint32_t grid[] = {p->gridDimX, p->gridDimY, p->gridDimZ}, block[] = {p->blockDimX, p->blockDimY, p->blockDimZ};
		size_t n = read_attrs(g->nodes[i], values, attrs);
		struct trace_writer *w;
		core_lock();
		w = core_trace();
		if (w)
			trace_kernel(w, g->id, (uintptr_t)g->nodes[i], k->function->id, grid, 3, block, 3, p->sharedMemBytes, params, attrs, n);
		core_unlock();
	}
	free(owned);
}

static void record_memset(const struct walk *g, size_t i)
{
	CUDA_MEMSET_NODE_PARAMS p;
	struct trace_writer *w;
	if (REAL(cuGraphMemsetNodeGetParams)(g->nodes[i], &p) != CUDA_SUCCESS) {
		record_opaque(g, i, "the driver does not tell its parameters");
		return;
	}
	core_lock();
	w = core_trace();
	if (w)
		trace_memset(w, g->id, (uintptr_t)g->nodes[i], p.dst, p.pitch, p.value, p.elementSize, p.width, p.height);
	core_unlock();
}

static void record_mem_ops(const struct walk *g, size_t i)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS p;
	struct trace_writer *w;
	struct mem_ops_op *ops = NULL;
	if (REAL(cuGraphBatchMemOpNodeGetParams)(g->nodes[i], &p) != CUDA_SUCCESS || !(ops = calloc(p.count ? p.count : 1, sizeof *ops))) {
		record_opaque(g, i, "the driver does not tell its parameters");
		return;
	}
	for (size_t k = 0; k < p.count; k++) {
		/* Barriers and flushes have no address. materialize refuses all operations that it does not know. */
		const CUstreamMemOpValue *v = &p.paramArray[k].waitValue;
		bool wide = v->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || v->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
		ops[k] = (struct mem_ops_op){v->operation, v->address, wide ? v->value64 : v->value, v->flags};
	}
	core_lock();
	w = core_trace();
	if (w)
		trace_mem_ops(w, g->id, (uintptr_t)g->nodes[i], p.flags, ops, p.count);
	core_unlock();
	free(ops);
}

static void record_plain(const struct walk *g, size_t i)
{
	struct trace_writer *w;
	core_lock();
	w = core_trace();
	if (w && g->types[i] == CU_GRAPH_NODE_TYPE_GRAPH)
		trace_child(w, g->id, (uintptr_t)g->nodes[i], g->children[i]);
	else if (w)
		trace_empty(w, g->id, (uintptr_t)g->nodes[i]);
	core_unlock();
}

static void record_collective(const struct walk *g, size_t i)
{
	const struct hole *h = g->holes[i];
	const struct medusa_collective *c = &h->call;
	struct trace_writer *w;
	core_lock();
	w = core_trace();
	if (w)
		trace_collective(w, g->id, (uintptr_t)g->nodes[i], h->number, (uint32_t)h->n_nodes, c->operation, c->dtype, c->reduce, c->root, c->count,
				 c->send, c->send_bytes, c->recv, c->recv_bytes);
	core_unlock();
}

static void record_node(const struct walk *g, size_t i)
{
	const char *reason = NULL;
	if (hole_at(g, i)) {
		if (g->bad_hole)
			record_opaque(g, i, g->bad_hole);
		else
			record_collective(g, i);
		return;
	}
	switch (g->types[i]) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		record_kernel(g, i);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		record_memset(g, i);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		record_mem_ops(g, i);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		reason = graph_node_memcpy(g->id, g->nodes[i]);
		break;
	case CU_GRAPH_NODE_TYPE_EMPTY:
		record_plain(g, i);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		if (g->children[i] != UINT32_MAX)
			record_plain(g, i);
		else
			reason = "the driver does not hand out the graph that it embeds";
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		reason = graph_node_event(g->id, g->nodes[i], g->types[i]);
		break;
	default:
		reason = "nodes of this type cannot be restored";
	}
	if (reason)
		record_opaque(g, i, reason);
}

static void record_edges(const struct walk *g)
{
	struct trace_writer *w;
	core_lock();
	w = core_trace();
	for (size_t i = 0; w && i < g->n_edges; i++)
		trace_edge(w, g->id, (uintptr_t)g->from[i], (uintptr_t)g->to[i], g->edge_data[i].from_port, g->edge_data[i].to_port, g->edge_data[i].type);
	core_unlock();
}

static uint32_t walk_graph(CUgraph graph, const char *label, int64_t batch);

/* Embedded graphs come first, because a record may refer only to earlier ones. */
static void walk_children(struct walk *g)
{
	for (size_t i = 0; i < g->n_nodes; i++) {
		CUgraph child;
		if (g->types[i] != CU_GRAPH_NODE_TYPE_GRAPH || hole_at(g, i))
			continue;
		g->children[i] = UINT32_MAX;
		if (REAL(cuGraphChildGraphNodeGetGraph)(g->nodes[i], &child) == CUDA_SUCCESS)
			g->children[i] = walk_graph(child, NULL, 0);
	}
}

static uint32_t walk_graph(CUgraph graph, const char *label, int64_t batch)
{
	static uint32_t next_id; /* under walking */
	struct walk g = {.graph = graph};
	struct trace_writer *w;
	g.id = next_id++;
	if (read_nodes(&g) && read_edges(&g) && (!has_holes(&g) || contract(&g))) {
		walk_children(&g);
		read_kernels(&g);
		core_lock();
		w = core_trace();
		if (w)
			trace_graph(w, g.id, (uintptr_t)graph, label, batch, (uint32_t)g.n_nodes, (uint32_t)g.n_edges);
		core_unlock();
		for (size_t i = 0; i < g.n_nodes; i++)
			record_node(&g, i);
		record_edges(&g);
	}
	free(g.nodes);
	free(g.types);
	free(g.holes);
	free(g.kernels);
	free(g.children);
	free(g.from);
	free(g.to);
	free(g.edge_data);
	return g.id;
}

uint32_t graph_record(CUgraph graph, const char *label, int64_t batch)
{
	uint32_t id;
	/* Another thread may be capturing in a mode that forbids this thread some of the calls below. */
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	REAL(cuThreadExchangeStreamCaptureMode)(&mode);
	pthread_mutex_lock(&walking);
	id = walk_graph(graph, label, batch);
	pthread_mutex_unlock(&walking);
	REAL(cuThreadExchangeStreamCaptureMode)(&mode);
	return id;
}
