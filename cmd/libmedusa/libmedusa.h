/*
 * libmedusa.h: the restore engine for engines that are not written in Go.
 *
 * One process has one session. medusa_session_open makes it from the environment that `medusa materialize` and `medusa restore`
 * set (docs/architecture.md). Make one call at a time, with the engine's CUDA context current. Do not fork once the library is
 * loaded. Ask medusa_session_usable before each launch of a restored graph, then launch it with cuGraphLaunch.
 *
 * The structs and enums here are generated from internal/contract/contract.spec. Change them there (go generate
 * ./internal/contract).
 *
 * Functions return 0 or a count if they succeed. They return MEDUSA_FALLBACK if the engine has to start natively; the reason was
 * printed to standard error. Otherwise they return MEDUSA_FAILED or MEDUSA_MISUSE, and medusa_session_error has the text.
 *
 * MEDUSA_MISUSE comes at once, and the call has no effect: without a session, or with a second one; if a pointer is NULL that may not be (an
 * array may, if its capacity is 0); in a forked child; while another thread is in a call; and in a function of the engine that a call runs,
 * for functions that begin or end something: open, identify, trigger, graphs, ready, sleep, wake and close. refuse, provide, collectives and
 * connect may be called by a triggering layer, and by no other such function.
 */
#ifndef LIBMEDUSA_H
#define LIBMEDUSA_H

#include <stddef.h>
#include <stdint.h>

/* The results of a function that does not succeed. */
enum medusa_result {
	MEDUSA_FAILED = -1,
	MEDUSA_FALLBACK = -2,
	MEDUSA_MISUSE = -3,
};

/* The purpose of this start, which medusa_session_open returns. A start that checks restored graphs is MEDUSA_RESTORE to the engine. */
enum medusa_purpose {
	MEDUSA_NONE = 0,
	MEDUSA_PROFILE = 1,
	MEDUSA_RECORD = 2,
	MEDUSA_CHECK = 3,
	MEDUSA_RESTORE = 4,
};

/* What a start does with its weights: medusa_session_weights returns it. */
enum medusa_weights {
	MEDUSA_WEIGHTS_ANY = 0, /* it loads them, and their contents do not count */
	MEDUSA_WEIGHTS_OTHER = 1, /* it loads other values of the same shapes, and states the factor model.checkpoint with any value */
	MEDUSA_WEIGHTS_COUNT = 2, /* it loads them, and states a digest of all their contents as the factor model.checkpoint */
};

/* A restored graph. */
struct medusa_session_graph {
	int64_t batch; /* batch and label are those of medusa_mark_graph; graphs may share a batch, but not a label */
	uint64_t exec; /* CUgraphExec, valid until medusa_session_close or medusa_session_sleep; 0 in a lazy start until medusa_session_usable builds it */
	char label[128];
};

/* Runs a triggering layer. Returns 0 on success. */
typedef int (*medusa_run)(void *arg);
/* Serves the fixed prompts of the engine's self test and writes the output. Returns its length, or a negative number. A length
 * above capacity is an error. */
typedef int64_t (*medusa_self_test)(void *arg, void *out, size_t capacity);

/* A step of the engine's, for the graph with a label; 0 if it succeeded. */
typedef int (*medusa_step)(void *arg, const char *label);

int medusa_session_open(void);
/* The text of the calling thread's last failure, valid until its next call. Never NULL. */
const char *medusa_session_error(void);
/* Returns 1 as long as this start may still be served by restored graphs. */
int medusa_session_restoring(void);
/* The engine enters a phase. Call it together with medusa_mark_phase. */
int medusa_session_phase(const char *phase);
/* Names the factors that the artifact must match. Call it once, with the CUDA context current, before the engine allocates device
 * memory. It marks the identity as well. */
int medusa_session_identify(const char **keys, const char **values, size_t n);
/* Returns what this start does with its weights, one of enum medusa_weights. Call it before medusa_session_identify. An engine that does not ask
 * states model.checkpoint in every start. */
int medusa_session_weights(void);
/* The engine serves with any KV cache from least bytes on, if the addresses of all of it are reserved. A block has block bytes, over all
 * layers. Call it before medusa_session_identify: a start is then restored if there is room for the least. An engine that does not know the sizes
 * by then passes 0, which means those of the artifact, and calls it again once it knows them. */
int medusa_session_elastic(uint64_t least, uint64_t block);
/* Returns 1 and the size of the KV cache in bytes, or 0 if the engine has to profile. */
int medusa_session_kv_bytes(uint64_t *bytes);
/* Returns 1 and for how many of these bytes there was room at medusa_session_identify, or 0 if the size comes from no artifact. */
int medusa_session_kv_room(uint64_t *bytes);
/* Call it after medusa_session_kv_bytes has given a size. Gives the bytes to reserve for buffers that a forward grows and that
 * stay. */
