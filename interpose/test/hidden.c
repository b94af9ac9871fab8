/*
 * hidden.c: loads one module on a path without a hook, as vendor libraries do through private tables: it takes the function's
 * address from libcuda's own symbol table in memory. The module's kernel is captured together with one of a library. With an
 * argument, the function of the library's kernel is made on such a path too.
 */
#include <elf.h>
#include <link.h>

#include "common.h"

struct wanted {
	const char *name;
	void *found;
};

static int search(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct wanted *w = arg;
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;
	const uint32_t *hash = NULL;
	const ElfW(Dyn) *dyn = NULL;
	(void)size;
	if (!strstr(info->dlpi_name, "libcuda.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
		if (dyn->d_tag == DT_SYMTAB)
			symbols = (const void *)dyn->d_un.d_ptr;
		if (dyn->d_tag == DT_STRTAB)
			strings = (const void *)dyn->d_un.d_ptr;
		if (dyn->d_tag == DT_GNU_HASH)
			hash = (const void *)dyn->d_un.d_ptr;
	}
	/* The number of symbols is not stored. With common linkers, the strings follow the symbols directly. */
	if (symbols && strings && hash)
		for (const ElfW(Sym) *s = symbols + 1; (const char *)s < strings && !w->found; s++)
			if (s->st_shndx != SHN_UNDEF && strcmp(strings + s->st_name, w->name) == 0)
				w->found = (void *)(info->dlpi_addr + s->st_value);
	return 0;
}

static void *behind_the_hooks(const char *name)
{
	struct wanted w = {name, NULL};
	dl_iterate_phdr(search, &w);
	if (!w.found) {
		fprintf(stderr, "no %s in libcuda\n", name);
		exit(4);
	}
	return w.found;
}

int main(int argc, char **argv)
{
	CUmodule module;
	CUlibrary library;
	CUkernel kernel;
	CUfunction hidden, of_kernel;
	CUstream s;
	CUgraph graph;
	CUdeviceptr p;
	__typeof__(&cuKernelGetFunction) get = argc > 1 ? (__typeof__(&cuKernelGetFunction))behind_the_hooks("cuKernelGetFunction") : cuKernelGetFunction;
	(void)argv;
	start();
	CHECK(cuLibraryLoadData(&library, module_ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetKernel(&kernel, library, "add_one"));
	CHECK(get(&of_kernel, kernel));
	CHECK(((__typeof__(&cuModuleLoadData))behind_the_hooks("cuModuleLoadData"))(&module, module_ptx));
	CHECK(((__typeof__(&cuModuleGetFunction))behind_the_hooks("cuModuleGetFunction"))(&hidden, module, "add_one"));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	p = alloc(4096);
	CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	launch_add_one(hidden, s, p, 1);
	launch_add_one(of_kernel, s, p, 2);
	launch_add_one((CUfunction)kernel, s, p, 3);
	CHECK(cuStreamEndCapture(s, &graph));
	PRINT("module", (uintptr_t)module);
	return 0;
}
