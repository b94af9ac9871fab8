/*
 * driver_log_test.c: the call log, the ground truth, the count of leaks and faults on demand.
 */
#include "driver_test.h"

#include <dlfcn.h>
#include <sys/wait.h>

void call_log(void)
{
	void (*mark)(const char *) = (void (*)(const char *))dlsym(RTLD_DEFAULT, "calllog_mark");
	CUdeviceptr p;
	OK(cuMemAlloc(&p, 100));
	CHECK(mark != NULL);
	mark("half way");
	OK(launch(add_kernel, NULL, p, 1, 1));
	WANT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
	const char *path = getenv("SIMGPU_CALL_LOG");
	CHECK(line_with(path, "start\t", "device=simulated"));
	CHECK(line_with(path, "\tcuMemAlloc_v2\tCUDA_SUCCESS\t", "bytes=100\tindex=0"));
	CHECK(line_with(path, "mark\thalf way\n", ""));
	CHECK(line_with(path, "\tcuLaunchKernel\tCUDA_SUCCESS\t", "kernel=add\tgrid=1,1,1\tblock=32,1,1"));
	CHECK(line_with(path, "\tcuMemAlloc_v2\tCUDA_ERROR_INVALID_VALUE\n", ""));
}

void forks(void)
{
	int version, status;
	pid_t child = fork();
	if (child == 0)
		_exit(cuDriverGetVersion(&version) != CUDA_SUCCESS);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* The table at each captured launch can be rebuilt: here an address is freed and handed out again between two. */
void truth(void)
{
	CUstream s = new_stream();
	CUgraph g;
	CUdeviceptr a, b, c;
	char want[256];
	OK(cuMemAlloc(&a, 4096));
	OK(cuMemAlloc(&b, 4096));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(launch(add_kernel, s, b, 1, 1));
	OK(cuMemFree(b));
	OK(cuMemAlloc(&c, 4096));
	CHECK(c == b);
	OK(launch(add_kernel, s, c, 2, 1));
	OK(cuMemsetD32Async(a, 7, 3, s));
	OK(cuMemcpyDtoDAsync(a + 8, c, 16, s));
	OK(cuStreamEndCapture(s, &g));
	FILE *f = fopen(getenv("SIMGPU_TRUTH"), "r");
	static char text[8192];
	CHECK(f != NULL);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	unsigned char raw[8];
	char hex[17];
	unsigned long long hash = 0xcbf29ce484222325; /* FNV-1a */
	for (const char *p = HEADER KERNEL("add", "add.f32"); *p; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3;
	memcpy(raw, &b, 8);
	for (int i = 0; i < 8; i++)
		snprintf(hex + 2 * i, 3, "%02x", raw[i]);
	snprintf(want, sizeof(want),
	         "kernel\t2\t1\t0\tadd\t%016llx\t1,1,1\t32,1,1\t0\t0:%s,8:01000000,12:0000803f\n"
	         "free\t3\t1\t0x%llx\n"
	         "alloc\t4\t2\tdevice\t0x%llx\t4096\n"
	         "kernel\t5\t1\t1\tadd\t%016llx\t1,1,1\t32,1,1\t0\t0:%s,8:02000000,12:0000803f\n",
	         hash, hex, b, c, hash, hex);
	CHECK(strstr(text, want));
	snprintf(want, sizeof(want), "memset\t6\t1\t2\t0x%llx\t0\t7\t4\t3\t1\nmemcpy\t7\t1\t3\t0x%llx\t0,0,0,16,1\t0x%llx\t0,0,0,16,1\t16\t1\t1\n", a, a + 8, c);
	CHECK(strstr(text, want));
}

/* Names of kernels that C++ templates make have many hundred characters. */
#define K64 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define LONG_NAME K64 K64 K64 K64 K64 K64 K64 K64 K64 K64

void truth_of_long_names(void)
{
	CUstream s = new_stream();
	CUgraph g;
	CUmodule m;
	CUfunction f;
	static char text[8192];
	OK(cuModuleLoadData(&m, HEADER ".visible .entry " LONG_NAME "() { ret; }\n"));
	OK(cuModuleGetFunction(&f, m, LONG_NAME));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuLaunchKernel(f, 132, 1, 1, 256, 1, 1, 1024, s, NULL, NULL));
	OK(cuStreamEndCapture(s, &g));
	FILE *file = fopen(getenv("SIMGPU_TRUTH"), "r");
	CHECK(file != NULL);
	text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	fclose(file);
	CHECK(strstr(text, "\t" LONG_NAME "\t"));
	CHECK(strstr(text, "\t132,1,1\t256,1,1\t1024\t\n"));
}

void leave_things(void)
{
	CUdeviceptr p;
	CUevent e;
	OK(cuMemAlloc(&p, 4));
	OK(cuEventCreate(&e, 0));
	new_stream();
	exit(0);
}

void leaks(void)
{
	CHECK(line_with(getenv("SIMGPU_LOG"), "leaks: allocations=1 modules=1 libraries=0 streams=1 events=1", "graphs=0 execs=0"));
}

void fault_once(void)
{
	CUdeviceptr p = 0, q = 0;
	OK(cuMemAlloc(&p, 100));
	WANT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 100));
	CHECK(q == 0);
	OK(cuMemAlloc(&q, 100));
	OK(cuMemFree(p));
}

void fault_sticky(void)
{
	CUdeviceptr p;
	OK(cuMemAlloc(&p, 100));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(NULL));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemFree(p));
}
