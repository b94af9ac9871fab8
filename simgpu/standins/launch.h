/*
 * launch.h: launches the stand-ins' own kernels on a stream.
 */
#ifndef MEDUSA_STUB_LAUNCH_H
#define MEDUSA_STUB_LAUNCH_H

#define CUDA_EXACT_SYMBOLS
#include "cuda.h"

#include <stddef.h>
#include <stdint.h>

/* PTX text in this shared object. A recorder can identify it by the object's build-id and its offset. */
struct image {
	const char *text;
	CUlibrary library; /* loaded at the first kernel that needs it, as a large library's modules are */
};

/* Finds the driver. CUDA_ERROR_NOT_INITIALIZED without it, or without a context. */
CUresult launch_ready(void);
/* Launches with one dimension of threads; params as for cuLaunchKernel. A driver error is also printed on standard error. */
CUresult launch_kernel(struct image *image, const char *name, const uint32_t grid[3], uint32_t threads, void *stream, void **params);
/* The number of the capture that the stream takes part in, 0 if in none. */
CUresult launch_capture(void *stream, uint64_t *number);
/* Clears device memory, in the stream's order. */
CUresult launch_clear(uint64_t address, size_t bytes, void *stream);

/* The text of a kernel. */
#define IMAGE_HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define KERNEL(name, params, body) ".visible .entry " name "(" params ")\n{\n" body "\tret;\n}\n"

#endif
