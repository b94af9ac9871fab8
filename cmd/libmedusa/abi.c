/*
 * abi.c: the public functions of libmedusa.h. The rest is in main.go.
 *
 * Each function refuses to run in a forked child before it enters Go: the child lacks the other threads of the Go runtime, so a
 * call might never return.
 */
#include "libmedusa.h"

#include <pthread.h>
#include <stdatomic.h>

#include "_cgo_export.h"

#define EXPORT __attribute__((visibility("default")))

static atomic_int forked;
static pthread_once_t watching = PTHREAD_ONCE_INIT;

static void in_child(void) { atomic_store(&forked, 1); }
static void watch(void) { pthread_atfork(NULL, NULL, in_child); }

static const char forked_text[] = "call libmedusa: this process was forked after the session was opened (open it in the worker)";

#define UNLESS_FORKED(call) return atomic_load(&forked) ? MEDUSA_MISUSE : (call)

EXPORT int medusa_session_open(void)
{
	pthread_once(&watching, watch);
	UNLESS_FORKED(goSessionOpen());
}

EXPORT const char *medusa_session_error(void)
{
	return atomic_load(&forked) ? forked_text : goSessionError();
}

EXPORT int medusa_session_restoring(void) { UNLESS_FORKED(goSessionRestoring()); }
EXPORT int medusa_session_phase(const char *phase) { UNLESS_FORKED(goSessionPhase((char *)phase)); }

EXPORT int medusa_session_identify(const char **keys, const char **values, size_t n)
{
	UNLESS_FORKED(goSessionIdentify((char **)keys, (char **)values, n));
}

EXPORT int medusa_session_elastic(uint64_t least, uint64_t block) { UNLESS_FORKED(goSessionElastic(least, block)); }
EXPORT int medusa_session_kv_room(uint64_t *bytes) { UNLESS_FORKED(goSessionKVRoom(bytes)); }
EXPORT int medusa_session_kv_bytes(uint64_t *bytes) { UNLESS_FORKED(goSessionKVBytes(bytes)); }
EXPORT int medusa_session_workspace(uint64_t *bytes) { UNLESS_FORKED(goSessionWorkspace(bytes)); }

EXPORT int medusa_session_triggers(int64_t *batches, size_t capacity) { UNLESS_FORKED(goSessionTriggers(batches, capacity)); }
EXPORT int medusa_session_trigger(medusa_run run, void *arg) { UNLESS_FORKED(goSessionTrigger(run, arg)); }

EXPORT int medusa_session_tensor(const char *name, uint64_t *addr) { UNLESS_FORKED(goSessionTensor((char *)name, addr)); }

EXPORT int medusa_session_note(const char *name, void *out, size_t capacity) { UNLESS_FORKED(goSessionNote((char *)name, out, capacity)); }

EXPORT int medusa_session_graphs(struct medusa_session_graph *out, size_t capacity) { UNLESS_FORKED(goSessionGraphs(out, capacity)); }
EXPORT int medusa_session_kernels(char *out, size_t capacity) { UNLESS_FORKED(goSessionKernels(out, capacity)); }
EXPORT int medusa_session_provide(medusa_step before_replay, medusa_step eager, void *arg)
{
	UNLESS_FORKED(goSessionProvide(before_replay, eager, arg));
}
EXPORT int medusa_session_collectives(medusa_collective_call make, void *arg) { UNLESS_FORKED(goSessionCollectives(make, arg)); }
EXPORT int medusa_session_connect(medusa_run step, void *arg) { UNLESS_FORKED(goSessionConnect(step, arg)); }
EXPORT int medusa_session_alone(void) { UNLESS_FORKED(goSessionAlone()); }
EXPORT int medusa_session_stand_in(const struct medusa_collective *call, uint64_t stream) { UNLESS_FORKED(goSessionStandIn((void *)call, stream)); }
EXPORT int medusa_session_refuse(const char *reason) { UNLESS_FORKED(goSessionRefuse((char *)reason)); }
EXPORT int medusa_session_usable(size_t graph, uint64_t *exec) { UNLESS_FORKED(goSessionUsable(graph, exec)); }
EXPORT int medusa_session_sleep(void) { UNLESS_FORKED(goSessionSleep()); }
EXPORT int medusa_session_wake(int same) { UNLESS_FORKED(goSessionWake(same)); }
EXPORT int medusa_session_invalidate(const char *reason) { UNLESS_FORKED(goSessionInvalidate((char *)reason)); }
EXPORT int medusa_session_ready(medusa_self_test self_test, void *arg) { UNLESS_FORKED(goSessionReady(self_test, arg)); }
EXPORT int medusa_session_failed(int result) { UNLESS_FORKED(goSessionFailed(result)); }
EXPORT int medusa_session_close(void) { UNLESS_FORKED(goSessionClose()); }
