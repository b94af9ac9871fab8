/* rank.c: see rank.h. */
#include "rank.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "medusa.h"

/* Reads a decimal number below 2^16. */
static bool number(const char *name, uint32_t *out)
{
	const char *text = getenv(name);
	char *end;
	unsigned long v;
	if (!text || *text < '0' || *text > '9')
		return false;
	v = strtoul(text, &end, 10);
	if (*end || v > UINT16_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

int rank_read(struct rank *out)
{
	uint32_t local, locals;
	*out = (struct rank){0, 1};
	if (getenv(MEDUSA_ENV_RANK) || getenv(MEDUSA_ENV_WORLD_SIZE)) {
		struct rank r;
		if (!number(MEDUSA_ENV_RANK, &r.index) || !number(MEDUSA_ENV_WORLD_SIZE, &r.count) || r.index >= r.count)
			return -1;
		*out = r;
		return 0;
	}
	/* The variables of torchrun on one machine. Each of them alone has other meanings for other programs. */
	struct rank r;
	if (number("RANK", &r.index) && number("WORLD_SIZE", &r.count) && number("LOCAL_RANK", &local) && number("LOCAL_WORLD_SIZE", &locals) &&
	    r.index < r.count && local == r.index && locals == r.count)
		*out = r;
	return 0;
}

char *rank_trace_path(const char **why)
{
	const char *path = getenv(MEDUSA_ENV_TRACE);
	struct rank r;
	char *out;
	if (!path) {
		*why = MEDUSA_ENV_TRACE " is unset";
		return NULL;
	}
	if (rank_read(&r) != 0) {
		*why = MEDUSA_ENV_RANK " and " MEDUSA_ENV_WORLD_SIZE " contradict each other";
		return NULL;
	}
	/* mutant: each rank its own trace */
	if (r.count == 1)
		return strdup(path);
	return asprintf(&out, "%s.%u", path, r.index) < 0 ? NULL : out;
}

void rank_note_second(void)
{
	const char *why = NULL;
	char *path = rank_trace_path(&why), *note = NULL;
	if (path && asprintf(&note, "%s.second", path) >= 0) {
		int fd = open(note, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
		free(note);
	}
	free(path);
}

/* Whether a process holds the lock of a trace (trace_file.h). */
static bool open_elsewhere(const char *path)
{
	struct flock held = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	/* mutant: ranks end together */
	if (fcntl(fd, F_GETLK, &held) != 0)
		held.l_type = F_UNLCK;
	close(fd);
	return held.l_type != F_UNLCK;
}

void rank_wait_for_others(void)
{
	enum { PAUSE_MS = 20, MOST = 10 * 60 * 1000 / PAUSE_MS };
	const char *path = getenv(MEDUSA_ENV_TRACE);
	struct rank r;
	char *other;
	int paused = 0;
	if (!path || rank_read(&r) != 0)
		return;
	for (uint32_t i = 0; i < r.count; i++) {
		if (i == r.index || asprintf(&other, "%s.%u", path, i) < 0)
			continue;
		for (; paused < MOST && open_elsewhere(other); paused++)
			nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000}, NULL);
		free(other);
	}
}

int medusa_rank(uint32_t *rank, uint32_t *world)
{
	struct rank r;
	int rc = rank_read(&r);
	*rank = r.index;
	*world = r.count;
	return rc;
}
