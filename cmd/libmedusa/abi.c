/*
 * abi.c: the public functions of libmedusa.h. The rest is in main.go.
 *
 * Each function looks first whether it may be called as it was, and returns MEDUSA_MISUSE otherwise, without entering Go. A forked
 * child lacks the other threads of the Go runtime, so a call might never return. Two calls at once would see each other's half-made session.
 */
#include "libmedusa.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "_cgo_export.h"

#define EXPORT __attribute__((visibility("default")))

#define MOST_FACTORS 65536

/* Where a function may be called: by functions of the engine that a call runs, by triggering layers only, or by none. */
enum where { ANYWHERE, IN_LAYERS, ALONE };

static pid_t home; /* the process that loaded the library */
static _Thread_local char me; /* its address names the thread */
static char *_Atomic caller; /* the thread that is in a call; NULL: none */
static int depth, calls_but_layers; /* of that thread */
static _Thread_local char refused[192]; /* why the thread's last call was not made; empty: it was */
static _Thread_local char *said; /* by the thread's last failed call */

__attribute__((constructor)) static void loaded(void) { home = getpid(); }

__attribute__((visibility("hidden"))) void abi_say(char *text)
{
	free(said);
	said = text;
}

static bool refuse(const char *function, const char *why)
{
	snprintf(refused, sizeof refused, "call %s: %s", function, why);
	return false;
}

static bool enter(const char *function, enum where where, bool layer, bool arguments)
{
	char *nobody = NULL;
	/* mutant: calls of a forked child */
	if (getpid() != home)
		return refuse(function, "this process was forked after libmedusa was loaded (load it in the worker)");
	/* mutant: arguments of the C ABI */
	if (!arguments)
		return refuse(function, "an argument is NULL, or a size is too large (libmedusa.h says which may be NULL)");
	/* mutant: calls of two threads */
	if (!atomic_compare_exchange_strong(&caller, &nobody, &me) && nobody != &me)
		return refuse(function, "another thread is in a call (make one call at a time)");
	/* mutant: calls inside of calls */
	if ((where == ALONE && depth > 0) || (where == IN_LAYERS && calls_but_layers > 0))
		return refuse(function, "the engine's function that a call runs may not call it");
	depth++;
	calls_but_layers += !layer;
	refused[0] = 0;
	return true;
}

static int leave(int result, bool layer)
{
	calls_but_layers -= !layer;
	if (--depth == 0)
		atomic_store(&caller, NULL);
	return result;
}

#define CALL(where, arguments, call) return enter(__func__, where, false, arguments) ? leave(call, false) : MEDUSA_MISUSE

EXPORT int medusa_session_open(void) { CALL(ALONE, true, goSessionOpen()); }

EXPORT const char *medusa_session_error(void) { return refused[0] ? refused : said ? said : ""; }

EXPORT int medusa_session_restoring(void) { CALL(ANYWHERE, true, goSessionRestoring()); }
EXPORT int medusa_session_phase(const char *phase) { CALL(ANYWHERE, phase, goSessionPhase((char *)phase)); }

static bool all(const char **texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!texts || n > MOST_FACTORS || !texts[i])
			return false;
	return true;
}

EXPORT int medusa_session_identify(const char **keys, const char **values, size_t n)
{
	CALL(ALONE, all(keys, n) && all(values, n), goSessionIdentify((char **)keys, (char **)values, n));
}

EXPORT int medusa_session_weights(void) { CALL(ANYWHERE, true, goSessionWeights()); }
EXPORT int medusa_session_elastic(uint64_t least, uint64_t block) { CALL(ANYWHERE, true, goSessionElastic(least, block)); }
EXPORT int medusa_session_kv_room(uint64_t *bytes) { CALL(ANYWHERE, bytes, goSessionKVRoom(bytes)); }
EXPORT int medusa_session_kv_bytes(uint64_t *bytes) { CALL(ANYWHERE, bytes, goSessionKVBytes(bytes)); }
EXPORT int medusa_session_workspace(uint64_t *bytes) { CALL(ANYWHERE, bytes, goSessionWorkspace(bytes)); }

EXPORT int medusa_session_triggers(int64_t *batches, size_t capacity) { CALL(ANYWHERE, batches || !capacity, goSessionTriggers(batches, capacity)); }
EXPORT int medusa_session_trigger(medusa_run run, void *arg)
{
	return enter(__func__, ALONE, true, run) ? leave(goSessionTrigger(run, arg), true) : MEDUSA_MISUSE;
}

EXPORT int medusa_session_tensor(const char *name, uint64_t *addr) { CALL(ANYWHERE, name && addr, goSessionTensor((char *)name, addr)); }

EXPORT int medusa_session_note(const char *name, void *out, size_t capacity)
{
	CALL(ANYWHERE, name && (out || !capacity), goSessionNote((char *)name, out, capacity));
}

EXPORT int medusa_session_graphs(struct medusa_session_graph *out, size_t capacity) { CALL(ALONE, out || !capacity, goSessionGraphs(out, capacity)); }
EXPORT int medusa_session_kernels(char *out, size_t capacity) { CALL(ANYWHERE, out || !capacity, goSessionKernels(out, capacity)); }
EXPORT int medusa_session_provide(medusa_step before_replay, medusa_step eager, void *arg)
{
	CALL(IN_LAYERS, true, goSessionProvide(before_replay, eager, arg));
}
EXPORT int medusa_session_collectives(medusa_collective_call make, void *arg) { CALL(IN_LAYERS, make, goSessionCollectives(make, arg)); }
EXPORT int medusa_session_connect(medusa_run step, void *arg) { CALL(IN_LAYERS, step, goSessionConnect(step, arg)); }
EXPORT int medusa_session_alone(void) { CALL(ANYWHERE, true, goSessionAlone()); }
EXPORT int medusa_session_stand_in(const struct medusa_collective *call, uint64_t stream)
{
	CALL(ANYWHERE, call, goSessionStandIn((void *)call, stream));
}
EXPORT int medusa_session_refuse(const char *reason) { CALL(IN_LAYERS, reason, goSessionRefuse((char *)reason)); }
EXPORT int medusa_session_usable(size_t graph, uint64_t *exec) { CALL(ANYWHERE, exec, goSessionUsable(graph, exec)); }
EXPORT int medusa_session_sleep(void) { CALL(ALONE, true, goSessionSleep()); }
EXPORT int medusa_session_wake(int same) { CALL(ALONE, true, goSessionWake(same)); }
EXPORT int medusa_session_invalidate(const char *reason) { CALL(ANYWHERE, reason, goSessionInvalidate((char *)reason)); }
EXPORT int medusa_session_ready(medusa_self_test self_test, void *arg) { CALL(ALONE, true, goSessionReady(self_test, arg)); }
EXPORT int medusa_session_failed(int result) { CALL(ANYWHERE, true, goSessionFailed(result)); }
EXPORT int medusa_session_close(void) { CALL(ALONE, true, goSessionClose()); }
