/*
 * runtime_test.c: calls of the CUDA runtime and of cuBLAS that programs other than PyTorch make, llama.cpp's CUDA backend among
 * them. The declarations are this program's own, as a compiler would see them in the vendor's headers for CUDA 12.
 *
 * In: the runtime and the stand-in, linked in, over the driver that the dynamic linker finds. Out: one line, exit status.
 */
#define CUDA_EXACT_SYMBOLS
#include "cuda.h"

#include <stdio.h>
#include <string.h>

#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			failed++; \
		} \
	} while (0)

static int failed, checked;

int cudaSetDeviceFlags(unsigned int flags);
int cudaGetDeviceFlags(unsigned int *flags);
int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemsetAsync(void *p, int value, size_t bytes, void *stream);
int cudaStreamCreateWithFlags(void **stream, unsigned int flags);
int cudaStreamSynchronize(void *stream);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags);
int cudaGraphExecUpdate(void *exec, void *graph, CUgraphExecUpdateResultInfo *info);
int cudaGraphLaunch(void *exec, void *stream);
int cudaGraphGetNodes(void *graph, void **nodes, size_t *count);
int cudaGraphDestroy(void *graph);
int cudaGraphExecDestroy(void *exec);
int cudaDeviceSynchronize(void);
int cudaDeviceReset(void);
int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasSetStream_v2(void *handle, void *stream);
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes);
int cublasGemmBatchedEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *const a[], int a_type,
                        int lda, const void *const b[], int b_type, int ldb, const void *beta, void *const c[], int c_type,
                        int ldc, int batch, int compute, int algo);

enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, THREAD_LOCAL = 1, BYTES = 4096, R_32F = 0, COMPUTE_32F = 68 };

static void *stream;

/* A graph that fills memory with each of the values, one after the other. */
static void *fills(void *memory, const int *values, int n)
{
	void *graph = NULL;
	CHECK(cudaStreamBeginCapture(stream, THREAD_LOCAL) == 0);
	for (int i = 0; i < n; i++)
		CHECK(cudaMemsetAsync(memory, values[i], BYTES, stream) == 0);
	CHECK(cudaStreamEndCapture(stream, &graph) == 0);
	return graph;
}

static int first_byte(const void *memory)
{
	unsigned char byte = 0;
	CHECK(cudaMemcpy(&byte, memory, 1, DEVICE_TO_HOST) == 0);
	return byte;
}

static void device_flags(void)
{
	enum { SCHEDULE_YIELD = 2, SCHEDULE_BLOCKING = 4 };
	unsigned int flags = 0;
	CHECK(cudaSetDeviceFlags(SCHEDULE_BLOCKING) == 0);
	CHECK(cudaGetDeviceFlags(&flags) == 0 && flags == SCHEDULE_BLOCKING);
	CHECK(cudaDeviceSynchronize() == 0); /* a context exists now: flags may change all the same */
	CHECK(cudaSetDeviceFlags(SCHEDULE_YIELD) == 0);
	CHECK(cudaGetDeviceFlags(&flags) == 0 && flags == SCHEDULE_YIELD);
	CHECK(cudaSetDeviceFlags(0x4000) == CUDA_ERROR_INVALID_VALUE);
	checked++;
}

