/*
 * gemm.h: launches the matrix products of the BLAS stand-ins on a stream.
 */
#ifndef MEDUSA_STUB_GEMM_H
#define MEDUSA_STUB_GEMM_H

#include "kernels/gemm_args.h"

#include <stddef.h>
#include <stdint.h>

/* Statuses of both libraries. */
enum {
	BLAS_SUCCESS = 0,
	BLAS_NOT_INITIALIZED = 1,
	BLAS_ALLOC_FAILED = 3,
	BLAS_INVALID_VALUE = 7,
	BLAS_EXECUTION_FAILED = 13,
	BLAS_NOT_SUPPORTED = 15
};

/* One product, batch times. bias has an element a row of D; the scales are single numbers. Each of the three may be 0. */
struct product {
	uint64_t a, b, c, d, bias, scale_a, scale_b, workspace;
	uint64_t workspace_bytes;
	int64_t batch;
	struct gemm_args args;
	void *stream;
};

/* Finds the driver. Returns a BLAS status. */
int gemm_ready(void);
/* Whether there is a kernel for the product's types and sizes. Returns a BLAS status, and prints why not. */
int gemm_check(const struct product *p);
/* Launches the kernel for this shape. Returns a BLAS status. */
int gemm_launch(const struct product *p);
/* Whether that kernel uses the workspace's semaphores, which must be zero at its start. */
int gemm_splits(const struct product *p);
/* Sets them to zero, in the stream's order. Returns a BLAS status. */
int gemm_clear(const struct product *p);

/* Whether products are summed as the type of compute asks for: in single or double precision, or in half, which is summed in single. */
int gemm_computes(int compute);
/* A factor, of the type that the type of compute implies (cublasGemmEx) or that scale names. */
int gemm_scale_of(int compute);
double gemm_factor(const void *factor, int scale);

#endif
