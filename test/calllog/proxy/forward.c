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
static __typeof__(&dlsym) libc_dlsym;

/* The interposer's dlsym would answer with its hooks, which lead back here. So find the C library's own, by its version. */
static void find_dlsym(void)
{
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
	static const char *const places[] = {"libc.so.6", "libdl.so.2"}; /* before glibc 2.34 it was in the second */
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (size_t j = 0; j < sizeof(versions) / sizeof(versions[0]) && !libc_dlsym; j++)
			libc_dlsym = (__typeof__(&dlsym))dlvsym(dlopen(places[i], RTLD_NOW), "dlsym", versions[j]);
	if (!libc_dlsym)
		libc_dlsym = dlsym;
}

void *proxy_real(const char *symbol) { return libc_dlsym(driver, symbol); }

static CUresult absent(void) { return CUDA_ERROR_NOT_FOUND; }

enum {
#define SYMBOL(name) ORDER_##name,
#include "symbols_gen.h"
#undef SYMBOL
	SYMBOLS
};

/* The real entry points and our own, each pair at one index. */
static void *theirs[SYMBOLS], *ours[SYMBOLS];

void *proxy_own(void *real)
{
	for (int i = 0; real && i < SYMBOLS; i++)
		if (theirs[i] == real)
			return ours[i];
	return real;
}

static void *find_own(const char *symbol)
{
	static void *self;
	Dl_info info;
	if (!self && dladdr((void *)proxy_real, &info))
		self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
	return libc_dlsym(self, symbol);
}

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
	find_dlsym();
#define SYMBOL(name) \
	theirs[ORDER_##name] = calllog_target_##name = proxy_real(#name); \
	ours[ORDER_##name] = find_own(#name); \
	if (!calllog_target_##name) \
		calllog_target_##name = (void *)absent;
#include "symbols_gen.h"
#undef SYMBOL
}
