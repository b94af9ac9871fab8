/*
 * reach.c WAY: allocates 4096 bytes and frees them, with driver functions found by one of the ways that exist.
 * WAY: direct (linked against libcuda.so.1), dlsym (own handle), default (RTLD_DEFAULT), next (RTLD_NEXT),
 * dlvsym, procaddr, procaddr-v1, procaddr-procaddr (cuGetProcAddress asked for itself), old-abi (cuMemAlloc before 3.2).
 */
#define CUDA_EXACT_SYMBOLS
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

typedef __typeof__(&cuInit) init_fn;
typedef __typeof__(&cuDevicePrimaryCtxRetain) retain_fn;
typedef __typeof__(&cuCtxSetCurrent) current_fn;
typedef __typeof__(&cuMemAlloc_v2) alloc_fn;
typedef __typeof__(&cuMemFree_v2) free_fn;
typedef __typeof__(&cuGetProcAddress_v2) ask_fn;
typedef __typeof__(&cuGetProcAddress) ask_v1_fn;

static void *must(void *p, const char *what)
{
	if (!p) {
		fprintf(stderr, "no %s: %s\n", what, dlerror());
		exit(2);
	}
	return p;
}

static void check(int rc, const char *what)
{
	if (rc) {
		fprintf(stderr, "%s: result %d\n", what, rc);
		exit(3);
	}
}

static void *asked(ask_fn ask, const char *name, int version)
{
	void *p = NULL;
	CUdriverProcAddressQueryResult status;
	check(ask(name, &p, version, 0, &status), name);
	return p;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	alloc_fn alloc;
	free_fn release;
	CUdeviceptr ptr;
	CUcontext ctx;
	void *h = strcmp(way, "direct") == 0 ? NULL : must(dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), "libcuda.so.1");
#ifdef LINKED
	check(cuInit(0), "cuInit");
	check(cuDevicePrimaryCtxRetain(&ctx, 0), "retain");
	check(cuCtxSetCurrent(ctx), "current");
	alloc = cuMemAlloc_v2;
	release = cuMemFree_v2;
	(void)must, (void)asked, (void)h;
#else
	check(((init_fn)must(dlsym(h, "cuInit"), "cuInit"))(0), "cuInit");
	check(((retain_fn)must(dlsym(h, "cuDevicePrimaryCtxRetain"), "retain"))(&ctx, 0), "retain");
	check(((current_fn)must(dlsym(h, "cuCtxSetCurrent"), "current"))(ctx), "current");
	if (strcmp(way, "default") == 0)
		h = RTLD_DEFAULT;
	if (strcmp(way, "next") == 0)
		h = RTLD_NEXT;
	if (strncmp(way, "procaddr", 8) == 0) {
		ask_fn ask = (ask_fn)must(dlsym(h, "cuGetProcAddress_v2"), "cuGetProcAddress_v2");
		if (strcmp(way, "procaddr-procaddr") == 0)
			ask = (ask_fn)asked(ask, "cuGetProcAddress", 12000);
		if (strcmp(way, "procaddr-v1") == 0) {
			ask_v1_fn v1 = (ask_v1_fn)asked(ask, "cuGetProcAddress", 11030);
			check(v1("cuMemAlloc", (void **)&alloc, 11030, 0), "v1");
			check(v1("cuMemFree", (void **)&release, 11030, 0), "v1");
		} else {
			alloc = (alloc_fn)asked(ask, "cuMemAlloc", 12000);
			release = (free_fn)asked(ask, "cuMemFree", 12000);
		}
	} else if (strcmp(way, "dlvsym") == 0) {
		alloc = (alloc_fn)must(dlvsym(h, "cuMemAlloc_v2", "libcuda.so.1"), "cuMemAlloc_v2");
		release = (free_fn)must(dlvsym(h, "cuMemFree_v2", "libcuda.so.1"), "cuMemFree_v2");
	} else {
		alloc = (alloc_fn)must(dlsym(h, "cuMemAlloc_v2"), "cuMemAlloc_v2");
		release = (free_fn)must(dlsym(h, "cuMemFree_v2"), "cuMemFree_v2");
	}
	if (strcmp(way, "old-abi") == 0) {
		ask_fn ask = (ask_fn)must(dlsym(h, "cuGetProcAddress_v2"), "cuGetProcAddress_v2");
		unsigned int small;
		int rc = ((CUresult(*)(unsigned int *, unsigned int))asked(ask, "cuMemAlloc", 3010))(&small, 16);
		return rc == CUDA_ERROR_NOT_SUPPORTED ? 0 : 4;
	}
#endif
	check(alloc(&ptr, 4096), "alloc");
	check(release(ptr), "free");
	return 0;
}
