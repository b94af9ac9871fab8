/*
 * ptx_test.h: helpers of the interpreter's tests: checks that count failures, memory with known bounds, one-call launches.
 */
#ifndef PTX_TEST_H
#define PTX_TEST_H

#include "../driver/ptx/ptx.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

extern int failures, checks;
extern const char *ptx_dir; /* the folder of the sample PTX files */

#define CHECK(cond, ...) \
	do { \
		checks++; \
		if (!(cond)) { \
			failures++; \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
			fprintf(stderr, __VA_ARGS__); \
			fprintf(stderr, "\n"); \
		} \
	} while (0)

/* Device memory of one test: each allocation is surrounded by bytes that belong to none. */
void *dev_alloc(size_t bytes);
void dev_free_all(void);
extern const struct ptx_memory dev_memory;

char *read_sample(const char *name, size_t *len);
struct ptx_module *load_sample(const char *name);
struct ptx_module *load_text(const char *text);
struct ptx_kernel *kernel_named(const struct ptx_module *m, const char *name);

/* Parameters, packed as the kernel's layout says; each argument is the address of the value. */
int launch(const struct ptx_module *m, const char *name, uint32_t grid, uint32_t block, uint32_t shared, struct ptx_fault *fault, ...);
void launch_ok(const struct ptx_module *m, const char *name, uint32_t grid, uint32_t block, uint32_t shared, ...);

uint32_t next_random(void);
float random_float(void);

void test_ops(void);
void test_kernels(void);
void test_faults(void);
void test_parser(void);
void test_refused(void);
void test_triton(void);
void test_order(void);
void test_spread(void);
void test_float8(void);
void test_warp(void);
void test_fuzz(void);

#endif
