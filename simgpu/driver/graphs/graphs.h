/*
 * graphs.h: graphs as structures, and the descriptions of work that their nodes hold.
 */
#ifndef SIMGPU_GRAPHS_H
#define SIMGPU_GRAPHS_H

#include "modules/modules.h"

struct event;
struct op;

/* ---- launch.c, copy.c: launches, copies and fills, as they are submitted, captured or set in a node ------------------------ */

struct launch {
	struct function *function;
	CUfunction handle; /* as the caller passed it */
	bool by_kern;      /* ... in the kern field of node parameters */
	uint32_t grid[3], block[3], shared;
	bool cooperative;
	unsigned char *params; /* ptx_kernel_param_bytes bytes */
	void **pointers;       /* one a parameter, into params */
	void *extra[5];        /* the caller's option list over params in place of pointers; empty: pointers */
	size_t extra_size;
};

struct copy {
	CUDA_MEMCPY3D p;
	const struct context *from, *to; /* whose memory a side is */
	void *snapshot; /* pageable source, as it was at the call */
};
struct host_call { CUhostFn fn; void *data; };
struct mem_ops { unsigned count; CUstreamBatchMemOpParams ops[]; };

CUresult launch_new(struct context *ctx, const void *handle, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                    void **params, void **extra, bool cooperative, struct launch **out);
struct launch *launch_copy(const struct launch *l);
void launch_free(struct launch *l);
CUresult copy_check(struct call *c, const CUDA_MEMCPY3D *p);
CUresult fill_check(const CUDA_MEMSET_NODE_PARAMS *p);
/* memops.c: waits for values in memory, and writes of values. */
CUresult mem_ops_new(struct call *c, unsigned count, const CUstreamBatchMemOpParams *ops, unsigned flags, struct mem_ops **out);
struct mem_ops *mem_ops_copy(const struct mem_ops *m);
bool mem_ops_alike(const struct mem_ops *a, const struct mem_ops *b); /* same number and types */
CUDA_MEMCPY3D copy_linear(CUmemorytype dst_type, uint64_t dst, CUmemorytype src_type, uint64_t src, uint64_t bytes);
bool copy_empty(const CUDA_MEMCPY3D *p);
uint64_t copy_source(const CUDA_MEMCPY3D *p);
uint64_t copy_target(const CUDA_MEMCPY3D *p);

/* ---- graph*.c --------------------------------------------------------------------------------------------------- */

struct dependency { struct node *node; CUgraphEdgeData edge; };

struct edge { struct node *from, *to; CUgraphEdgeData data; uint64_t number; };

#define NODE_ATTRIBUTES 16

struct node {
	struct graph *graph;
	CUgraphNodeType type;
	size_t slot; /* index in graph->nodes */
	uint64_t number; /* of all nodes of the process, in order of creation */
	struct node *cloned_from;
	struct edge **in, **out;
	size_t in_count, in_cap, out_count, out_cap;
	struct context *ctx;
	unsigned attr_set; /* bit i: attribute i was set */
	CUlaunchAttributeValue attrs[NODE_ATTRIBUTES];
	union {
		struct launch *launch;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		struct host_call host;
		struct mem_ops *mem_ops;
		struct graph *child;
		struct event *event;
	};
};

struct graph {
	struct node **nodes; /* in order of creation */
	size_t node_count, node_cap;
	struct edge **edges; /* in order of creation */
	size_t edge_count, edge_cap;
	bool owned; /* by a child node or a capture: not the application's to destroy */
};

struct graph *graph_new(void);
struct graph *graph_clone(const struct graph *g);
void graph_end(struct graph *g);
struct node *node_new(CUgraphNodeType type, struct context *ctx);
void node_free(struct node *n); /* one that no graph holds yet */
void graph_attach(struct graph *g, struct node *n);
CUresult graph_connect(struct graph *g, struct node *from, struct node *to, CUgraphEdgeData data);
void graph_disconnect(struct graph *g, struct edge *e);
bool edge_default(CUgraphEdgeData d);
bool edge_valid(const struct node *from, const struct node *to, CUgraphEdgeData d);
CUresult graph_resolve(CUgraph handle, struct graph **out);
CUresult node_resolve(CUgraphNode handle, struct node **out);
/* A node that no graph holds yet, from parameters in their general form; and the special forms in it. */
CUresult node_from_params(struct call *c, const CUgraphNodeParams *p, struct node **out);
CUgraphNodeParams params_kernel_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p);
CUgraphNodeParams params_kernel(const CUDA_KERNEL_NODE_PARAMS *p);
CUgraphNodeParams params_memcpy(const CUDA_MEMCPY3D *p, CUcontext ctx);
CUgraphNodeParams params_mem_ops(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p);
CUgraphNodeParams params_memset(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx);
CUresult node_attribute_check(CUlaunchAttributeID id, const CUlaunchAttributeValue *v);
size_t node_attribute_size(CUlaunchAttributeID id);
/* INVALID_CLUSTER_SIZE if f cannot run in clusters of that size. */
CUresult cluster_check(const struct function *f, const CUlaunchAttributeValue *v);

/* The part of an executable graph that runs: a copy of the graph, shared with launches in flight and copied when it is changed. */
struct exec_node {
	CUgraphNodeType type;
	const struct node *origin; /* only compared, never followed: it may be gone */
	struct context *ctx;
	bool enabled;
	unsigned attr_set;
	CUlaunchAttributeValue attrs[NODE_ATTRIBUTES];
	size_t *next;
	CUgraphEdgeData *next_data;
	size_t next_count, waits; /* nodes after it; number of nodes before it */
	union {
		struct launch *launch;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		struct host_call host;
		struct mem_ops *mem_ops;
		struct exec_body *child;
		struct event *event;
	};
};

struct exec_body {
	unsigned refs;
	struct exec_node *nodes;
	size_t count;
};

struct exec {
	struct context *ctx;
	uint64_t flags;
	struct exec_body *body;
	size_t nodes; /* at instantiation */
	struct op *last; /* its last launch: launches of one executable graph never overlap */
};

CUresult body_new(const struct graph *g, struct exec_body **out);
struct exec_body *body_copy(const struct exec_body *b);
void body_unref(struct exec_body *b);
void body_set_node(struct exec_node *x, const struct node *n); /* takes a copy of n's parameters and attributes */
CUresult exec_resolve(CUgraphExec handle, struct exec **out);

/* Visits nodes as far as their dependencies allow. pick chooses among the ready ones. False: some are in a cycle. */
bool body_visit(const struct exec_body *b, size_t (*pick)(size_t ready), CUresult (*visit)(struct exec_node *), CUresult *r);

/* truth.c */
void truth_node(uint64_t capture, const struct node *n);
void truth_instance(const struct graph *g, const struct exec *e);

#endif
