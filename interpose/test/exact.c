/*
 * exact.c: allocates and frees in an order that repeats, then queries its memory in every way. Prints addresses as `at`, in
 * order, and answers by name. Arguments: a number that determines the scratch allocations, and an address to occupy before
 * everything else. OPEN_FIRST lists libraries, with colons between them, that are open before the driver is initialized.
 */
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define PAGE ((size_t)2 << 20)

static void in_trigger_scope(void)
{
	CUdeviceptr small, large;
	MARK(medusa_trigger_begin);
	small = alloc((size_t)(1 + rand() % 1000));
	large = alloc(3 * PAGE);
	PRINT("scratch", small);
	PRINT("scratch", large);
	CHECK(cuMemFree(small));
	MARK(medusa_trigger_end);
}

static CUdeviceptr at(size_t bytes)
{
	CUdeviceptr p = alloc(bytes);
	PRINT("at", p);
	return p;
}

static void reuse(void)
{
	static const size_t sizes[] = {256, 100, 4096, 2 * PAGE, 700, PAGE - 512, 3 * PAGE + 5, 512};
	enum { N = sizeof sizes / sizeof *sizes };
	CUdeviceptr p[N];
	for (int i = 0; i < N; i++)
		p[i] = at(sizes[i]);
	for (int i = 0; i < N; i += 2)
		CHECK(cuMemFree(p[i]));
	for (int i = 0; i < N; i += 2)
		p[i] = at(sizes[N - 1 - i]);
	for (int i = 0; i < N; i++)
		CHECK(cuMemFree(p[i]));
}

/* Bytes of an allocation that crosses into the next page. */
static void contents(void)
{
	static unsigned char out[PAGE], in[PAGE];
	CUdeviceptr first = at(PAGE - 1024), second = at(PAGE - 512);
	for (size_t i = 0; i < sizeof out; i++)
		out[i] = (unsigned char)(i * 31 + i / 251);
	CHECK(cuMemcpyHtoD(second, out, PAGE - 512));
	CHECK(cuMemcpyDtoH(in, second, PAGE - 512));
	PRINT("contents", memcmp(in, out, PAGE - 512) == 0);
	CHECK(cuMemFree(first));
	CHECK(cuMemcpyDtoH(in, second, PAGE - 512));
	PRINT("kept", memcmp(in, out, PAGE - 512) == 0);
	CHECK(cuMemFree(second));
	PRINT("gone", cuMemcpyDtoH(in, second, 16) != CUDA_SUCCESS);
}

static void queries(void)
{
	CUdeviceptr before = at(1000), p = at(5000), base = 0;
	CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
	size_t size = 0, range = 0;
	unsigned int type = 0;
	CUdeviceptr start_addr = 0;
	void *data[] = {&range, &type, &start_addr};
	CUcontext ctx = NULL, current = NULL;
	uint64_t id[2] = {0};
	CUmemGenericAllocationHandle handle;
	CUipcMemHandle ipc;
	CHECK(cuMemGetAddressRange(&base, &size, p + 4999));
	PRINT("range", base == p && size == 5000);
	CHECK(cuPointerGetAttributes(3, attributes, data, p + 1));
	PRINT("attributes", range == 5000 && type == CU_MEMORYTYPE_DEVICE && start_addr == p);
	CHECK(cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	CHECK(cuCtxGetCurrent(&current));
	CHECK(cuPointerGetAttribute(&id[0], CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	CHECK(cuPointerGetAttribute(&id[1], CU_POINTER_ATTRIBUTE_BUFFER_ID, before));
	PRINT("identity", ctx == current && id[0] != id[1] && id[0] != 0);
	PRINT("retain", cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)p));
	PRINT("ipc", cuIpcGetMemHandle(&ipc, p));
	PRINT("free-inside", cuMemFree(p + 256));
	CHECK(cuMemFree(p));
	PRINT("free-twice", cuMemFree(p));
	CHECK(cuMemFree(before));
	PRINT("zero", cuMemAlloc(&p, 0));
	PRINT("too-much", cuMemAlloc(&p, (size_t)1 << 40));
}

/* cuMemFree waits for work that still uses the memory. */
static void waits(void)
{
	CUmodule m;
	CUfunction f;
	CUstream s;
	CUdeviceptr p = at(4096);
	CHECK(cuModuleLoadData(&m, module_ptx));
	CHECK(cuModuleGetFunction(&f, m, "add_one"));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	launch_add_one(f, s, p, 1000);
	CHECK(cuMemFree(p));
	CHECK(cuCtxSynchronize());
	PRINT("waited", 1);
}

static void during_capture(void)
{
	CUstream s;
	CUgraph g;
	CUdeviceptr p, q = at(64);
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	PRINT("captured-alloc", cuMemAlloc(&p, 64));
	cuStreamEndCapture(s, &g);
	CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuThreadExchangeStreamCaptureMode(&mode));
	PRINT("relaxed-alloc", cuMemAlloc(&p, 64));
	PRINT("relaxed-free", cuMemFree(p));
	CHECK(cuThreadExchangeStreamCaptureMode(&mode));
	PRINT("captured-free", cuMemFree(q));
	cuStreamEndCapture(s, &g);
	CHECK(cuMemFree(q));
}

