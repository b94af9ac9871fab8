/*
 * call.c: entering and leaving the driver.
 *
 * In: every call of every entry point, through procs.c. Out: the driver's lock, the checks that all calls share, one
 * line in the call log. Fails: before cuInit, from inside a host function, which must not call the driver, and if a
 * fault is asked for (fault.c).
 */
#include "core/core.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static bool initialised;

void driver_lock(void) { pthread_mutex_lock(&lock); }
void driver_unlock(void) { pthread_mutex_unlock(&lock); }
void driver_wait(void) { pthread_cond_wait(&woken, &lock); }
void driver_wake(void) { pthread_cond_broadcast(&woken); }

/* Calls that the driver answers without cuInit. */
static bool needs_no_init(const char *name)
{
	return strcmp(name, "cuInit") == 0 || strcmp(name, "cuDriverGetVersion") == 0 || strcmp(name, "cuGetExportTable") == 0 ||
	       strncmp(name, "cuGetProcAddress", 16) == 0 || strncmp(name, "cuGetError", 10) == 0;
}

CUresult call_enter(struct call *c, const char *name, int per_thread)
{
	driver_lock();
	c->name = name;
	c->per_thread = per_thread;
	c->locked = 1;
	c->start_us = now_us();
	c->ctx = NULL;
	c->detail_len = 0;
	c->detail[0] = 0;
	if (!initialised && !needs_no_init(name))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (thread_state()->in_host_function && !needs_no_init(name)) {
		error_log("%s: called from a host function of a stream", name);
		return CUDA_ERROR_NOT_PERMITTED;
	}
	return fault_take(name);
}

CUresult call_leave(struct call *c, CUresult r)
{
	call_log_write(c, r);
	driver_unlock();
	return r;
}

CUresult call_context(struct call *c)
{
	struct context *ctx = context_current();
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx->active)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	c->ctx = ctx;
	return ctx->sticky;
}

CUresult call_unsupported(struct call *c)
{
	error_log("%s: not simulated", c->name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult call_unsupported_part(struct call *c, const char *what)
{
	error_log("%s: not simulated: %s", c->name, what);
	return CUDA_ERROR_NOT_SUPPORTED;
}

void call_detail(struct call *c, const char *format, ...)
{
	if (!config_get()->call_log || c->detail_len + 2 >= sizeof(c->detail))
		return;
	if (c->detail_len)
		c->detail[c->detail_len++] = '\t';
	va_list args;
	va_start(args, format);
	int n = vsnprintf(c->detail + c->detail_len, sizeof(c->detail) - c->detail_len, format, args);
	va_end(args);
	c->detail_len += n < 0 ? 0 : (size_t)n;
	if (c->detail_len >= sizeof(c->detail))
		c->detail_len = sizeof(c->detail) - 1;
}

CUresult sim_cuInit(struct call *c, unsigned int flags)
{
	(void)c;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	error_log_open();
	if (!initialised)
		maps_note();
	initialised = true;
	return CUDA_SUCCESS;
}

CUresult sim_cuDriverGetVersion(struct call *c, int *version)
{
	(void)c;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = config_get()->version;
	return CUDA_SUCCESS;
}

CUresult sim_cuGetErrorName(struct call *c, CUresult error, const char **text)
{
	(void)c;
	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = result_name(error);
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGetErrorString(struct call *c, CUresult error, const char **text)
{
	(void)c;
	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = result_text(error);
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
