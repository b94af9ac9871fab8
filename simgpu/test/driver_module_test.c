/*
 * driver_module_test.c: modules, and calls that the simulated driver refuses.
 */
#include "driver_test.h"

#include <time.h>

/* The driver knows no kernel by name, and the text of a kernel decides its results. */
void no_names(void)
{
	CUdeviceptr p;
	float a, b, c;
	CUfunction renamed = load(HEADER KERNEL("completely_different", "add.f32"), "completely_different");
	CUfunction edited = load(HEADER KERNEL("add", "sub.f32"), "add");
	OK(cuMemAlloc(&p, 12));
	OK(cuMemsetD32(p, 0, 3));
	OK(launch(add_kernel, NULL, p, 1, 2));
	OK(launch(renamed, NULL, p + 4, 1, 2));
	OK(launch(edited, NULL, p + 8, 1, 2));
	OK(cuMemcpyDtoH(&a, p, 4));
	OK(cuMemcpyDtoH(&b, p + 4, 4));
	OK(cuMemcpyDtoH(&c, p + 8, 4));
	CHECK(a == 2 && b == 2 && c == -2);
}

void unsupported(void)
{
	CUstream s = new_stream();
	CUuserObject object;
	WANT(CUDA_ERROR_NOT_SUPPORTED, cuUserObjectCreate(&object, NULL, NULL, 1, 1));
	CHECK(line_with(getenv("SIMGPU_LOG"), "cuUserObjectCreate", "not simulated"));
	WANT(CUDA_ERROR_NOT_SUPPORTED, cuStreamAttachMemAsync(s, 0, 0, 0));
	CHECK(line_with(getenv("SIMGPU_LOG"), "cuStreamAttachMemAsync", "not simulated"));
	const void *table = (void *)1;
	CUuuid id = {{0}};
	CHECK(cuGetExportTable(&table, &id) != CUDA_SUCCESS && table == NULL);
}

void no_compute(void)
{
	CUdeviceptr p;
	float v = 1;
	OK(cuMemAlloc(&p, 4));
	OK(cuMemsetD32(p, 0, 1));
	OK(launch(add_kernel, NULL, p, 1, 2));
	OK(cuMemcpyDtoH(&v, p, 4));
	CHECK(v == 0);
}

void capability(void)
{
	int major = 0, minor = 0;
	CUmodule m;
	OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	OK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
	CHECK(major == 8 && minor == 6);
	WANT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, ".version 8.0\n.target sm_90\n.address_size 64\n"));
}

/* A fat binary with PTX entries for two architectures: the newest that the device can run. */
void fat_binary(void)
{
	static const char old_ptx[] = "// Written by hand\n" HEADER KERNEL("which", "sub.f32"), new_ptx[] = "// Written by hand\n" HEADER KERNEL("which", "add.f32");
	static unsigned char image[8192];
	struct { unsigned magic; unsigned short version, header; unsigned long long size; } head = {0xba55ed50u, 1, 16, 0};
	size_t at = sizeof(head);
	for (int i = 0; i < 2; i++) {
		const char *text = i ? new_ptx : old_ptx;
		size_t padded = (strlen(text) + 1 + 7) / 8 * 8;
		unsigned header = 64, arch = i ? 86 : 80;
		unsigned long long size = padded;
		image[at] = 1; /* PTX */
		memcpy(image + at + 4, &header, 4);
		memcpy(image + at + 8, &size, 8);
		memcpy(image + at + 0x1c, &arch, 4);
		memcpy(image + at + 64, text, strlen(text));
		at += 64 + padded;
	}
	head.size = at - sizeof(head);
	memcpy(image, &head, sizeof(head));
	struct { unsigned magic, version; const void *data, *more; } wrapper = {0x466243b1u, 1, image, NULL};
	CUmodule m;
	CUfunction f;
	CUdeviceptr p;
	float v = 0;
	OK(cuModuleLoadFatBinary(&m, &wrapper));
	OK(cuModuleGetFunction(&f, m, "which"));
	OK(cuMemAlloc(&p, 4));
	OK(cuMemsetD32(p, 0, 1));
	OK(launch(f, NULL, p, 1, 3));
	OK(cuMemcpyDtoH(&v, p, 4));
	CHECK(v == 3);
	unsigned machine = 2; /* only machine code left */
	memcpy(image + 16, &machine, 2);
	memcpy(image + 16 + 64 + (strlen(old_ptx) + 8) / 8 * 8, &machine, 2);
	WANT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, image));
}

/* A capture forbids to load a library, and is lost by it, unless the thread's mode is relaxed. */
void library_in_capture(void)
{
	CUstream s = new_stream();
	CUlibrary lib;
	CUgraph graph;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuLibraryLoadData(&lib, HEADER, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuStreamEndCapture(s, &graph));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	WANT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuLibraryLoadData(&lib, HEADER, NULL, NULL, 0, NULL, NULL, 0));
	WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
}

void copies_take_time(void)
{
	static char data[64 << 10]; /* a sixteenth of a second */
	struct timespec began, ended;
	CUdeviceptr p;
	OK(cuMemAlloc(&p, sizeof(data)));
	CHECK(clock_gettime(CLOCK_MONOTONIC, &began) == 0);
	OK(cuMemcpyHtoD(p, data, sizeof(data)));
	OK(cuCtxSynchronize());
	CHECK(clock_gettime(CLOCK_MONOTONIC, &ended) == 0);
	CHECK((double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9 >= 0.0625);
}