static void reservations(void)
{
	CUdeviceptr p, q;
	CHECK(cuMemAddressReserve(&p, 5 * PAGE, 0, 0, 0));
	CHECK(cuMemAddressReserve(&q, PAGE, 0, 0, 0));
	PRINT("at", p);
	PRINT("at", q);
}

static void place(void)
{
	struct medusa_exact e;
	CUdeviceptr p, q, low = at(100), again;
	int placed, status;
	pid_t child;
	if (!MEDUSA(medusa_exact_get))
		return;
	MEDUSA(medusa_exact_get)(&e);
	PRINT("state", e.state);
	PRINT("base", e.base);
	PRINT("reason", e.reason[0] != 0);
	if (e.reason[0])
		fprintf(stderr, "%s\n", e.reason);
	if (e.state != MEDUSA_EXACT_ON)
		return;
	p = low + 64 * 512;
	placed = MEDUSA(medusa_exact_place)(p, 300);
	PRINT("placed", placed);
	if (placed) /* in a region with gaps, addresses are not predictable */
		return;
	PRINT("taken", MEDUSA(medusa_exact_place)(p, 300));
	PRINT("outside", MEDUSA(medusa_exact_place)(e.base - 512, 300));
	CHECK(cuMemsetD8(p, 1, 300));
	CHECK(cuMemFree(p));
	PRINT("placed-again", MEDUSA(medusa_exact_place)(p, 300));
	p = e.base + e.size - PAGE; /* the part for reservations */
	PRINT("placed-mapping", MEDUSA(medusa_exact_place)(p, PAGE));
	CHECK(cuMemFree(p));
	CHECK(cuMemAddressReserve(&p, 3 * PAGE, 0, 0, 0));
	PRINT("placed-in-reservation", MEDUSA(medusa_exact_place)(p + PAGE, PAGE));
	PRINT("placed-around-reservation", MEDUSA(medusa_exact_place)(p - PAGE, 5 * PAGE));
	PRINT("placed-behind-reservation", MEDUSA(medusa_exact_place)(p + 4 * PAGE, PAGE));
	CHECK(cuMemAddressReserve(&q, 2 * PAGE, 0, 0, 0));
	PRINT("reservation-passes", (q - p) / PAGE);
	CHECK(cuMemFree(p + 4 * PAGE));
	again = at(100);
	PRINT("next", again - low);
	child = fork(); /* the region is the parent's */
	if (child == 0) {
		MEDUSA(medusa_exact_get)(&e);
		_exit((int)e.state);
	}
	CHECK(child < 0 || waitpid(child, &status, 0) != child);
	PRINT("forked", WEXITSTATUS(status));
}

static void contexts(void)
{
	size_t before, after, total;
	CUcontext ctx;
	at(8 * PAGE);
	CHECK(cuMemGetInfo(&before, &total));
	CHECK(cuDevicePrimaryCtxReset(0)); /* the context can be used again once it is retained again */
	CHECK(cuDevicePrimaryCtxRetain(&ctx, 0));
	CHECK(cuCtxSetCurrent(ctx));
	CHECK(cuMemGetInfo(&after, &total));
	PRINT("reset", after - before >= 8 * PAGE);
}

/* Memory of the process at an address: "asked" as a hint, "taken" in any case. It must stay as it is. */
static int *occupied;

static void occupy(void *at, const char *how)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (strcmp(how, "taken") == 0 ? MAP_FIXED : 0);
	occupied = mmap(at, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
	CHECK(occupied == MAP_FAILED);
	*occupied = 7;
	PRINT("occupied", occupied == at);
}

/* NVML, which engines ask for devices, is initialized as well. */
static void open_first(char *list)
{
	for (char *name = strtok(list, ":"); name; name = strtok(NULL, ":")) {
		void *lib = dlopen(name, RTLD_NOW);
		int (*init)(void) = NULL;
		CHECK(lib ? CUDA_SUCCESS : CUDA_ERROR_FILE_NOT_FOUND);
		*(void **)&init = dlsym(lib, "nvmlInit_v2");
		PRINT("opened", init ? (unsigned)init() : 0);
	}
}

int main(int argc, char **argv)
{
	char *libraries = getenv("OPEN_FIRST");
	CHECK(argc == 3); /* an address, and not how */
	if (argc > 3)
		occupy((void *)(uintptr_t)strtoull(argv[2], NULL, 0), argv[3]);
	if (libraries)
		open_first(libraries);
	start();
	srand(argc > 1 ? (unsigned)atoi(argv[1]) : 0);
	reuse();
	in_trigger_scope();
	contents();
	queries();
	waits();
	during_capture();
	reservations();
	place();
	contexts();
	return occupied && *occupied != 7;
}
