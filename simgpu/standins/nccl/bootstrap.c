/*
 * bootstrap.c: see bootstrap.h. The place is memory of the process that made it, and has no name of its own: it disappears once that
 * process and the ranks have ended, however they end.
 */
#include "bootstrap.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "comm.h"

struct place {
	_Atomic int ranks; /* 0: no rank has come */
	_Atomic int met; /* how often a rank came to a meeting */
	_Atomic int taken[NCCL_RANKS];
	char items[NCCL_RANKS][BOOTSTRAP_ITEM];
};

static struct place *open_place(const char *name)
{
	int file = open(name, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return NULL;
	struct place *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	return p == MAP_FAILED ? NULL : p;
}

bool bootstrap_create(char *name, size_t size)
{
	int file = memfd_create("simgpu-nccl", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, sizeof(struct place)))
		return false;
	return snprintf(name, size, "/proc/%d/fd/%d", (int)getpid(), file) < (int)size;
}

unsigned long long bootstrap_seconds(void)
{
	const char *seconds = getenv("NCCL_STANDIN_SECONDS");
	return seconds ? strtoull(seconds, NULL, 10) : BOOTSTRAP_SECONDS;
}

static bool await(const _Atomic int *count, int want)
{
	struct timespec ms = {0, 1000000};
	unsigned long long most = bootstrap_seconds() * 1000;
	for (unsigned long long waited = 0; atomic_load(count) < want; waited++) {
		if (waited == most)
			return false;
		nanosleep(&ms, NULL);
	}
	return true;
}

struct place *bootstrap_enter(const char *name, int rank, int ranks, const void *own, void *all)
{
	struct place *p = open_place(name);
	int nobody = 0;
	if (!p)
		return NULL;
	bool ok = (atomic_compare_exchange_strong(&p->ranks, &nobody, ranks) || nobody == ranks) && !atomic_exchange(&p->taken[rank], 1);
	if (ok) {
		memcpy(p->items[rank], own, BOOTSTRAP_ITEM);
		ok = bootstrap_meet(p);
		memcpy(all, p->items, (size_t)ranks * BOOTSTRAP_ITEM);
	}
	if (ok)
		return p;
	bootstrap_leave(p);
	return NULL;
}

bool bootstrap_meet(struct place *p)
{
	int ranks = atomic_load(&p->ranks), before = atomic_fetch_add(&p->met, 1);
	return await(&p->met, (before / ranks + 1) * ranks);
}

void bootstrap_leave(struct place *p)
{
	if (p)
		munmap(p, sizeof(*p));
}
