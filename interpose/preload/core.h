/*
 * core.h: what every part of the interposer shares: the mode, the lock, the trace, the guard against re-entry.
 *
 * In: the environment (medusa.h), read at the first hooked call or mark. Out: whether to act at all, and where records
 * go. What can fail: the trace file cannot be created; the process then runs unrecorded and standard error says so.
 *
 * Rules for all files of this library
 *   - No constructor, no output, no lock and no libcuda before the first hooked call: gcc and ptxas inherit LD_PRELOAD.
 *   - The lock is never held across a call into the driver or the loader.
 *   - Never abort and never change what the process would have seen; a problem of our own becomes a fault record.
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

/* Set while the thread is inside a hook: the driver's and our own nested calls pass through. */
extern _Thread_local int core_inside;

/* False: pass the call through and touch nothing. */
static inline bool hook_enter(void)
{
	if (core_inside || core_mode() == MODE_INERT)
		return false;
	core_inside = 1;
	return true;
}

static inline void hook_leave(void) { core_inside = 0; }

void core_lock(void);
void core_unlock(void);

/* With the lock held: the open trace, or NULL where nothing is to be recorded (replay, or the trace is sealed). */
struct trace_writer *core_trace(void);
/* Whether another process had made the trace already. Takes the lock. */
bool core_trace_taken(void);
/* Ends and closes the trace; later events only keep the maps. */
void core_seal(void);
/* Seals at exit, after the driver was used and before it shuts down. Idempotent. */
void core_seal_at_exit(void);
/* Memory for our own tables ran out: stop acting rather than act on half of the truth. */
void core_give_up(const char *why);

/* Records a problem of the recorder. Takes the lock. */
void core_fault(const char *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Records the device of the current context once. Takes the lock. */
void core_note_device(void);

uint64_t core_gap_seed(void);
/* Whether the process is to end at MEDUSA_AT_READY or MEDUSA_AT_IDENTITY, by the variable. */
bool core_exits(const char *variable);

#endif
