/*
 * log.c: the call log, the error log and the names of results. Formats: README.md.
 *
 * In: finished calls and failures. Out: lines in the files that the environment names, or on standard error. cuInit empties the
 * files, so that the lines of an earlier process are not taken for this one's.
 * Each line is one write: a process may end without running exit handlers (a Go program's os.Exit does), and a test
 * counts the lines. Fails: a log that cannot be opened is reported on standard error once.
 */
#include "core/core.h"

#include "core/results_gen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int call_fd = -2, error_fd = -2;
static uint64_t call_sequence;

uint64_t now_ns(void)
{
	static uint64_t start;
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	uint64_t ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	if (!start)
		start = ns;
	return ns - start;
}

uint64_t now_us(void)
{
	return now_ns() / 1000;
}

unsigned thread_number(void)
{
	static unsigned next;
	static _Thread_local unsigned mine;
	if (!mine)
		mine = ++next;
	return mine - 1;
}

static void put(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

const char *log_path(const char *name)
{
	static char path[4096];
	const char *at = name ? strstr(name, "%p") : NULL;
	if (!at)
		return name;
	snprintf(path, sizeof(path), "%.*s%d%s", (int)(at - name), name, (int)getpid(), at + 2);
	return path;
}

static int open_log(const char *name)
{
	const char *path = log_path(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		fprintf(stderr, "simgpu: open %s: %s\n", path, strerror(errno));
	return fd;
}

static int call_log(void)
{
	static pid_t opener; /* a process that it forks has a log of its own, if their names differ */
	const struct config *cfg = config_get();
	if (call_fd == -2 || (call_fd >= 0 && opener != getpid() && log_path(cfg->call_log) != cfg->call_log)) {
		opener = getpid();
		if (call_fd >= 0)
			close(call_fd);
		call_fd = cfg->call_log ? open_log(cfg->call_log) : -1;
		if (call_fd >= 0) {
			char line[256];
			int n = snprintf(line, sizeof(line), "start\tdevice=simulated\tpid=%d\tseed=%llu\tmemory=%llu\tcompute=%s\n",
			                 (int)getpid(), (unsigned long long)cfg->seed, (unsigned long long)cfg->memory,
			                 cfg->compute ? "on" : "off");
			put(call_fd, line, (size_t)n);
		}
	}
	return call_fd;
}

void call_log_write(const struct call *c, CUresult r)
{
	if (call_log() < 0)
		return;
	char line[2048], number[16];
	const char *name = result_name(r);
	if (!name) {
		snprintf(number, sizeof(number), "%d", (int)r);
		name = number;
	}
	int n = snprintf(line, sizeof(line), "%llu\t%llu\t%u\t%s\t%s%s%s\n", (unsigned long long)call_sequence++,
	                 (unsigned long long)c->start_us, thread_number(), c->name, name, c->detail_len ? "\t" : "",
	                 c->detail_len ? c->detail : "");
	put(call_fd, line, (size_t)n);
}

void call_log_mark(const char *text)
{
	if (call_log() < 0)
		return;
	char line[1024];
	int n = snprintf(line, sizeof(line), "mark\t%.*s\n", 1000, text);
	put(call_fd, line, (size_t)n);
}

void error_log_open(void)
{
	const struct config *cfg = config_get();
	if (error_fd == -2)
		error_fd = cfg->log ? open_log(cfg->log) : 2;
}

void error_log(const char *format, ...)
{
	static bool headed;
	error_log_open();
	if (!headed && error_fd >= 0) {
		char line[128];
		int n = snprintf(line, sizeof(line), "simgpu: device=simulated seed=%llu\n", (unsigned long long)config_get()->seed);
		put(error_fd, line, (size_t)n);
		headed = true;
	}
	if (error_fd < 0)
		return;
	char line[2048] = "simgpu: ";
	size_t head = strlen(line);
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line + head, sizeof(line) - head - 1, format, args);
	va_end(args);
	size_t len = head + (n < 0 ? 0 : (size_t)n);
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	put(error_fd, line, len);
}

const char *result_name(CUresult r)
{
	for (size_t i = 0; i < ARRAY_LEN(result_rows); i++)
		if (result_rows[i].number == (int)r)
			return result_rows[i].name;
	return NULL;
}

const char *result_text(CUresult r)
{
	for (size_t i = 0; i < ARRAY_LEN(result_rows); i++)
		if (result_rows[i].number == (int)r)
			return result_rows[i].text;
	return NULL;
}
