/*
 * main.c: tests the vendor BLAS on whatever device libcuda.so.1 leads to. Prints each failure; exits 1 if there was one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "device.h"
#include "plan.h"
#include "semaphore.h"
#include "test.h"

int failures;

static vblasHandle_t handle(void)
{
	vblasHandle_t h;
	CHECK(vblasCreate(&h) == VBLAS_STATUS_SUCCESS, "%s", vblasLastError());
	CHECK(vblasSetStream(h, device.stream) == VBLAS_STATUS_SUCCESS, "%s", vblasLastError());
	return h;
}

static void check_product(vblasHandle_t h, vblasDataType_t type, int m, int n, int k)
{
	struct problem p = problem_make(type, m, n, k, (unsigned)(m * 31 + n * 7 + k));
	CHECK(problem_run(&p, h) == VBLAS_STATUS_SUCCESS, "%d x %d x %d: %s", m, n, k, vblasLastError());
	int wrong = problem_wrong(&p);
	CHECK(!wrong, "%d x %d x %d, type %d: %d elements are wrong", m, n, k, type, wrong);
	problem_free(&p);
}

/* The same rows alone, in a small and in a large batch: sums run in the same order, so the bits agree. */
static void check_rows_agree(vblasHandle_t h)
{
	struct problem large = problem_make(VBLAS_F32, 80, 96, 96, 5), small = large;
	float *a = malloc(80 * 96 * sizeof *a), *b = malloc(80 * 96 * sizeof *b);
	small.m = 10;
	CHECK(problem_run(&large, h) == VBLAS_STATUS_SUCCESS, "%s", vblasLastError());
	problem_result(&large, a);
	CHECK(problem_run(&small, h) == VBLAS_STATUS_SUCCESS, "%s", vblasLastError());
	problem_result(&small, b);
	CHECK(!memcmp(a, b, 10 * 96 * sizeof *a), "tile and large differ");
	problem_free(&large);
	free(a);
	free(b);
}

void test_products(void)
{
	static const struct layer layers[] = DEMO_LAYERS;
	static const struct { int n, k; } odd[] = {{1, 1}, {5, 2}, {64, 172}, {33, 12}, {30, 50}, {7, 131}, {67, 515}, {344, 62}};
	static const int odd_batches[] = {1, 3, 9, 65};
	static const int batches[] = {1, 2, 3, 4, 8, 24, 64, 72, 136};
	vblasHandle_t h = handle();
	for (int type = VBLAS_F32; type <= VBLAS_BF16; type++) {
		for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
			for (size_t j = 0; j < sizeof batches / sizeof *batches; j++)
				check_product(h, type, batches[j], layers[i].n, layers[i].k);
		check_product(h, type, 5, 1, 8);
		check_product(h, type, 65, 67, 40);
		check_product(h, type, 33, 129, 520);
		check_product(h, type, 9, 70, 1000);
		/* Sizes that are no multiple of a vector or of a tile's step, in the kernels of each module. */
		for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
			for (size_t j = 0; j < sizeof odd_batches / sizeof *odd_batches; j++)
				check_product(h, type, odd_batches[j], odd[i].n, odd[i].k);
	}
	check_rows_agree(h);
	CHECK(vblasDestroy(h) == VBLAS_STATUS_SUCCESS, "%s", vblasLastError());
}

static unsigned word_at(CUdeviceptr p)
{
	unsigned v;
	download(&v, p, sizeof v);
	return v;
}

static void set_word(CUdeviceptr p, unsigned v)
{
	MUST(device.cuStreamSynchronize(device.stream));
	MUST(device.cuMemcpyHtoD_v2(p, &v, sizeof v));
	MUST(device.cuStreamSynchronize(NULL));
}

void test_split(void)
{
	vblasHandle_t h = handle();
	struct problem p = problem_make(VBLAS_F32, 40, 64, 176, 9);
	float first[40 * 64], again[40 * 64];
	CHECK(!h->own_workspace && !h->entered && !h->left, "memory was taken before it was needed");
	CHECK(problem_run(&p, h) == VBLAS_STATUS_SUCCESS, "%s", vblasLastError());
	problem_result(&p, first);
	for (int i = 0; i < 3; i++) {
		CHECK(word_at(h->entered) == SEMAPHORE_REST && word_at(h->left) == SEMAPHORE_REST, "semaphores %#x %#x after %d",
		      word_at(h->entered), word_at(h->left), i);
		CHECK(problem_run(&p, h) == VBLAS_STATUS_SUCCESS, "%s", vblasLastError());
		problem_result(&p, again);
		CHECK(!memcmp(first, again, sizeof first), "launch %d differs from the first", i);
	}
	/* A semaphore that does not rest spoils every element, then and in later launches. */
	CUdeviceptr semaphores[] = {h->entered, h->left};
	for (int i = 0; i < 2; i++) {
		set_word(semaphores[i], 0);
		for (int j = 0; j < 2; j++) {
			CHECK(problem_run(&p, h) == VBLAS_STATUS_SUCCESS, "%s", vblasLastError());
			CHECK(problem_wrong(&p) == p.m * p.n, "semaphore %d was 0 and %d elements are right", i, p.m * p.n - problem_wrong(&p));
		}
		set_word(h->entered, SEMAPHORE_REST);
		set_word(h->left, SEMAPHORE_REST);
		CHECK(problem_run(&p, h) == VBLAS_STATUS_SUCCESS && !problem_wrong(&p), "at rest again, still wrong");
	}
	problem_free(&p);
	CHECK(vblasDestroy(h) == VBLAS_STATUS_SUCCESS, "%s", vblasLastError());
}

