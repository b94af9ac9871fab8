/*
 * threads.c: four threads allocate, free and mark at once. Freed memory is handed out again immediately, so an address has many
 * owners, one after another.
 */
#include <pthread.h>

#include "common.h"

enum { THREADS = 4, ROUNDS = 10000 };

static CUcontext shared;

static void *work(void *arg)
{
	CUdeviceptr held[8] = {0};
	unsigned int mine = *(unsigned int *)arg;
	CHECK(cuCtxSetCurrent(shared));
	for (int i = 0; i < ROUNDS; i++) {
		CUdeviceptr *p = &held[i % 8];
		if (*p)
			CHECK(cuMemFree(*p));
		CHECK(cuMemAlloc(p, 512));
		MARK(medusa_mark_block, *p, mine, 1);
	}
	for (int i = 0; i < 8; i++)
		CHECK(cuMemFree(held[i]));
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	unsigned int ids[THREADS];
	start();
	CHECK(cuCtxGetCurrent(&shared));
	for (unsigned int i = 0; i < THREADS; i++) {
		ids[i] = i + 1;
		CHECK(pthread_create(&threads[i], NULL, work, &ids[i]));
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL));
	if (MEDUSA(medusa_alloc_count))
		PRINT("allocs", MEDUSA(medusa_alloc_count)());
	return 0;
}
