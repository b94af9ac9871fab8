/*
 * truth.c: the file of the ground truth, for tests: memory/truth.c and graphs/truth.c write its lines.
 *
 * In: pieces of lines. Out: the file named by SIMGPU_TRUTH; format in README.md. It shares no code with the recorder
 * and the restorer of graphs, so that a test can compare them with it. Fails: like the logs.
 */
#include "core/core.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd = -2;
static uint64_t sequence;

bool truth_wanted(void)
{
	if (fd != -2)
		return fd >= 0;
	const char *path = log_path(config_get()->truth);
	fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644) : -1;
	if (path && fd < 0)
		fprintf(stderr, "simgpu: open %s: no ground truth will be written\n", path);
	return fd >= 0;
}

void truth_append(struct truth_line *l, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0)
		return;
	l->text = grow(l->text, &l->cap, l->len + (size_t)n + 1, 1);
	va_start(args, format);
	vsnprintf(l->text + l->len, (size_t)n + 1, format, args);
	va_end(args);
	l->len += (size_t)n;
}

void truth_end(struct truth_line *l)
{
	truth_append(l, "\n");
	for (size_t at = 0; at < l->len;) {
		ssize_t n = write(fd, l->text + at, l->len - at);
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	free(l->text);
}

struct truth_line truth_start(const char *kind)
{
	struct truth_line l = {0};
	truth_append(&l, "%s\t%llu", kind, (unsigned long long)sequence++);
	return l;
}
