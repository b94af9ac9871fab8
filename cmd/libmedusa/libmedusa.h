/*
 * libmedusa.h: the restore engine for engines that are not written in Go.
 *
 * One process has one session, made by medusa_session_open from the environment that `medusa materialize` and
 * `medusa restore` set (docs/architecture.md). Calls come from one thread, with the engine's CUDA context current, and
 * never before a fork of the process: a child that calls anything gets MEDUSA_MISUSE. A restored graph is launched with
 * cuGraphLaunch, once medusa_session_usable has said that it may be.
 *
 * The structs and enums here are generated from internal/contract/contract.spec. Change them there (go generate ./internal/contract).
 *
 * Functions return 0 or a count where they succeed, MEDUSA_FALLBACK where the engine has to start natively (the reason
 * was printed to standard error), MEDUSA_FAILED or MEDUSA_MISUSE otherwise; medusa_session_error then says why.
 */
#ifndef LIBMEDUSA_H
#define LIBMEDUSA_H

#include <stddef.h>
#include <stdint.h>

/* What a function returns if it does not succeed. */
enum medusa_result {
	MEDUSA_FAILED = -1,
	MEDUSA_FALLBACK = -2,
	MEDUSA_MISUSE = -3,
};

/* What this start is for: the value that medusa_session_open returns. To the engine, a start that checks restored graphs is one
 * that restores. */
enum medusa_purpose {
	MEDUSA_NONE = 0,
	MEDUSA_PROFILE = 1,
	MEDUSA_RECORD = 2,
	MEDUSA_CHECK = 3,
	MEDUSA_RESTORE = 4,
};

/* A restored graph. */
struct medusa_session_graph {
	int64_t batch; /* of medusa_mark_graph, as is label; several graphs may share a batch, none a label */
	uint64_t exec; /* CUgraphExec, valid until medusa_session_close; 0: a lazy start, medusa_session_usable builds it */
	char label[128];
};

/* Runs a triggering layer; 0 where it succeeded. */
typedef int (*medusa_run)(void *arg);
/* Serves the fixed prompts of the engine's self test and writes what came out; returns its length, or a negative number.
 * A length above capacity is an error. */
typedef int64_t (*medusa_self_test)(void *arg, void *out, size_t capacity);

/* A step of the engine's, for the graph with a label; 0 where it succeeded. */
typedef int (*medusa_step)(void *arg, const char *label);

int medusa_session_open(void);
/* The last failure's text; valid until the next call. */
const char *medusa_session_error(void);
/* 1 while this start still is to be served by restored graphs. */
int medusa_session_restoring(void);
/* The engine enters a phase: call it beside medusa_mark_phase. */
int medusa_session_phase(const char *phase);
/* What the artifact is valid for; before the engine allocates device memory. */
int medusa_session_identify(const char **keys, const char **values, size_t n);
/* 1 and the size of the KV cache in bytes, or 0 where the engine has to profile. */
int medusa_session_kv_bytes(uint64_t *bytes);
/* After medusa_session_kv_bytes has given a size: the bytes to reserve for what grows with a forward and stays. */
int medusa_session_workspace(uint64_t *bytes);
/* Batch sizes at which the first layer is to be run through medusa_session_trigger, in order. Returns how many there are. */
int medusa_session_triggers(int64_t *batches, size_t capacity);
int medusa_session_trigger(medusa_run run, void *arg);
/* Restores every graph at the first call. Returns how many there are and fills the first `capacity` of them, in the order in which
 * they were captured. */
int medusa_session_graphs(struct medusa_session_graph *out, size_t capacity);
/* After medusa_session_graphs: 1 and the address of a named tensor of the capture phase, which the engine did not allocate in
 * this process; 0 where the artifact names none so. */
int medusa_session_tensor(const char *name, uint64_t *addr);
/* After medusa_session_graphs: what the engine noted under the name when it was recorded (medusa_mark_note). Returns its length, of
 * which the first `capacity` bytes are written; MEDUSA_FAILED where it noted nothing so. */
int medusa_session_note(const char *name, void *out, size_t capacity);
/* After medusa_session_graphs: a line for each kernel of the graphs, without a final NUL: how this process came by it, its mangled
 * name and its module, between tabs. How is loaded (by the engine's own start), triggered (by a triggering layer), object (a copy
 * from the shared object that holds it) or artifact (a copy from there). Returns the length of all lines. */
int medusa_session_kernels(char *out, size_t capacity);
/* What the engine can do for a check of its graphs, before medusa_session_graphs; either may be NULL. before_replay puts what the
 * engine writes before each replay of a graph into the state that it had at the capture, and runs no forward. eager makes the
 * graph's step without a graph. */
int medusa_session_provide(medusa_step before_replay, medusa_step eager, void *arg);
/* The engine takes no part in what this start is for, or cannot use what medusa_session_graphs gave it. Ends a recording run;
 * a start that was to be restored goes on natively, with MEDUSA_FALLBACK. */
int medusa_session_refuse(const char *reason);
/* To be asked before each launch. 1 and the CUgraphExec of a restored graph, by its place in what medusa_session_graphs gave,
 * which a lazy start builds now; 0 where the engine has to do without restored graphs from now on (memory or a module that
 * they refer to is gone, or medusa_session_invalidate was called): medusa_session_error says why. */
int medusa_session_usable(size_t graph, uint64_t *exec);
/* The engine does what restored graphs cannot follow: sleep mode, weights at other addresses, another adapter. */
int medusa_session_invalidate(const char *reason);
/* Ends the start. Does not return in runs that verify. self_test may be NULL. */
int medusa_session_ready(medusa_self_test self_test, void *arg);
/* A CUresult that the engine met after ready. Does not return where it is sticky and graphs were restored. */
int medusa_session_failed(int result);
int medusa_session_close(void);

#endif
