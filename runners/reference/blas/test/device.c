/* device.c: driver access and reference products of the test program. */
#include "device.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

struct device device;

void must(CUresult r, const char *what)
{
	if (r != CUDA_SUCCESS) {
		printf("FAIL %s: CUDA error %d\n", what, (int)r);
		exit(1);
	}
}

void device_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib) {
		printf("FAIL open the device: %s\n", dlerror());
		exit(1);
	}
#define BIND(name)                                               \
	device.name = (__typeof__(name) *)dlsym(lib, #name);         \
	if (!device.name) {                                          \
		printf("FAIL the driver has no %s\n", #name);            \
		exit(1);                                                 \
	}
	TEST_CALLS(BIND)
	CUdevice d;
	char name[128];
	MUST(device.cuInit(0));
	MUST(device.cuDeviceGet(&d, 0));
	MUST(device.cuDeviceGetName(name, sizeof name, d));
	printf("device: %s\n", name);
	MUST(device.cuDevicePrimaryCtxRetain(&device.context, d));
	vblasHandle_t early;
	CHECK(vblasCreate(&early) == VBLAS_STATUS_NOT_INITIALIZED, "a handle was made without a current context");
	MUST(device.cuCtxSetCurrent(device.context));
	MUST(device.cuStreamCreate(&device.stream, CU_STREAM_NON_BLOCKING));
}

CUdeviceptr upload(const void *data, size_t bytes)
{
	CUdeviceptr p;
	MUST(device.cuMemAlloc_v2(&p, bytes));
	MUST(device.cuMemcpyHtoD_v2(p, data, bytes));
	MUST(device.cuStreamSynchronize(NULL));
	return p;
}

void download(void *to, CUdeviceptr from, size_t bytes)
{
	MUST(device.cuStreamSynchronize(device.stream));
	MUST(device.cuMemcpyDtoH_v2(to, from, bytes));
}

static size_t width(vblasDataType_t type)
{
	return type == VBLAS_F32 ? 4 : 2;
}

/* BF16 is the upper half of a float. The nearest one, of two equally near the even one. */
static float bf16_value(uint16_t bits)
{
	uint32_t u = (uint32_t)bits << 16;
	float v;
	memcpy(&v, &u, sizeof v);
	return v;
}

static uint16_t bf16_nearest(float v)
{
	uint32_t u;
	memcpy(&u, &v, sizeof u);
	uint16_t down = (uint16_t)(u >> 16);
	if (isnan(v))
		return down | 0x40;
	double below = fabs((double)v - bf16_value(down)), above = fabs((double)bf16_value((uint16_t)(down + 1)) - v);
	return below < above || (below == above && down % 2 == 0) ? down : (uint16_t)(down + 1);
}

/* rows x cols values in a matrix with leading dimension ld; the gaps between rows are NaN, so that reading them shows. */
static CUdeviceptr operand(vblasDataType_t type, int rows, int cols, int ld, unsigned *seed, double *values)
{
	void *data = malloc((size_t)rows * ld * width(type));
	for (int r = 0; r < rows; r++) {
		for (int c = 0; c < ld; c++) {
			*seed = *seed * 1664525u + 1013904223u;
			float v = c < cols ? (float)(int)(*seed >> 20) / 2048 - 1 : NAN;
			size_t at = (size_t)r * ld + c;
			if (type == VBLAS_F32)
				((float *)data)[at] = v;
			else if (type == VBLAS_F16)
				v = (float)(((_Float16 *)data)[at] = (_Float16)v);
			else
				v = bf16_value(((uint16_t *)data)[at] = bf16_nearest(v));
			if (c < cols)
				values[(size_t)r * cols + c] = v;
		}
	}
	CUdeviceptr p = upload(data, (size_t)rows * ld * width(type));
	free(data);
	return p;
}

struct problem problem_make(vblasDataType_t type, int m, int n, int k, unsigned seed)
{
	struct problem p = {.type = type, .m = m, .n = n, .k = k, .lda = k + 8, .ldb = k + 16, .ldc = n + 3};
	double *a = malloc((size_t)m * k * sizeof *a), *b = malloc((size_t)n * k * sizeof *b);
	p.a = operand(type, m, k, p.lda, &seed, a);
	p.b = operand(type, n, k, p.ldb, &seed, b);
	p.want = malloc((size_t)m * n * sizeof *p.want);
	p.scale = malloc((size_t)m * n * sizeof *p.scale);
	for (int i = 0; i < m * n; i++) {
		double sum = 0, scale = 0;
		for (int j = 0; j < k; j++) {
			double v = a[(size_t)(i / n) * k + j] * b[(size_t)(i % n) * k + j];
			sum += v;
			scale += fabs(v);
		}
		p.want[i] = sum;
		p.scale[i] = scale;
	}
	free(a);
	free(b);
	size_t bytes = (size_t)m * p.ldc * width(type);
	void *blank = malloc(bytes);
	memset(blank, 0x7f, bytes);
	p.c = upload(blank, bytes);
	free(blank);
	return p;
}

vblasStatus_t problem_run(const struct problem *p, vblasHandle_t h)
{
	return vblasGemm(h, p->type, p->m, p->n, p->k, p->a, p->lda, p->b, p->ldb, p->c, p->ldc);
}

void problem_result(const struct problem *p, float *out)
{
	size_t bytes = (size_t)p->m * p->ldc * width(p->type);
	unsigned char *raw = malloc(bytes);
	download(raw, p->c, bytes);
	for (int i = 0; i < p->m * p->n; i++) {
		size_t at = (size_t)(i / p->n) * p->ldc + i % p->n;
		out[i] = p->type == VBLAS_F32   ? ((float *)raw)[at]
		         : p->type == VBLAS_F16 ? (float)((_Float16 *)raw)[at]
		                                : bf16_value(((uint16_t *)raw)[at]);
	}
	for (size_t i = 0; i < bytes; i++)
		if (i % (p->ldc * width(p->type)) >= p->n * width(p->type))
			CHECK(raw[i] == 0x7f, "byte %zu between rows was written", i);
	free(raw);
}

int problem_wrong(const struct problem *p)
{
	int wrong = 0;
	float *got = malloc((size_t)p->m * p->n * sizeof *got);
	problem_result(p, got);
	for (int i = 0; i < p->m * p->n; i++) {
		double size = fabs(p->want[i]);
		double rounding = p->type == VBLAS_F32 ? 0 : p->type == VBLAS_F16 ? size * 0x1p-11 + 0x1p-25 : size * 0x1p-8;
		if (!(fabs(got[i] - p->want[i]) <= rounding + p->scale[i] * p->k * 0x1p-24))
			wrong++;
	}
	free(got);
	return wrong;
}

void problem_free(struct problem *p)
{
	MUST(device.cuMemFree_v2(p->a));
	MUST(device.cuMemFree_v2(p->b));
	MUST(device.cuMemFree_v2(p->c));
	free(p->want);
	free(p->scale);
}