int medusa_session_workspace(uint64_t *bytes);
/* Gives the batch sizes at which to run the first layer through medusa_session_trigger, in order. That loads the modules which the
 * skipped warm-up would have loaded. Returns their number. Call it again once the engine has its graphs: a native start that checks
 * gives the sizes then, and otherwise there are none. */
int medusa_session_triggers(int64_t *batches, size_t capacity);
int medusa_session_trigger(medusa_run run, void *arg);
/* Restores every graph at the first call. Returns their number and fills in the first `capacity` of them, in capture order. */
int medusa_session_graphs(struct medusa_session_graph *out, size_t capacity);
/* After medusa_session_graphs: returns 1 and the address of a tensor that was named in the capture phase and that the engine
 * did not allocate in this process. Returns 0 if the artifact has no such tensor. */
int medusa_session_tensor(const char *name, uint64_t *addr);
/* After medusa_session_graphs: gives the note that the engine left under this name when it was recorded (medusa_mark_note).
 * Returns its length and writes at most the first `capacity` bytes. Returns MEDUSA_FAILED if there is no such note. */
int medusa_session_note(const char *name, void *out, size_t capacity);
/* After medusa_session_graphs: writes a line for each kernel of the graphs, without a final NUL. A line has three columns
 * between tabs: how this process got the kernel, its mangled name, and its module. The first is loaded (by the engine's own
 * start), triggered (by a triggering layer), object (a copy from the shared object that holds it) or artifact (a copy from the
 * artifact). Returns the length of all lines. */
int medusa_session_kernels(char *out, size_t capacity);
/* Offers steps of the engine to a check of its graphs. Call it before medusa_session_graphs; either may be NULL. before_replay
 * restores the data that the engine writes before each replay of a graph to its state at the capture, and runs no forward. eager runs
 * the step of the graph without a graph. */
int medusa_session_provide(medusa_step before_replay, medusa_step eager, void *arg);
struct medusa_collective; /* medusa.h */
/* Makes a call of the engine's communicator on a stream (a CUstream) that captures; 0 if it succeeded. */
typedef int (*medusa_collective_call)(void *arg, const struct medusa_collective *call, uint64_t stream);
/* Says how the engine makes the calls of its communicator that graphs hold. Call it before medusa_session_graphs, in which all ranks make the
 * same calls in the same order. */
int medusa_session_collectives(medusa_collective_call make, void *arg);
/* Offers a step that finishes what the calls of the engine's communicator left for later, such as an exchange of addresses; 0 if it succeeded. Call
 * it before medusa_session_graphs, on all ranks or on none: there all ranks take the step at the same time, once all graphs with calls are built and
 * before any is replayed. */
int medusa_session_connect(medusa_run step, void *arg);
/* Returns 1 if this process is one of several ranks, and no other rank is running (medusa materialize --ranks-alone). The engine then makes no
 * communicator, and calls medusa_session_stand_in in place of each of its calls. */
int medusa_session_alone(void);
/* Puts a local operation on the stream (a CUstream), in place of a call of the communicator: the result has this rank's data in place of the
 * others'. The marks stay: medusa_mark_collective comes before it, medusa_mark_collective_end after it. */
int medusa_session_stand_in(const struct medusa_collective *call, uint64_t stream);
/* The engine does not support the purpose of this start, or cannot use the graphs of medusa_session_graphs. A recording run ends.
 * A start that was to be restored continues natively, with MEDUSA_FALLBACK. */
int medusa_session_refuse(const char *reason);
/* Call it before each launch; `graph` is the index in the list of medusa_session_graphs. Returns 1 and the CUgraphExec of the
 * restored graph, which a lazy start builds now. Returns 0 if the engine may no longer use restored graphs: memory or a module
 * that they refer to is gone, or medusa_session_invalidate was called. medusa_session_error then has the reason. */
int medusa_session_usable(size_t graph, uint64_t *exec);
/* Gives back all device memory of the restored graphs, with no graph running. Then the engine may unmap memory that graphs refer to
 * (cuMemUnmap), and map as much at the same addresses again. No graph is usable until medusa_session_wake returns 1. */
int medusa_session_sleep(void);
/* Makes the graphs again, once the engine's memory is mapped and holds its earlier contents. Returns 0 if some of it is not mapped yet:
 * call it again then. Tensors of the capture phase may lie elsewhere afterwards, and graphs have other handles. The next
 * medusa_session_usable replays all graphs on known data first. So call that between steps, once the weights are there. same: they have
 * to be as they were. */
int medusa_session_wake(int same);
/* Call it if the engine makes restored graphs unusable: weights at other addresses, another adapter. */
int medusa_session_invalidate(const char *reason);
/* Ends the start. Does not return in the runs that verify. self_test may be NULL. */
int medusa_session_ready(medusa_self_test self_test, void *arg);
/* Reports a CUresult that the engine got after ready. Does not return if the error is sticky and graphs were restored. */
int medusa_session_failed(int result);
int medusa_session_close(void);

#endif
