/* core.c: see core.h. */
#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "content.h"
#include "driver.h"
#include "medusa.h"
#include "rank.h"

_Atomic int core_mode_now = MODE_UNREAD;
_Thread_local int core_inside;
_Thread_local const void *core_caller;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* All under the lock. */
static struct trace_writer writer;
static enum { UNOPENED, OPEN, SEALED } trace_state;
static bool taken; /* by another process */
static uint64_t devices_noted; /* bit per ordinal */

void core_lock(void) { pthread_mutex_lock(&lock); }
void core_unlock(void) { pthread_mutex_unlock(&lock); }

/* A forked child cannot use the parent's CUDA handles, and the trace belongs to the parent. If the parent has neither, for
 * example a server that forks its engine, the child is the process to record. */
static void child_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	/* mutant: child of a server that forks its engine */
	if (trace_state == UNOPENED && medusa_alloc_count() == 0 && medusa_module_count() == 0)
		return;
	atomic_store(&core_mode_now, MODE_INERT);
	trace_abandon(&writer);
	trace_state = SEALED;
}

enum mode core_read_mode(void)
{
	const char *text = getenv(MEDUSA_ENV_MODE);
	int unread = MODE_UNREAD, mode = MODE_INERT;
	if (text && strcmp(text, "record") == 0)
		mode = MODE_RECORD;
	if (text && strcmp(text, "replay") == 0)
		mode = MODE_REPLAY;
	if (atomic_compare_exchange_strong(&core_mode_now, &unread, mode) && mode != MODE_INERT)
		pthread_atfork(NULL, NULL, child_after_fork);
	return (enum mode)atomic_load(&core_mode_now);
}

uint64_t core_gap_seed(void)
{
	const char *text = getenv(MEDUSA_ENV_GAP_SEED);
	return text && core_mode() == MODE_RECORD ? strtoull(text, NULL, 0) : 0;
}

bool core_exits(const char *variable)
{
	const char *text = getenv(variable);
	return text && strcmp(text, "exit") == 0;
}

void core_give_up(const char *why)
{
	if (atomic_exchange(&core_mode_now, MODE_INERT) != MODE_INERT)
		fprintf(stderr, "medusa: stopped: %s\n", why);
}

static void record_process(void)
{
	enum { MOST = 1 << 17 }; /* further arguments are left out */
	char exe[4096], *text = malloc(MOST + 1);
	const char **args = NULL;
	size_t size = 0, n = 0, count = 0;
	ssize_t got = readlink("/proc/self/exe", exe, sizeof exe - 1);
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	exe[got > 0 ? got : 0] = 0;
	while (fd >= 0 && text && size < MOST && (got = read(fd, text + size, MOST - size)) > 0)
		size += (size_t)got;
	if (fd >= 0)
		close(fd);
	if (text)
		text[size] = 0;
	for (size_t i = 0; i < size; i++)
		n += text[i] == 0;
	if (n > 0)
		args = calloc(n, sizeof *args);
	for (size_t at = 0; args && count < n; at += strlen(text + at) + 1)
		args[count++] = text + at;
	trace_process(&writer, MEDUSA_PROTOCOL, (uint32_t)getpid(), core_gap_seed(), exe, args, count);
	free(args);
	free(text);
}

struct trace_writer *core_trace(void)
{
	const char *why = NULL;
	char *path;
	int err;
	if (trace_state == SEALED || core_mode() != MODE_RECORD)
		return NULL;
	if (trace_state == OPEN)
		return &writer;
	trace_state = SEALED;
	path = rank_trace_path(&why);
	err = path ? trace_create(&writer, path) : EINVAL;
	taken = err == EEXIST;
	if (err)
		fprintf(stderr, "medusa: create trace %s: %s (process %d is not recorded)\n",
			path ? path : "of this process", why ? why : strerror(err), (int)getpid());
	free(path);
	if (err)
		return NULL;
	trace_state = OPEN;
	record_process();
	trace_flush(&writer); /* a process that is killed has left its name */
	return &writer;
}

bool core_trace_taken(void)
{
	bool is;
	core_lock();
	core_trace();
	is = taken;
	core_unlock();
	return is;
}

void core_seal(void)
{
	struct trace_writer *w;
	uint32_t waits;
	uint64_t waited;
	core_lock();
	w = core_trace();
	if (w) {
		trace_waits(w, &waits, &waited);
		if (waits > 0)
			trace_waited(w, waits, waited);
		trace_end(w, w->records);
		trace_close(w);
		trace_state = SEALED;
	}
	core_unlock();
}

static bool is_open(void)
{
	bool open;
	core_lock();
	open = trace_state == OPEN;
	core_unlock();
	return open;
}

/* Runs before the driver's own exit handler, because that was registered earlier. */
static void at_exit(void)
{
	if (!is_open())
		return;
	core_inside = 1;
	content_record();
	core_inside = 0;
	core_seal();
}

void core_seal_at_exit(void)
{
	static _Atomic int done;
	if (core_mode() == MODE_RECORD && !atomic_exchange(&done, 1))
		atexit(at_exit);
}

/* For a process that made marks but never used the driver. */
__attribute__((destructor)) static void unloaded(void)
{
	if (atomic_load(&core_mode_now) == MODE_RECORD && is_open())
		core_seal();
}

void core_fault(const char *call, const char *format, ...)
{
	char reason[512];
	struct trace_writer *w;
	va_list args;
	if (core_mode() != MODE_RECORD)
		return;
	va_start(args, format);
	vsnprintf(reason, sizeof reason, format, args);
	va_end(args);
	core_lock();
	w = core_trace();
	if (w)
		trace_fault(w, call, reason);
	core_unlock();
}

void core_note_device(void)
{
	CUdevice dev;
	if (core_mode() == MODE_RECORD && REAL(cuCtxGetDevice)(&dev) == CUDA_SUCCESS)
		core_note_device_of(dev);
}

void core_note_device_of(int dev)
{
	char name[256] = "";
	int major = 0, minor = 0, sms = 0, version = 0;
	size_t memory = 0;
	struct trace_writer *w;
	bool noted;
	if (core_mode() != MODE_RECORD || dev < 0 || dev > 63)
		return;
	core_lock();
	noted = devices_noted >> dev & 1;
	devices_noted |= UINT64_C(1) << dev;
	core_unlock();
	if (noted)
		return;
	REAL(cuDeviceGetName)(name, sizeof name - 1, dev);
	REAL(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev);
	REAL(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
	REAL(cuDeviceGetAttribute)(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev);
	REAL(cuDeviceTotalMem_v2)(&memory, dev);
	REAL(cuDriverGetVersion)(&version);
	core_lock();
	w = core_trace();
	if (w)
		trace_device(w, (uint32_t)dev, name, (uint32_t)major, (uint32_t)minor, (uint32_t)sms, memory, (uint32_t)version);
	core_unlock();
}
