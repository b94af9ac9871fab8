/*
 * trigger.c: trigger scopes, the module map and the player, as a restorer uses them.
 */
#include "common.h"

/* Calls with eight arguments, and with more, have their own ways to fail. */
static uint64_t seen[8];
static int eight(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
	uint64_t all[] = {a, b, c, d, e, f, g, h};
	memcpy(seen, all, sizeof seen);
	return 0;
}

static void play(CUstream s, CUfunction f)
{
	static uint64_t graph, node, exec;
	static CUdeviceptr p;
	static unsigned int n = 5;
	static void *params[] = {&p, &n};
	static CUDA_KERNEL_NODE_PARAMS kp;
	size_t failed = 99;
	int back = 0;
	p = alloc(4096);
	kp = (CUDA_KERNEL_NODE_PARAMS){.func = f, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1, .kernelParams = params};
#define ADDR(x) (uint64_t)(uintptr_t)(x)
	struct medusa_call program[] = {
		{ADDR(cuMemsetD32), 3, 0, {p, 7, 5}},
		{ADDR(cuCtxSynchronize), 0, 0, {0}},
		{ADDR(cuGraphCreate), 2, 0, {ADDR(&graph), 0}},
		{ADDR(cuGraphAddKernelNode), 5, 1 << 1, {ADDR(&node), ADDR(&graph), 0, 0, ADDR(&kp)}},
		{ADDR(cuGraphInstantiateWithFlags), 3, 1 << 1, {ADDR(&exec), ADDR(&graph), 0}},
		{ADDR(cuGraphLaunch), 2, 1, {ADDR(&exec), ADDR(s)}},
		{ADDR(cuStreamSynchronize), 1, 0, {ADDR(s)}},
		{ADDR(eight), 8, 1 << 7, {1, 2, 3, 4, 5, 6, 7, ADDR(&exec)}},
	};
	enum { N = sizeof program / sizeof *program };
	CHECK(MEDUSA(medusa_play)(program, N, &failed));
	CHECK(cuMemcpyDtoH(&back, p, 4));
	PRINT("played", back);
	PRINT("eighth", seen[7] == exec && exec != 0 && seen[5] == 6);
	program[3].arg[4] = 0; /* no parameters: the driver refuses */
	PRINT("rc", MEDUSA(medusa_play)(program, N, &failed));
	PRINT("failed", failed);
	program[0].nargs = 9;
	PRINT("rc9", MEDUSA(medusa_play)(program, N, &failed));
	PRINT("failed9", failed);
	CHECK(MEDUSA(medusa_play)(NULL, 0, &failed));
}

int main(void)
{
	CUmodule module, again;
	CUfunction add_one, add;
	CUstream s;
	CUdeviceptr before, inside;
	struct medusa_module m;
	uint64_t functions[4];
	start();
	MARK(medusa_mark_phase, "structure");
	CHECK(cuModuleLoadData(&module, module_ptx));
	CHECK(cuModuleLoadData(&again, module_ptx));
	CHECK(cuModuleUnload(again));
	CHECK(cuModuleGetFunction(&add_one, module, "add_one"));
	CHECK(cuModuleGetFunction(&add, module, "add"));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	before = alloc(4096);
	launch_add_one(add_one, s, before, 1);
	MARK(medusa_trigger_begin);
	inside = alloc(8192);
	launch_add_one(add_one, s, inside, 1);
	launch_add_one(add_one, s, inside, 2);
	CHECK(cuMemFree(inside));
	CHECK(cuStreamSynchronize(s));
	MARK(medusa_trigger_end);
	launch_add_one(add_one, s, before, 1);
	PRINT("allocs", MEDUSA(medusa_alloc_count)());
	PRINT("steps", MEDUSA(medusa_sequence)(NULL, 0));
	PRINT("launches", MEDUSA(medusa_trigger_launches)());
	PRINT("functions", MEDUSA(medusa_trigger_functions)(functions, 4));
	PRINT("add_one", functions[0] == (uintptr_t)add_one);
	PRINT("modules", MEDUSA(medusa_module_count)());
	CHECK(MEDUSA(medusa_module_get)(0, &m));
	PRINT("handle", m.handle == (uintptr_t)module);
	PRINT("size", m.image_size);
	PRINT("unloaded", m.unloaded);
	printf("build-id %s\n", m.build_id);
	PRINT("offset", m.dso_offset);
	printf("hash ");
	CHECK(MEDUSA(medusa_module_hash)(0, m.image_sha256));
	for (int i = 0; i < 32; i++)
		printf("%02x", m.image_sha256[i]);
	printf("\n");
	PRINT("unhashed", MEDUSA(medusa_module_hash)(2, m.image_sha256) + 1);
	CHECK(MEDUSA(medusa_module_get)(1, &m));
	PRINT("unloaded-again", m.unloaded);
	play(s, add_one);
	return 0;
}
