/*
 * ptx_fuzz_test.c: damaged PTX must end in an error, a fault or a result, never in a crash. Meant to run under sanitizers.
 *
 * Each round damages a sample in a few places, parses it and, if it still parses, runs its kernels briefly.
 */
#include "ptx_test.h"
#include "../driver/ptx/ptx_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 4000
#define SECONDS 3

static const char *const words[] = {
	"4294967295", "-1", "0", "0x7fffffffffffffff", "%r<1000000>", "{", "}", ";", ".param", ".shared", "[", "ret;", "bra", "call", "@%p1", ".v4", "_", "|",
	"setp.lt.f16.and", "atom.global.cas.b64", "ld.param.u64", "st.shared.v4.f32", ".reg .pred", "bar.sync 15, 33;", "generic(", "%tid.x", "!", "1e999",
};

static size_t damage(char *text, size_t n, size_t cap)
{
	for (uint32_t k = 1 + next_random() % 4; k; k--) {
		size_t at = next_random() % n, len = 1 + next_random() % 24, from;
		const char *word;

		if (at + len > n)
			len = n - at;
		switch (next_random() % 5) {
		case 0:
			text[at] = (char)next_random();
			break;
		case 1: /* delete */
			memmove(text + at, text + at + len, n - at - len);
			n -= len;
			break;
		case 2: /* copy one place over another */
			from = next_random() % (n - len + 1);
			memmove(text + at, text + from, len);
			break;
		case 3: /* insert a word */
			word = words[next_random() % (sizeof words / sizeof *words)];
			len = strlen(word);
			if (n + len > cap)
				break;
			memmove(text + at + len, text + at, n - at);
			memcpy(text + at, word, len);
			n += len;
			break;
		default: /* a digit becomes another */
			for (; at < n && (text[at] < '0' || text[at] > '9'); at++)
				;
			if (at < n)
				text[at] = (char)('0' + next_random() % 10);
		}
		if (n < 64)
			return n;
	}
	return n;
}

static uint32_t run_all(struct ptx_module *m, uint8_t *memory)
{
	uint64_t *params = calloc(1, 65536 + 8);
	uint32_t ran = 0;

	for (size_t i = 0; i < ptx_global_count(m); i++)
		if (ptx_global_at(m, i)->size <= 4096) {
			ptx_bind(m, i, (uint64_t)(uintptr_t)memory);
			ptx_init_global(m, i, memory);
		}
	for (size_t i = 0; i < ptx_kernel_count(m) && i < 6; i++) {
		struct ptx_kernel *k = ptx_kernel_at(m, next_random() % ptx_kernel_count(m));
		struct ptx_fault f;

		if (ptx_kernel_shared_bytes(k) > 1 << 20 || ptx_kernel_local_bytes(k) > 1 << 14)
			continue;
		for (uint32_t j = 0; j < ptx_kernel_param_bytes(k) / 8; j++)
			params[j] = (uint64_t)(uintptr_t)memory + 8 * j;
		ptx_launch(k, (uint32_t[]){ 2, 1, 1 }, (uint32_t[]){ 33, 1, 1 }, 64, params, &dev_memory, &f);
		ran++;
	}
	free(params);
	return ran;
}

void test_fuzz(void)
{
	static const char *const names[] = { "kernels.ptx", "forms.ptx" };
	uint64_t budget = ptx_block_budget;
	uint32_t parsed = 0, ran = 0, rounds = 0;
	time_t start = time(NULL);
	uint8_t *memory = dev_alloc(8192);
	size_t len[2];
	char *sample[2], *text, err[256];

	for (int i = 0; i < 2; i++)
		sample[i] = read_sample(names[i], &len[i]);
	ptx_block_budget = 1 << 12;
	for (; rounds < ROUNDS && time(NULL) - start < SECONDS; rounds++) {
		int which = rounds % 4 != 0;
		size_t n, cap = len[which] + 512;
		struct ptx_module *m;

		text = malloc(cap);
		memcpy(text, sample[which], len[which]);
		n = damage(text, len[which], cap);
		/* An exact copy, so that a sanitizer sees a read past the end. */
		text = realloc(text, n + (n == 0));
		err[0] = 0;
		m = ptx_parse(text, n, err, sizeof err);
		if (m)
			ran += run_all(m, memory);
		else if (strncmp(err, "line ", 5))
			CHECK(false, "error without a line: %s", err);
		parsed += m != NULL;
		ptx_free(m);
		free(text);
	}
	ptx_block_budget = budget;
	/* Damage must reach both sides: texts that fail and kernels that run. */
	CHECK(parsed > rounds / 50 && parsed < rounds && ran > rounds / 50, "%u rounds, %u parsed, %u kernels run", rounds, parsed, ran);
	for (int i = 0; i < 2; i++)
		free(sample[i]);
	dev_free_all();
}
