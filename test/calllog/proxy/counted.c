/* counted.c: the entry points whose calls are counted, and the lines they write. */
#include "proxy.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int fd = -2;
static unsigned long long sequence;

/* One write a line: a process may end without running exit handlers. */
static void put(const char *line, size_t len)
{
	if (fd >= 0 && write(fd, line, len) != (ssize_t)len)
		fd = -1;
}

static void open_log(void)
{
	const char *path = getenv("CALLLOG");
	char line[64];
	if (fd != -2)
		return;
	fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644) : -1;
	put(line, (size_t)snprintf(line, sizeof(line), "start\tdevice=cuda\tpid=%d\n", (int)getpid()));
}

static unsigned thread_number(void)
{
	static unsigned next;
	static _Thread_local unsigned mine;
	if (!mine)
		mine = ++next;
	return mine - 1;
}

void proxy_log(const char *name, CUresult r, const char *details, ...)
{
	char line[1024];
	struct timespec t;
	va_list args;
	clock_gettime(CLOCK_MONOTONIC, &t);
	pthread_mutex_lock(&lock);
	open_log();
	int n = snprintf(line, sizeof(line), "%llu\t%llu\t%u\t%s\t%d\t", sequence++,
	                 (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000, thread_number(), name, (int)r);
	va_start(args, details);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, details, args);
	va_end(args);
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	put(line, (size_t)n);
	pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) void calllog_mark(const char *text)
{
	char line[1024];
	pthread_mutex_lock(&lock);
	open_log();
	int n = snprintf(line, sizeof(line), "mark\t%.1000s\n", text);
	put(line, (size_t)n);
	pthread_mutex_unlock(&lock);
	void (*next)(const char *) = (void (*)(const char *))proxy_real("calllog_mark"); /* a device with a log of its own */
	if (next)
		next(text);
}

static void log_launch(const char *name, CUresult r, CUfunction f, const unsigned *grid, const unsigned *block)
{
	const char *kernel = "?";
	__typeof__(&cuFuncGetName) get = REAL(cuFuncGetName);
	if (get && r == CUDA_SUCCESS)
		get(&kernel, f);
	proxy_log(name, r, "kernel=%s\tgrid=%u,%u,%u\tblock=%u,%u,%u", kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2]);
}

#define LAUNCH(symbol) \
	CUresult symbol(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
	                CUstream stream, void **params, void **extra) \
	{ \
		CUresult r = REAL(symbol)(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra); \
		log_launch(#symbol, r, f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}); \
		return r; \
	}
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)

#define LAUNCH_EX(symbol) \
	CUresult symbol(const CUlaunchConfig *config, CUfunction f, void **params, void **extra) \
	{ \
		CUresult r = REAL(symbol)(config, f, params, extra); \
		log_launch(#symbol, r, f, (unsigned[]){config->gridDimX, config->gridDimY, config->gridDimZ}, \
		           (unsigned[]){config->blockDimX, config->blockDimY, config->blockDimZ}); \
		return r; \
	}
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)

#define LAUNCH_GRAPH(symbol) \
	CUresult symbol(CUgraphExec exec, CUstream stream) \
	{ \
		CUresult r = REAL(symbol)(exec, stream); \
		proxy_log(#symbol, r, "exec=%p", (void *)exec); \
		return r; \
	}
LAUNCH_GRAPH(cuGraphLaunch)
LAUNCH_GRAPH(cuGraphLaunch_ptsz)

#define BEGIN_CAPTURE(symbol) \
	CUresult symbol(CUstream stream, CUstreamCaptureMode mode) \
	{ \
		CUresult r = REAL(symbol)(stream, mode); \
		proxy_log(#symbol, r, "mode=%d", (int)mode); \
		return r; \
	}
BEGIN_CAPTURE(cuStreamBeginCapture_v2)
BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz)

/* The driver decides version and stream flavour; only its answer is looked up. */
CUresult cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags)
{
	CUresult r = REAL(cuGetProcAddress)(symbol, fn, version, flags);
	if (r == CUDA_SUCCESS && fn)
		*fn = proxy_own(*fn);
	return r;
}

#define GET_PROC_ADDRESS(name) \
	CUresult name(const char *symbol, void **fn, int version, uint64_t flags, CUdriverProcAddressQueryResult *status) \
	{ \
		CUresult r = REAL(name)(symbol, fn, version, flags, status); \
		if (r == CUDA_SUCCESS && fn) \
			*fn = proxy_own(*fn); \
		return r; \
	}
GET_PROC_ADDRESS(cuGetProcAddress_v2)
GET_PROC_ADDRESS(cuGetProcAddress_v2_ptsz)
