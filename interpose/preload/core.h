/*
 * core.h: shared by all parts of the interposer: the mode, the lock, the trace, and the guard against re-entry.
 *
 * In: the environment (medusa.h), read at the first hooked call or mark. Out: whether to act at all, and the trace for records.
 * Fails: the trace file cannot be created. The process then runs without being recorded, and a line on standard error says so.
 *
 * Rules for all files of this library
 *   - No constructor, no output, no lock and no libcuda before the first hooked call: gcc and ptxas inherit LD_PRELOAD.
 *   - Never hold the lock during a call into the driver or the loader.
 *   - Never abort, and never change any state that the process can see. A problem of the recorder becomes a fault record.
 */
#ifndef MEDUSA_CORE_H
#define MEDUSA_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace_gen.h"

enum mode { MODE_UNREAD, MODE_INERT, MODE_RECORD, MODE_REPLAY };

extern _Atomic int core_mode_now;
enum mode core_read_mode(void);

static inline enum mode core_mode(void)
{
	int m = __atomic_load_n((int *)&core_mode_now, __ATOMIC_ACQUIRE);
	return m == MODE_UNREAD ? core_read_mode() : (enum mode)m;
}

/* Set while the thread is inside a hook: nested calls of the driver and of the interposer pass through. */
extern _Thread_local int core_inside;

/* The place to which the hook returns that the thread is inside of. */
extern _Thread_local const void *core_caller;

/* False: pass the call through and change no state. */
#define hook_enter() hook_enter_from(__builtin_return_address(0))
static inline bool hook_enter_from(const void *caller)
{
	if (core_inside || core_mode() == MODE_INERT)
		return false;
	core_inside = 1;
	core_caller = caller;
	return true;
}

static inline void hook_leave(void) { core_inside = 0; }

void core_lock(void);
void core_unlock(void);

/* Needs the lock held. Returns the open trace, or NULL in replay mode and once the trace is sealed. */
struct trace_writer *core_trace(void);
/* Whether another process has created the trace already. Takes the lock. */
bool core_trace_taken(void);
/* Ends and closes the trace. Later events only update the maps. */
void core_seal(void);
/* Seals at exit, after the last use of the driver and before it shuts down. Idempotent. */
void core_seal_at_exit(void);
/* Our own tables ran out of memory: stop acting, because incomplete tables would be wrong. */
void core_give_up(const char *why);

/* Records a problem of the recorder. Takes the lock. */
void core_fault(const char *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Records a device once, or that of the current context. Take the lock. */
void core_note_device_of(int dev);
void core_note_device(void);

uint64_t core_gap_seed(void);
/* Whether the process must exit at MEDUSA_AT_READY or MEDUSA_AT_IDENTITY; `variable` says which. */
bool core_exits(const char *variable);

#endif
