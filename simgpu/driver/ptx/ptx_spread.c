/*
 * ptx_spread.c: the blocks of one launch on several processors.
 *
 * In:  a launch, and a function that runs those of its blocks that no other thread has taken. Out: all blocks have run.
 * Fails: as the earliest of the blocks that fault.
 *
 * Blocks of a kernel that adds up or compares atomically, or that reads the clock, would give other results from run to run on several
 * processors: they stay on one, so that a seed decides all that a correct kernel does. Small launches do, too.
 */
#include "ptx_internal.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#define MAX_THREADS 8
#define WORTH (1u << 16) /* instructions of a launch, loops counted once: starting a thread takes some 20 microseconds */

int ptx_threads;

struct part {
	struct launch launch;
	struct ptx_fault fault;
	int (*run)(struct launch *);
	int rc;
	pthread_t thread;
};

static int processors(void)
{
	static int known;
	int n = __atomic_load_n(&known, __ATOMIC_RELAXED);
	cpu_set_t set;

	if (!n) {
		n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
		__atomic_store_n(&known, n, __ATOMIC_RELAXED);
	}
	return n;
}

static int threads_for(const struct launch *l)
{
	const struct ptx_kernel *k = l->k;
	uint64_t blocks = l->blocks->total, n = (uint64_t)(ptx_threads ? ptx_threads : processors());

	/* mutant: launches that are worth a thread */
	if (blocks < 2 || blocks * ((l->threads + PTX_LANES - 1) / PTX_LANES) * k->ncode < WORTH)
		return 1;
	for (uint32_t i = 0; i < k->ncode; i++)
		/* mutant: kernels that stay on one processor */
		if (k->code[i].op == OP_ATOM || k->code[i].op == OP_MULTIMEM || k->code[i].op == OP_CLOCK)
			return 1;
	n = n < blocks ? n : blocks;
	return (int)(n < MAX_THREADS ? n : MAX_THREADS);
}

static void *help(void *arg)
{
	struct part *p = arg;

	p->rc = p->run(&p->launch);
	return NULL;
}

static bool earlier(const struct ptx_fault *a, const struct ptx_fault *b)
{
	for (int i = 2; i > 0; i--)
		if (a->block[i] != b->block[i])
			return a->block[i] < b->block[i];
	return a->block[0] < b->block[0];
}

/* The thread has its own view of memory. Signals are the program's: its own threads take them. */
static bool start(struct part *p, const struct launch *l, int (*run)(struct launch *))
{
	sigset_t all, kept;

	*p = (struct part){ .launch = *l, .run = run };
	p->launch.fault = &p->fault;
	p->launch.cache = calloc(l->k->ncache + 1, sizeof *p->launch.cache);
	if (!p->launch.cache)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &kept);
	bool started = pthread_create(&p->thread, NULL, help, p) == 0;
	pthread_sigmask(SIG_SETMASK, &kept, NULL);
	if (!started)
		free(p->launch.cache);
	return started;
}

int ptx_spread(struct launch *l, int (*run)(struct launch *))
{
	struct part parts[MAX_THREADS];
	int n = threads_for(l), started = 0, rc;

	while (started < n - 1 && start(&parts[started], l, run))
		started++;
	rc = run(l);
	for (int i = 0; i < started; i++) {
		struct part *p = &parts[i];

		pthread_join(p->thread, NULL);
		free(p->launch.cache);
		/* mutant: the earliest fault */
		if (p->rc && (rc == 0 || earlier(&p->fault, l->fault)))
			*l->fault = p->fault;
		rc = rc ? rc : p->rc;
	}
	return rc;
}
