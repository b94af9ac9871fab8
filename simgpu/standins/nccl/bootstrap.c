/*
 * bootstrap.c: see bootstrap.h. The place is a shared-memory object of this machine: a rank on another machine never finds it.
 */
#include "bootstrap.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "comm.h"

struct place {
	_Atomic int ranks; /* 0: nobody has come */
	_Atomic int met; /* how often a rank came to a meeting */
	_Atomic int taken[NCCL_RANKS];
	char items[NCCL_RANKS][BOOTSTRAP_ITEM];
};

static struct place *open_place(const char *name, int flags)
{
	int file = shm_open(name, O_RDWR | O_CLOEXEC | flags, 0600);
	if (file < 0)
		return NULL;
	struct place *p = MAP_FAILED;
	if (!(flags & O_CREAT) || !ftruncate(file, sizeof(*p)))
		p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	return p == MAP_FAILED ? NULL : p;
}

bool bootstrap_create(char *name, size_t size)
{
	uint64_t number;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return false;
	snprintf(name, size, "/simgpu-nccl-%016llx", (unsigned long long)number);
	struct place *p = open_place(name, O_CREAT | O_EXCL);
	if (p)
		munmap(p, sizeof(*p));
	return p;
}

static bool await(const _Atomic int *count, int want)
{
	struct timespec ms = {0, 1000000};
	for (int waited = 0; atomic_load(count) < want; waited++) {
		if (waited == BOOTSTRAP_SECONDS * 1000)
			return false;
		nanosleep(&ms, NULL);
	}
	return true;
}

struct place *bootstrap_enter(const char *name, int rank, int ranks, const void *own, void *all)
{
	struct place *p = open_place(name, 0);
	int nobody = 0;
	if (!p)
		return NULL;
	bool ok = (atomic_compare_exchange_strong(&p->ranks, &nobody, ranks) || nobody == ranks) && !atomic_exchange(&p->taken[rank], 1);
	if (ok) {
		memcpy(p->items[rank], own, BOOTSTRAP_ITEM);
		ok = bootstrap_meet(p);
		memcpy(all, p->items, (size_t)ranks * BOOTSTRAP_ITEM);
	}
	shm_unlink(name);
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
