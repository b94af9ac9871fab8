/*
 * vblas.c: the library's C API over plan.c (which kernel), modules.c (where it is) and driver.c (how to call).
 *
 * The workspace and the two semaphores of split products are allocated at the first product that is split. The host sets
 * the semaphores to their resting value then, on a stream of its own, so never inside a capture; each launch leaves them
 * there. A captured graph refers to all three by address and relies on that value.
 */
#include "vblas.h"

#include <stdlib.h>

#include "context.h"
#include "semaphore.h"

int vblasGetVersion(void)
{
	return 1000;
}

const char *vblasGetStatusString(vblasStatus_t status)
{
	switch (status) {
	case VBLAS_STATUS_SUCCESS: return "success";
	case VBLAS_STATUS_NOT_INITIALIZED: return "not initialised";
	case VBLAS_STATUS_ALLOC_FAILED: return "allocation failed";
	case VBLAS_STATUS_INVALID_VALUE: return "invalid value";
	case VBLAS_STATUS_EXECUTION_FAILED: return "execution failed";
	case VBLAS_STATUS_NOT_SUPPORTED: return "not supported";
	}
	return "unknown status";
}

vblasStatus_t vblasCreate(vblasHandle_t *handle)
{
	CUcontext context = NULL;
	if (!handle)
		return VBLAS_STATUS_INVALID_VALUE;
	*handle = NULL;
	const struct vblas_driver *d = vblas_driver();
	if (!d || vblas_fail("cuCtxGetCurrent", d->CtxGetCurrent(&context)))
		return VBLAS_STATUS_NOT_INITIALIZED;
	if (!context) {
		vblas_fail("vblasCreate without a current context", CUDA_ERROR_INVALID_CONTEXT);
		return VBLAS_STATUS_NOT_INITIALIZED;
	}
	struct vblasContext *h = calloc(1, sizeof *h);
	if (!h)
		return VBLAS_STATUS_ALLOC_FAILED;
	pthread_mutex_init(&h->lock, NULL);
	*handle = h;
	return VBLAS_STATUS_SUCCESS;
}

vblasStatus_t vblasDestroy(vblasHandle_t h)
{
	if (!h)
		return VBLAS_STATUS_NOT_INITIALIZED;
	const struct vblas_driver *d = vblas_driver();
	const CUdeviceptr owned[] = {h->own_workspace, h->entered, h->left};
	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
		if (owned[i])
			vblas_fail("cuMemFree", d->MemFree(owned[i]));
	vblas_unload(&h->modules);
	pthread_mutex_destroy(&h->lock);
	free(h);
	return VBLAS_STATUS_SUCCESS;
}

vblasStatus_t vblasSetStream(vblasHandle_t h, vblasStream_t stream)
{
	if (!h)
		return VBLAS_STATUS_NOT_INITIALIZED;
	pthread_mutex_lock(&h->lock);
	h->stream = stream;
	pthread_mutex_unlock(&h->lock);
	return VBLAS_STATUS_SUCCESS;
}

vblasStatus_t vblasSetWorkspace(vblasHandle_t h, uint64_t workspace, size_t bytes)
{
	if (!h)
		return VBLAS_STATUS_NOT_INITIALIZED;
	if (workspace % 256 || !workspace != !bytes)
		return VBLAS_STATUS_INVALID_VALUE;
	pthread_mutex_lock(&h->lock);
	h->user_workspace = workspace;
	h->user_bytes = bytes;
	pthread_mutex_unlock(&h->lock);
	return VBLAS_STATUS_SUCCESS;
}

static CUresult at_rest(CUdeviceptr semaphore)
{
	static const unsigned rest = SEMAPHORE_REST;
	const struct vblas_driver *d = vblas_driver();
	CUstream own;
	CUresult r = vblas_fail("cuStreamCreate", d->StreamCreate(&own, CU_STREAM_NON_BLOCKING));
	if (r != CUDA_SUCCESS)
		return r;
	r = vblas_fail("cuMemcpyHtoDAsync", d->MemcpyHtoDAsync(semaphore, &rest, sizeof rest, own));
	if (r == CUDA_SUCCESS)
		r = vblas_fail("cuStreamSynchronize", d->StreamSynchronize(own));
	CUresult destroyed = vblas_fail("cuStreamDestroy", d->StreamDestroy(own));
	return r != CUDA_SUCCESS ? r : destroyed;
}