/* An executable graph takes the parameters of a second graph; one of another shape is refused without a change. */
static void graph_update(void)
{
	void *memory = NULL, *exec = NULL;
	CHECK(cudaMalloc(&memory, BYTES) == 0);
	void *graph = fills(memory, (int[]){1}, 1), *other = fills(memory, (int[]){2}, 1), *longer = fills(memory, (int[]){3, 4}, 2);
	CHECK(cudaGraphInstantiate(&exec, graph, 0) == 0);
	CHECK(cudaGraphLaunch(exec, stream) == 0 && cudaStreamSynchronize(stream) == 0 && first_byte(memory) == 1);

	CUgraphExecUpdateResultInfo info;
	memset(&info, 0xff, sizeof(info));
	CHECK(cudaGraphExecUpdate(exec, other, &info) == 0 && info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
	CHECK(cudaGraphLaunch(exec, stream) == 0 && cudaStreamSynchronize(stream) == 0 && first_byte(memory) == 2);

	CHECK(cudaGraphExecUpdate(exec, longer, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	CHECK(cudaGraphLaunch(exec, stream) == 0 && cudaStreamSynchronize(stream) == 0 && first_byte(memory) == 2);

	CHECK(cudaGraphExecDestroy(exec) == 0 && cudaGraphDestroy(graph) == 0 && cudaGraphDestroy(other) == 0);
	CHECK(cudaGraphDestroy(longer) == 0 && cudaFree(memory) == 0);
	checked++;
}

/* One launch for all of the batch. The kernel takes the operands' addresses from arrays, which stay as they are, also for a shape that splits K elsewhere. */
static void batched_product(void)
{
	void *handle = NULL, *arrays = NULL, *workspace = NULL, *graph = NULL;
	size_t nodes = 0;
	const float one = 1, zero = 0;
	enum { WORKSPACE = 1 << 20, M = 64, K = 32, BATCH = 7 };
	static float operand[K * M];
	char *operands = NULL;
	void *at[3][BATCH], *after[BATCH];
	for (int i = 0; i < K * M; i++)
		operand[i] = (float)(i / K % 3); /* all of a row is its number modulo 3 */
	CHECK(cudaMalloc(&arrays, 3 * BYTES) == 0 && cudaMalloc(&workspace, WORKSPACE) == 0 && cudaMalloc((void **)&operands, 3 * sizeof(operand)) == 0);
	void **a = arrays, **b = (void **)((char *)arrays + BYTES), **c = (void **)((char *)arrays + 2 * BYTES);
	CHECK(cublasGemmBatchedEx(NULL, 0, 0, 1, 1, 1, &one, NULL, R_32F, 1, NULL, R_32F, 1, &zero, NULL, R_32F, 1, 1, COMPUTE_32F, 0) == 1);
	CHECK(cublasCreate_v2(&handle) == 0 && cublasSetStream_v2(handle, stream) == 0);
	CHECK(cublasSetWorkspace_v2(handle, workspace, WORKSPACE) == 0);
	for (int i = 0; i < BATCH; i++) {
		at[0][i] = operands;
		at[1][i] = operands + sizeof(operand) + K * sizeof(float) * (size_t)i; /* a column of one value, i modulo 3 */
		at[2][i] = operands + 2 * sizeof(operand) + M * sizeof(float) * (size_t)i;
	}
	CHECK(cudaMemcpy(operands, operand, sizeof(operand), HOST_TO_DEVICE) == 0);
	CHECK(cudaMemcpy(operands + sizeof(operand), operand, sizeof(operand), HOST_TO_DEVICE) == 0);
	CHECK(cudaMemcpy(a, at[0], sizeof(at[0]), HOST_TO_DEVICE) == 0 && cudaMemcpy(b, at[1], sizeof(at[1]), HOST_TO_DEVICE) == 0);
	CHECK(cudaMemcpy(c, at[2], sizeof(at[2]), HOST_TO_DEVICE) == 0);
	CHECK(cudaStreamSynchronize(NULL) == 0);
	for (int batch = 1; batch <= BATCH; batch += BATCH - 1) {
		CHECK(cudaStreamBeginCapture(stream, THREAD_LOCAL) == 0);
		CHECK(cublasGemmBatchedEx(handle, 1, 0, M, 1, K, &one, (const void *const *)a, R_32F, K, (const void *const *)b, R_32F, K,
		                          &zero, c, R_32F, M, batch, COMPUTE_32F, -1) == 0);
		CHECK(cudaStreamEndCapture(stream, &graph) == 0);
		CHECK(cudaGraphGetNodes(graph, NULL, &nodes) == 0 && nodes == 1);
		void *exec = NULL;
		CHECK(cudaGraphInstantiate(&exec, graph, 0) == 0 && cudaGraphLaunch(exec, stream) == 0);
		CHECK(cudaStreamSynchronize(stream) == 0 && cudaMemcpy(after, c, sizeof(after), DEVICE_TO_HOST) == 0 && memcmp(after, at[2], sizeof(after)) == 0);
		for (int i = 0; i < batch; i++) {
			float out[M];
			CHECK(cudaMemcpy(out, at[2][i], sizeof(out), DEVICE_TO_HOST) == 0);
			for (int row = 0; row < M; row++)
				CHECK(out[row] == (float)(K * (row % 3) * (i % 3)));
		}
		CHECK(cudaGraphExecDestroy(exec) == 0 && cudaGraphDestroy(graph) == 0);
	}
	CHECK(cublasGemmBatchedEx(handle, 0, 0, -1, 1, 1, &one, NULL, R_32F, 1, NULL, R_32F, 1, &zero, NULL, R_32F, 1, 1, COMPUTE_32F, 0) == 7);
	CHECK(cublasDestroy_v2(handle) == 0 && cudaFree(arrays) == 0 && cudaFree(workspace) == 0 && cudaFree(operands) == 0);
	checked++;
}

/* All memory of the process is gone, and the next allocation works. Comes last: streams are gone, too. */
static void device_reset(void)
{
	void *before = NULL, *after = NULL;
	CHECK(cudaMalloc(&before, BYTES) == 0 && cudaDeviceReset() == 0);
	CHECK(cudaFree(before) != 0);
	CHECK(cudaMalloc(&after, BYTES) == 0 && cudaFree(after) == 0);
	checked++;
}

int main(void)
{
	device_flags();
	CHECK(cudaStreamCreateWithFlags(&stream, 1) == 0);
	graph_update();
	batched_product();
	device_reset();
	printf("runtime: %d passed %d failed\n", checked, failed);
	return failed != 0;
}
