/*
 * streams.h: deferred work: streams, events, the order in which they run, and capture.
 */
#ifndef SIMGPU_STREAMS_H
#define SIMGPU_STREAMS_H

#include "graphs/graphs.h"

/* ---- queue.c: streams' deferred work ---------------------------------------------------------------------------- */

enum op_kind { OP_KERNEL, OP_COPY, OP_FILL, OP_HOST, OP_CALLBACK, OP_EVENT, OP_GRAPH, OP_MEM, OP_FREE, OP_NOTHING };

struct op {
	enum op_kind kind;
	unsigned refs;
	bool done, running, between; /* between: it reaches an event that another process may wait for */
	struct op *next;
	struct stream *stream;
	struct op **deps;
	size_t dep_count, dep_cap;
	uint64_t done_ns;
	union {
		struct launch *launch;
		struct copy copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		struct host_call host;
		struct { CUstreamCallback fn; void *data; } callback;
		struct exec_body *graph;
		struct mem_ops *mem_ops;
		struct allocation *freed;
	};
};

struct stream {
	struct context *ctx;
	unsigned flags;
	int priority;
	uint64_t id;
	bool is_legacy, is_per_thread, destroyed;
	struct op *head, *tail; /* tail holds a reference */
	size_t length;
	struct capture *capture;
	struct dependency *deps; /* of the next captured node */
	size_t dep_count, dep_cap;
};

/* Puts work behind everything the stream (and the legacy stream's rules) orders it after. Takes over op. */
struct op *op_new(enum op_kind kind);
void op_ref(struct op *op);
void op_unref(struct op *op);
void op_after(struct op *op, struct op *dep);
void queue_add(struct stream *s, struct op *op);
/* Runs queued work, in an order drawn from the seed, until op is done. */
CUresult queue_run(struct context *ctx, struct op *op);
CUresult queue_run_stream(struct stream *s);
CUresult queue_run_all(struct context *ctx);
void queue_step(struct op *op); /* one piece of work towards op */
/* One piece of work that is ready, for work that waits for other work; false: there is none now. */
bool queue_other(void);
void queue_drop(struct stream *s);
bool stream_busy(const struct stream *s);

/* run.c: the work itself. A failure is the context's sticky error. */
CUresult run_launch(const struct launch *l);
CUresult run_copy(const CUDA_MEMCPY3D *p, const struct context *from, const struct context *to);
CUresult run_fill(const CUDA_MEMSET_NODE_PARAMS *p, const struct context *ctx);
bool mem_ops_held(const struct mem_ops *m, const struct context *ctx); /* by a wait at their begin */
CUresult run_mem_ops(const struct mem_ops *m, const struct context *ctx);
void run_host(const struct host_call *h);
void run_callback(const struct op *op);
CUresult run_body(struct exec_body *b); /* graph_run.c */

/* ---- stream.c, event.c ------------------------------------------------------------------------------------------ */

CUresult stream_resolve(struct call *c, CUstream handle, struct stream **out);
struct stream *stream_new(struct context *ctx, unsigned flags, int priority);
void stream_end(struct stream *s);
extern struct stream **all_streams;
extern size_t all_stream_count;

struct event {
	struct context *ctx;
	uint64_t number; /* in order of creation */
	unsigned flags;
	struct op *record; /* the last one, or NULL */
	uint64_t capture_id; /* non-zero: last recorded in this capture */
	struct ticket *ticket; /* of an event with a handle, and of an event of another process */
	struct dependency *deps;
	size_t dep_count, dep_cap;
};
void event_end(struct event *e);
CUresult event_resolve(CUevent handle, struct event **out);
struct event *event_new(struct context *ctx, unsigned flags);
void event_set(struct event *e, struct op *op);

/* The events that a launch of the graph waits for and records: as a whole, before and after all of its nodes. */
void body_events(const struct exec_body *b, struct op *op);

/* ---- capture.c -------------------------------------------------------------------------------------------------- */

struct capture {
	uint64_t id;
	CUstreamCaptureMode mode;
	unsigned thread;
	bool invalidated;
	struct graph *graph;
	struct stream *origin;
};

/* Calls that could disturb a capture somewhere: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (and the captures are invalidated)
 * if the calling thread's capture mode forbids them now. */
CUresult capture_unsafe(struct call *c);
/* Before work on s: fails for the legacy stream while a blocking stream captures. *capturing tells whether s captures. */
CUresult capture_check(struct call *c, struct stream *s, bool *capturing);
void capture_invalidate(struct capture *cap);
void capture_invalidate_id(uint64_t id);
bool capture_invalidate_all(const struct context *ctx); /* true if there were any */
/* Adds a node after the stream's dependencies and makes it the next one's only dependency. */
CUresult capture_node(struct stream *s, struct node *n);
CUresult capture_wait_event(struct call *c, struct stream *s, struct event *e, unsigned flags);
CUresult capture_record_event(struct call *c, struct stream *s, struct event *e, unsigned flags);
/* A set of dependencies without duplicates. */
void dependencies_add(struct dependency **deps, size_t *count, size_t *cap, struct dependency d);
void dependencies_forget(struct graph *g, const struct node *n); /* n is about to go */
void captures_end(struct context *ctx);
void capture_stream_gone(struct stream *s);

#endif