static CUresult ensure_semaphore(CUdeviceptr *semaphore)
{
	CUdeviceptr p;
	if (*semaphore)
		return CUDA_SUCCESS;
	CUresult r = vblas_fail("cuMemAlloc", vblas_driver()->MemAlloc(&p, sizeof(unsigned)));
	if (r != CUDA_SUCCESS)
		return r;
	r = at_rest(p);
	if (r == CUDA_SUCCESS)
		*semaphore = p;
	else
		vblas_fail("cuMemFree", vblas_driver()->MemFree(p));
	return r;
}

/* The further memory of a split product. */
static CUresult ensure_scratch(struct vblasContext *h)
{
	CUresult r = CUDA_SUCCESS;
	if (!h->user_workspace && !h->own_workspace)
		r = vblas_fail("cuMemAlloc", vblas_driver()->MemAlloc(&h->own_workspace, VBLAS_WORKSPACE_BYTES));
	if (r == CUDA_SUCCESS)
		r = ensure_semaphore(&h->entered);
	if (r == CUDA_SUCCESS)
		r = ensure_semaphore(&h->left);
	return r;
}

struct product {
	int m, n, k, lda, ldb, ldc, type;
	uint64_t a, b, c;
};

static CUresult launch(struct vblasContext *h, const struct vblas_plan *plan, CUfunction f, struct product p)
{
	const struct vblas_driver *d = vblas_driver();
	CUdeviceptr counters = h->user_workspace ? h->user_workspace : h->own_workspace;
	CUdeviceptr partial = counters + VBLAS_COUNTER_BYTES;
	int k_share = plan->k_share;
	/* The first ten serve every kernel, the rest only the split one; the driver reads as many as a kernel declares. */
	void *params[] = {&p.a,   &p.b,    &p.c,     &p.m,     &p.n,      &p.k,        &p.lda, &p.ldb,
	                  &p.ldc, &p.type, &k_share, &partial, &counters, &h->entered, &h->left};
	if (plan->module == VBLAS_SPLITK) {
		CUresult r = vblas_fail("cuMemsetD32Async", d->MemsetD32Async(counters, 0, plan->tiles, h->stream));
		if (r != CUDA_SUCCESS)
			return r;
	}
	return vblas_fail("cuLaunchKernel", d->LaunchKernel(f, plan->grid[0], plan->grid[1], plan->grid[2], plan->threads, 1, 1,
	                                                    0, h->stream, params, NULL));
}

static vblasStatus_t check(struct product p)
{
	if (p.type < VBLAS_F32 || p.type > VBLAS_BF16 || p.m < 0 || p.n < 0 || p.k <= 0 || p.lda < p.k || p.ldb < p.k ||
	    p.ldc < p.n)
		return VBLAS_STATUS_INVALID_VALUE;
	if (p.a % 16 || p.b % 16 || p.c % 16)
		return VBLAS_STATUS_NOT_SUPPORTED;
	return VBLAS_STATUS_SUCCESS;
}

vblasStatus_t vblasGemm(vblasHandle_t h, vblasDataType_t type, int m, int n, int k, uint64_t a, int lda, uint64_t b,
                        int ldb, uint64_t c, int ldc)
{
	if (!h)
		return VBLAS_STATUS_NOT_INITIALIZED;
	struct product p = {m, n, k, lda, ldb, ldc, (int)type, a, b, c};
	vblasStatus_t status = check(p);
	if (status != VBLAS_STATUS_SUCCESS || m == 0 || n == 0)
		return status;

	const struct vblas_driver *d = vblas_driver();
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUfunction f;
	pthread_mutex_lock(&h->lock);
	struct vblas_plan plan = vblas_plan(m, n, k, h->user_workspace ? h->user_bytes : VBLAS_WORKSPACE_BYTES);
	/* Loading and allocating are allowed while some stream is being captured: they never touch that stream. */
	CUresult r = vblas_fail("cuThreadExchangeStreamCaptureMode", d->ThreadExchangeStreamCaptureMode(&mode));
	if (r == CUDA_SUCCESS) {
		CUresult ready = vblas_function(&h->modules, plan.module, plan.kernel, &f);
		if (ready == CUDA_SUCCESS && plan.module == VBLAS_SPLITK)
			ready = ensure_scratch(h);
		r = vblas_fail("cuThreadExchangeStreamCaptureMode", d->ThreadExchangeStreamCaptureMode(&mode));
		if (ready != CUDA_SUCCESS)
			r = ready;
	}
	if (r == CUDA_SUCCESS)
		r = launch(h, &plan, f, p);
	pthread_mutex_unlock(&h->lock);
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		return VBLAS_STATUS_ALLOC_FAILED;
	return r == CUDA_SUCCESS ? VBLAS_STATUS_SUCCESS : VBLAS_STATUS_EXECUTION_FAILED;
}
