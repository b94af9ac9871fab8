/* plan.h: which kernel computes a product of a given shape, and how it is launched. Pure arithmetic, no driver. */
#ifndef VBLAS_PLAN_H
#define VBLAS_PLAN_H

#include <stddef.h>

#include "vblas.h"

enum vblas_module { VBLAS_GEMV, VBLAS_TILE, VBLAS_LARGE, VBLAS_SPLITK, VBLAS_MODULES };

struct vblas_plan {
	enum vblas_module module;
	const char *kernel; /* mangled */
	unsigned grid[3], threads;
	/* VBLAS_SPLITK only */
	int k_share;                 /* columns of k per block */
	unsigned tiles;              /* counters at the start of the workspace */
	size_t workspace;            /* bytes needed */
};

/* Tile counters take the first part of a workspace, partial sums the rest. */
#define VBLAS_COUNTER_BYTES ((size_t)64 << 10)
#define VBLAS_WORKSPACE_BYTES (((size_t)8 << 20) + VBLAS_COUNTER_BYTES)

/* m, n, k > 0. workspace: bytes that a split product may use, 0 for none. */
struct vblas_plan vblas_plan(int m, int n, int k, size_t workspace);

#endif
