/*
 * vblas.h: a small vendor BLAS over the CUDA driver API, which behaves as closed vendor libraries do: its kernels are in
 * modules that no symbol table shows, load at the first call that needs them, and are chosen by shape.
 *
 * In:  device buffers of the current context, a stream.  Out: kernel launches on that stream; no call here waits for them.
 * Fails: every function returns a status; vblasLastError says which driver call failed and how.
 *
 * All calls may be made while the stream is being captured; the library allocates in relaxed capture mode. A handle
 * serves one stream at a time: its workspace and semaphores are shared by all products of the handle.
 */
#ifndef VBLAS_H
#define VBLAS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct vblasContext *vblasHandle_t;
typedef struct CUstream_st *vblasStream_t; /* a CUstream */

typedef enum {
	VBLAS_STATUS_SUCCESS = 0,
	VBLAS_STATUS_NOT_INITIALIZED = 1, /* no driver, or no current context */
	VBLAS_STATUS_ALLOC_FAILED = 3,
	VBLAS_STATUS_INVALID_VALUE = 7,
	VBLAS_STATUS_EXECUTION_FAILED = 13,
	VBLAS_STATUS_NOT_SUPPORTED = 15 /* an alignment that no kernel takes */
} vblasStatus_t;

typedef enum { VBLAS_F32 = 0, VBLAS_F16 = 1, VBLAS_BF16 = 2 } vblasDataType_t;

/* The current context must be the one that all later calls of this handle run in. */
vblasStatus_t vblasCreate(vblasHandle_t *handle);
/* Unloads the modules and frees workspace and semaphores: graphs that use them must not be launched any more. */
vblasStatus_t vblasDestroy(vblasHandle_t handle);

vblasStatus_t vblasSetStream(vblasHandle_t handle, vblasStream_t stream);

/* Device memory to use instead of the library's own workspace; 0, 0 returns to the library's own. */
vblasStatus_t vblasSetWorkspace(vblasHandle_t handle, uint64_t workspace, size_t bytes);

/*
 * C[m][n] = A[m][k] * B[n][k]^T, row-major, leading dimensions in elements: the product of a linear layer with
 * activations A and weight B. Sums are float, for F16 and BF16 too.
 * The pointers are aligned to 16 bytes, else VBLAS_STATUS_NOT_SUPPORTED. Sizes may be anything; products are fastest if k, lda and
 * ldb are multiples of 8.
 */
vblasStatus_t vblasGemm(vblasHandle_t handle, vblasDataType_t type, int m, int n, int k, uint64_t a, int lda, uint64_t b,
                        int ldb, uint64_t c, int ldc);

int vblasGetVersion(void);
const char *vblasGetStatusString(vblasStatus_t status);
/* The last failure on the calling thread, e.g. "cuModuleLoadData: CUDA error 218". Never NULL. */
const char *vblasLastError(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
