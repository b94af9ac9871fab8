/*
 * stack.c: fills the stack on which the caller builds its next struct of parameters. Bytes of such a struct that are never
 * written keep the leftovers of earlier calls, and a comparison of recordings must distinguish these from values.
 *
 * In: CUDART_STACK, and the memory that the process allocates. Out: 64 KiB of stack below the caller's frame. `clean`: zeros, so
 * that no leftover is a pointer. `addresses`: addresses of live memory, the hardest case: a third of them equal in each process,
 * a third in the same allocations, and a third at random. If the variable is not set, the stack stays as it is. It cannot fail.
 */
#include "cudart.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LATEST = 64, WORDS = 3 * 2731 };

static _Atomic uint64_t latest[LATEST];
static _Atomic unsigned allocated;

void stack_allocated(CUdeviceptr p)
{
	latest[allocated++ % LATEST] = p;
}

static void fill(volatile uint64_t *words)
{
	static _Thread_local uint64_t random;
	unsigned n = allocated < LATEST ? allocated : LATEST;
	if (n == 0)
		return;
	if (random == 0)
		random = (uint64_t)getpid() << 20 | 1;
	/* Every call of the runtime comes here, so it makes no division, and one random number serves three words. */
	for (unsigned i = 0, seventh = 0, which = 0; i < WORDS; i += 3) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint64_t same = latest[which];
		words[i] = same + 512 * seventh;
		words[i + 1] = same + 8 * (random >> 57);
		words[i + 2] = latest[(random >> 32 & 0xffff) * n >> 16] + 8 * (random >> 48 & 127);
		seventh = seventh == 6 ? 0 : seventh + 1;
		which = which == n - 1 ? 0 : which + 1;
	}
}

__attribute__((noinline)) void stack_prepare(void)
{
	static _Atomic int wanted; /* 1: unset */
	volatile uint64_t words[WORDS];
	if (!wanted) {
		const char *text = getenv("CUDART_STACK");
		wanted = !text ? 1 : strcmp(text, "clean") == 0 ? 2 : strcmp(text, "addresses") == 0 ? 3 : 1;
	}
	if (wanted == 2)
		for (unsigned i = 0; i < WORDS; i++)
			words[i] = 0;
	else if (wanted == 3)
		fill(words);
}
