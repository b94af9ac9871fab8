/*
 * gemm.h: launches the matrix products of the BLAS stand-ins on a stream.
 */
#ifndef MEDUSA_STUB_GEMM_H
#define MEDUSA_STUB_GEMM_H

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

/* One product: D = A*B (+ C, + bias), batch times. Sizes are in elements, and so are strides. */
struct product {
	uint64_t a, b, c, d, bias, workspace;
	uint64_t workspace_bytes;
	int64_t m, n, k, batch;
	int element; /* cudaDataType of D */
	void *stream;
};

/* Finds the driver. Returns a BLAS status. */
int gemm_ready(void);
/* Launches the kernel for this shape. Returns a BLAS status. */
int gemm_launch(const struct product *p);
/* Whether that kernel uses the workspace's semaphores, which must be zero at its start. */
int gemm_splits(const struct product *p);
/* Sets them to zero, in the stream's order. Returns a BLAS status. */
int gemm_clear(const struct product *p);

#endif
