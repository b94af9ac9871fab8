/*
 * plumbing.c WHAT: calls that only the fake driver has, or that must fail. refused: a free that the driver refuses. unmap: one
 * call unmaps two neighbouring mappings. ipc: another process's memory; ipc-twice: opened twice. context: a context is destroyed with memory in it. images
 * FILE: modules in every container.
 */
#include <stddef.h>

#include "common.h"

#undef cuIpcOpenMemHandle /* whose first form is called, too */

static struct {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
	char payload[40], not_part_of_it[24];
} fatbin = {0xba55ed50, 1, 16, 40, "payload", "behind"};

static struct {
	uint32_t magic, version;
	const void *data;
	void *more;
} wrapper = {0x466243b1, 1, &fatbin, NULL};

static struct {
	unsigned char bytes[400];
} elf;

static void set(size_t offset, uint64_t value, size_t size) { memcpy(elf.bytes + offset, &value, size); }

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	CUdeviceptr p, q;
	start();
	if (strcmp(what, "refused") == 0) {
		p = alloc(13); /* the fake driver refuses to free 13 bytes */
		q = alloc(14);
		if (cuMemFree(p) == CUDA_SUCCESS)
			return 5;
		CHECK(cuMemFree(q));
	}
	if (strcmp(what, "unmap") == 0) {
		CHECK(cuMemAddressReserve(&p, 3 << 21, 0, 0, 0));
		CHECK(cuMemMap(p, 1 << 21, 0, 7, 0));
		CHECK(cuMemMap(p + (1 << 21), 2 << 21, 0, 8, 0));
		CHECK(cuMemUnmap(p, 3 << 21));
	}
	if (strcmp(what, "ipc") == 0) {
		CUipcMemHandle handle = {{0}};
		CHECK(cuIpcOpenMemHandle_v2(&p, handle, 1));
		CHECK(cuIpcCloseMemHandle(p));
	}
	if (strcmp(what, "ipc-first-form") == 0) {
		CUipcMemHandle handle = {{0}};
		CHECK(cuIpcOpenMemHandle(&p, handle, 1));
		CHECK(cuIpcCloseMemHandle(p));
	}
	if (strcmp(what, "ipc-twice") == 0) { /* the driver counts: the first close leaves the memory */
		CUipcMemHandle handle = {{0}};
		CHECK(cuIpcOpenMemHandle_v2(&p, handle, 1));
		CHECK(cuIpcOpenMemHandle_v2(&q, handle, 1));
		if (p != q)
			return 5;
		CHECK(cuIpcCloseMemHandle(p));
		alloc(14);
		CHECK(cuIpcCloseMemHandle(p));
	}
	if (strcmp(what, "context") == 0) {
		CUcontext ctx;
		p = alloc(100);
		CHECK(cuCtxGetCurrent(&ctx));
		CHECK(cuCtxDestroy(ctx));
	}
	if (strcmp(what, "images") == 0) {
		CUmodule m;
		CUlibrary l;
		const char *path = argv[2];
		char text[] = "text", same[] = "text"; /* not in the program's image but on a thread's stack */
		memcpy(elf.bytes, "\x7f"
				  "ELF",
		       4);
		set(0x28, 100, 8);  /* e_shoff */
		set(0x3a, 64, 2);   /* e_shentsize */
		set(0x3c, 3, 2);    /* e_shnum: the section headers end at 292 */
		set(0x20, 0x40, 8); /* e_phoff */
		CHECK(cuModuleLoadData(&m, text));
		CHECK(cuModuleLoadData(&m, same));
		CHECK(cuModuleLoadData(&m, "text of the program"));
		CHECK(cuModuleLoadFatBinary(&m, &fatbin));
		CHECK(cuLibraryLoadData(&l, &wrapper, NULL, NULL, 0, NULL, NULL, 0));
		CHECK(cuModuleLoadData(&m, &elf));
		CHECK(cuModuleLoad(&m, path));
	}
	return 0;
}
