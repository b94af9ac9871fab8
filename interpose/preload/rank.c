/* rank.c: see rank.h. */
#include "rank.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
		int fd = open(note, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd >= 0)
			close(fd);
		free(note);
	}
	free(path);
}

int medusa_rank(uint32_t *rank, uint32_t *world)
{
	struct rank r;
	int rc = rank_read(&r);
	*rank = r.index;
	*world = r.count;
	return rc;
}
