/* forward.c: every entry point as a jump to the real driver. Weak: counted.c defines the counted ones itself. */
#include "proxy.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
#define JUMP(name) "jmp *calllog_target_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name) "adrp x16, calllog_target_" #name "\nldr x16, [x16, :lo12:calllog_target_" #name "]\nbr x16\n"
#else
#error "no jump for this processor"
#endif

#define SYMBOL(name) \
	__attribute__((visibility("hidden"))) void *calllog_target_##name; \
	__asm__(".text\n.weak " #name "\n.type " #name ", %function\n" #name ":\n" JUMP(name));
#include "symbols_gen.h"
#undef SYMBOL

static void *driver;

void *proxy_real(const char *symbol) { return dlsym(driver, symbol); }

static CUresult absent(void) { return CUDA_ERROR_NOT_FOUND; }

/* A jump needs its target before the first call, from whatever thread. */
__attribute__((constructor)) static void open_driver(void)
{
	const char *given = getenv("CALLLOG_DRIVER");
	const char *places[] = {given, "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
	                        "/usr/lib64/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !driver; i++)
		if (places[i])
			driver = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
	if (!driver) {
		fprintf(stderr, "calllog: open the real driver: %s (set CALLLOG_DRIVER)\n", dlerror());
		exit(1);
	}
#define SYMBOL(name) \
	calllog_target_##name = dlsym(driver, #name); \
	if (!calllog_target_##name) \
		calllog_target_##name = (void *)absent;
#include "symbols_gen.h"
#undef SYMBOL
}