/* Everything lazy happens inside a capture, in the strictest mode. */
void test_capture(void)
{
	vblasHandle_t h = handle();
	struct problem p = problem_make(VBLAS_F32, 16, 64, 176, 11);
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode nodes[4];
	size_t count = 4;
	MUST(device.cuStreamBeginCapture_v2(device.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(problem_run(&p, h) == VBLAS_STATUS_SUCCESS, "%s", vblasLastError());
	MUST(device.cuStreamEndCapture(device.stream, &graph));
	MUST(device.cuGraphGetNodes(graph, nodes, &count));
	CHECK(count == 2, "%zu nodes", count);
	for (size_t i = 0; i < count; i++) {
		CUgraphNodeType type;
		MUST(device.cuGraphNodeGetType(nodes[i], &type));
		CHECK(type == (i ? CU_GRAPH_NODE_TYPE_KERNEL : CU_GRAPH_NODE_TYPE_MEMSET), "node %zu has type %d", i, (int)type);
	}
	CHECK(problem_wrong(&p) == p.m * p.n, "capturing computed something");
	MUST(device.cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 2; i++) {
		MUST(device.cuGraphLaunch(exec, device.stream));
		CHECK(!problem_wrong(&p), "launch %d of the graph is wrong", i);
	}
	MUST(device.cuGraphExecDestroy(exec));
	MUST(device.cuGraphDestroy(graph));
	problem_free(&p);
	CHECK(vblasDestroy(h) == VBLAS_STATUS_SUCCESS, "%s", vblasLastError());
}

void test_errors(void)
{
	vblasHandle_t h = handle();
	struct problem p = problem_make(VBLAS_F32, 8, 64, 128, 13);
	CUdeviceptr workspace;
	struct { struct problem p; vblasStatus_t want; const char *what; } cases[] = {
		{p, VBLAS_STATUS_NOT_SUPPORTED, "a misaligned operand"},
		{p, VBLAS_STATUS_INVALID_VALUE, "rows too short"}, {p, VBLAS_STATUS_INVALID_VALUE, "an unknown type"},
		{p, VBLAS_STATUS_SUCCESS, "no rows"},
	};
	cases[0].p.a += 4;
	cases[1].p.ldb = 64;
	cases[2].p.type = (vblasDataType_t)7;
	cases[3].p.m = 0;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		vblasStatus_t got = problem_run(&cases[i].p, h);
		CHECK(got == cases[i].want, "%s: %s", cases[i].what, vblasGetStatusString(got));
	}
	CHECK(problem_run(&p, NULL) == VBLAS_STATUS_NOT_INITIALIZED, "a product without a handle");
	CHECK(vblasSetWorkspace(h, 0x1001, 64) == VBLAS_STATUS_INVALID_VALUE, "a misaligned workspace");

	/* A workspace of the caller's is used instead of an own one; one that is too small means no split. */
	MUST(device.cuMemAlloc_v2(&workspace, VBLAS_WORKSPACE_BYTES));
	CHECK(vblasSetWorkspace(h, workspace, 256) == VBLAS_STATUS_SUCCESS, "a small workspace");
	CHECK(problem_run(&p, h) == VBLAS_STATUS_SUCCESS && !problem_wrong(&p) && !h->entered, "small workspace: %s", vblasLastError());
	CHECK(vblasSetWorkspace(h, workspace, VBLAS_WORKSPACE_BYTES) == VBLAS_STATUS_SUCCESS, "a large workspace");
	CHECK(problem_run(&p, h) == VBLAS_STATUS_SUCCESS && !problem_wrong(&p) && h->entered && !h->own_workspace,
	      "large workspace: %s", vblasLastError());

	CHECK(!vblas_driver_symbol("cuNoSuchFunction"), "a symbol that does not exist was found");
	problem_free(&p);
	CHECK(vblasDestroy(h) == VBLAS_STATUS_SUCCESS, "%s", vblasLastError());
	MUST(device.cuMemFree_v2(workspace));
}

int main(void)
{
	test_plan();
	device_open();
	test_products();
	test_split();
	test_capture();
	test_errors();
	printf(failures ? "blas: %d failures\n" : "blas: ok\n", failures);
	return failures != 0;
}
