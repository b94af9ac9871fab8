/*
 * ptx_test.c: runs all tests of the PTX interpreter; the harness they share.
 *
 * Usage: ptx_test [directory of the sample PTX files [directory for the texts that tests load]]. Exit status 0 if every check held.
 */
#include "ptx_test.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int failures, checks;
const char *ptx_dir = "simgpu/test/ptx";
static const char *kept_dir;

#define MAX_ALLOCATIONS 64
#define FENCE 256
static struct { char *raw; struct ptx_range range; } allocations[MAX_ALLOCATIONS];
static int nallocations;

void *dev_alloc(size_t bytes)
{
	char *raw = aligned_alloc(256, (bytes + 3 * FENCE) & ~(size_t)255);

	if (!raw || nallocations == MAX_ALLOCATIONS)
		abort();
	memset(raw, 0, bytes + 2 * FENCE);
	allocations[nallocations].raw = raw;
	allocations[nallocations++].range = (struct ptx_range){ (uint64_t)(uintptr_t)raw + FENCE, bytes };
	return raw + FENCE;
}

void dev_free_all(void)
{
	while (nallocations)
		free(allocations[--nallocations].raw);
}

static struct ptx_range dev_find(void *ctx, uint64_t addr)
{
	(void)ctx;
	for (int i = 0; i < nallocations; i++)
		if (addr - allocations[i].range.base < allocations[i].range.size)
			return allocations[i].range;
	return (struct ptx_range){ 0, 0 };
}

const struct ptx_memory dev_memory = { dev_find, NULL, NULL };

char *read_sample(const char *name, size_t *len)
{
	char path[1024];
	FILE *f;
	char *text;
	long n;

	snprintf(path, sizeof path, "%s/%s", ptx_dir, name);
	f = fopen(path, "rb");
	if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) < 0) {
		perror(path);
		exit(2);
	}
	rewind(f);
	text = calloc(1, (size_t)n + 1);
	if (!text || fread(text, 1, (size_t)n, f) != (size_t)n)
		abort();
	fclose(f);
	*len = (size_t)n;
	return text;
}

/* Texts for another reader of PTX. */
static void keep(const char *text, size_t len)
{
	static unsigned n;
	char path[1024];
	FILE *f;

	if (!kept_dir)
		return;
	snprintf(path, sizeof path, "%s/%u.ptx", kept_dir, n++);
	f = fopen(path, "wb");
	if (!f || fwrite(text, 1, len, f) != len || fclose(f)) {
		perror(path);
		exit(2);
	}
}

static struct ptx_module *load(const char *text, size_t len, const char *what)
{
	char err[256];
	struct ptx_module *m = ptx_parse(text, len, err, sizeof err);

	keep(text, len);
	CHECK(m, "%s: %s", what, err);
	if (!m)
		exit(1);
	for (size_t i = 0; i < ptx_global_count(m); i++)
		ptx_bind(m, i, (uint64_t)(uintptr_t)dev_alloc(ptx_global_at(m, i)->size));
	return m;
}

static void init_globals(struct ptx_module *m)
{
	/* The harness binds first, since initialisers may hold addresses. */
	for (size_t i = 0; i < ptx_global_count(m); i++)
		ptx_init_global(m, i, allocations[nallocations - (int)ptx_global_count(m) + (int)i].raw + FENCE);
}

struct ptx_module *load_sample(const char *name)
{
	size_t len;
	char *text = read_sample(name, &len);
	struct ptx_module *m = load(text, len, name);

	free(text);
	init_globals(m);
	return m;
}

struct ptx_module *load_text(const char *text)
{
	struct ptx_module *m = load(text, strlen(text), text);

	init_globals(m);
	return m;
}

struct ptx_kernel *kernel_named(const struct ptx_module *m, const char *name)
{
	for (size_t i = 0; i < ptx_kernel_count(m); i++)
		if (!strcmp(ptx_kernel_name(ptx_kernel_at(m, i)), name))
			return ptx_kernel_at(m, i);
	fprintf(stderr, "no kernel %s\n", name);
	exit(2);
}

static int vlaunch(const struct ptx_module *m, const char *name, uint32_t grid, uint32_t block, uint32_t shared, struct ptx_fault *fault, va_list ap)
{
	const struct ptx_kernel *k = kernel_named(m, name);
	const struct ptx_param *params;
	size_t n = ptx_kernel_params(k, &params);
	uint8_t *packed = calloc(1, ptx_kernel_param_bytes(k) + 1);
	int rc;

	for (size_t i = 0; i < n; i++)
		memcpy(packed + params[i].offset, va_arg(ap, const void *), params[i].size);
	rc = ptx_launch(k, (uint32_t[]){ grid & 0xffff, grid >> 16 ? grid >> 16 : 1, 1 }, (uint32_t[]){ block, 1, 1 }, shared, packed, &dev_memory, fault);
	free(packed);
	return rc;
}

int launch(const struct ptx_module *m, const char *name, uint32_t grid, uint32_t block, uint32_t shared, struct ptx_fault *fault, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fault);
	rc = vlaunch(m, name, grid, block, shared, fault, ap);
	va_end(ap);
	return rc;
}

void launch_ok(const struct ptx_module *m, const char *name, uint32_t grid, uint32_t block, uint32_t shared, ...)
{
	struct ptx_fault fault;
	va_list ap;
	int rc;

	va_start(ap, shared);
	rc = vlaunch(m, name, grid, block, shared, &fault, ap);
	va_end(ap);
	CHECK(rc == 0, "%s: %s (block %u thread %u)", name, fault.text, fault.block[0], fault.thread[0]);
}

static uint32_t random_state = 12345;

uint32_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

float random_float(void) { return (float)(int32_t)next_random() * 0x1p-31f; }

int main(int argc, char **argv)
{
	if (argc > 1)
		ptx_dir = argv[1];
	if (argc > 2)
		kept_dir = argv[2];
	test_ops();
	test_kernels();
	test_faults();
	test_parser();
	test_refused();
	test_triton();
	test_order();
	test_spread();
	test_float8();
	test_fuzz();
	test_warp();
	printf("ptx: %d checks, %d failures\n", checks, failures);
	return failures != 0;
}
