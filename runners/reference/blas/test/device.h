/* device.h: the test program's own access to the device. */
#ifndef VBLAS_TEST_DEVICE_H
#define VBLAS_TEST_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "driver.h"
#include "vblas.h"

#define TEST_CALLS(X)                                        \
	X(cuInit) X(cuDeviceGet) X(cuDeviceGetName) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuCtxSynchronize) \
	X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuStreamCreate) X(cuStreamSynchronize) \
	X(cuStreamBeginCapture_v2) X(cuStreamEndCapture) X(cuGraphGetNodes) X(cuGraphNodeGetType)                       \
	X(cuGraphInstantiateWithFlags) X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuGraphDestroy)

struct device {
#define FIELD(name) __typeof__(name) *name;
	TEST_CALLS(FIELD)
#undef FIELD
	CUcontext context;
	CUstream stream;
};
extern struct device device;

void device_open(void);         /* ends the program if there is no device */
void must(CUresult r, const char *what); /* ends the program unless r is success */
#define MUST(call) must(call, #call)

CUdeviceptr upload(const void *data, size_t bytes);
void download(void *to, CUdeviceptr from, size_t bytes);

/* A product on the device and in double on the host. Elements are made from the seed. */
struct problem {
	vblasDataType_t type;
	int m, n, k, lda, ldb, ldc;
	CUdeviceptr a, b, c;
	double *want, *scale; /* [m][n]: the product, and the sum of its terms' magnitudes */
};
struct problem problem_make(vblasDataType_t type, int m, int n, int k, unsigned seed);
vblasStatus_t problem_run(const struct problem *p, vblasHandle_t h);
void problem_result(const struct problem *p, float *out); /* [m][n] */
/* The number of elements that differ from the host's by more than the type's rounding allows; NaN differs. */
int problem_wrong(const struct problem *p);
void problem_free(struct problem *p);

#endif
