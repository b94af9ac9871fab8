/* driver.c: see driver.h. Calls to dl* are made without our lock: the loader has a lock of its own, and hooks called from the
 * loader take ours after it. */
#include "driver.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core.h"
#include "libc.h"

/* A sanitizer's runtime looks up symbols before it is initialized. */
#define NO_SANITIZER __attribute__((no_sanitize("address", "undefined")))

static const char *const names[FN_COUNT] = {
#define X(name) [FN_##name] = #name,
	MEDUSA_HOOKS(X) MEDUSA_USES(X)
#undef X
};

static void *const hooks[FN_HOOKS] = {
#define X(name) [FN_##name] = (void *)name,
	MEDUSA_HOOKS(X)
#undef X
};

_Atomic(void *) driver_found[FN_COUNT];

/* A bit for each address in driver_found, by a hash: engines ask for hundreds of functions that have no hook. */
enum { FOUND_WORDS = 16 };
static _Atomic uint64_t found_bits[FOUND_WORDS];

static unsigned found_bit(const void *p) { return (unsigned)((uintptr_t)p * UINT64_C(0x9e3779b97f4a7c15) >> 54); }

NO_SANITIZER static void note_found(int fn, void *p)
{
	unsigned bit = found_bit(p);
	atomic_fetch_or(&found_bits[bit / 64], UINT64_C(1) << bit % 64);
	atomic_store(&driver_found[fn], p);
}

/* Read by the assembly below; set before its first use. */
__attribute__((visibility("hidden"))) void *medusa_real_dlsym;
#define real_dlsym ((void *(*)(void *, const char *))__atomic_load_n(&medusa_real_dlsym, __ATOMIC_ACQUIRE))

NO_SANITIZER static void find_real_dlsym(void)
{
	if (!real_dlsym)
		__atomic_store_n(&medusa_real_dlsym, libc_symbol("dlsym"), __ATOMIC_RELEASE);
}

static CUresult not_found(void) { return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND; }

/* Only a function of the driver itself may be the real function of a hook: a function of another library could lead back to the
 * hook. */
static bool in_driver(void *p, Dl_info *info)
{
	const char *base;
	if (!dladdr(p, info) || !info->dli_fname)
		return false;
	base = strrchr(info->dli_fname, '/');
	return strncmp(base ? base + 1 : info->dli_fname, "libcuda.so", 10) == 0;
}

static void *driver_handle(void)
{
	static _Atomic(void *) handle;
	void *h = atomic_load(&handle);
	Dl_info info;
	if (h)
		return h;
	/* A driver that was opened by a path may not be found by its soname. */
	for (int i = 0; i < FN_COUNT && !h; i++) {
		void *p = atomic_load(&driver_found[i]);
		if (p && in_driver(p, &info))
			h = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	}
	if (!h)
		h = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	if (h)
		atomic_store(&handle, h);
	return h;
}

void *driver_find(enum driver_fn fn)
{
	void *h, *p = NULL;
	find_real_dlsym();
	h = driver_handle();
	if (h && real_dlsym)
		p = real_dlsym(h, names[fn]);
	if (!p)
		return (void *)not_found;
	note_found(fn, p);
	return p;
}

void *driver_hook_of(void *p)
{
	static _Atomic bool looked;
	unsigned bit = found_bit(p);
	if (!atomic_load(&looked)) {
		for (int i = 0; i < FN_HOOKS; i++)
			driver_real((enum driver_fn)i);
		atomic_store(&looked, driver_handle() != NULL); /* a loaded driver gets no further functions */
	}
	if (!(atomic_load(&found_bits[bit / 64]) >> bit % 64 & 1))
		return p;
	for (int i = 0; i < FN_HOOKS; i++)
		if (atomic_load(&driver_found[i]) == p)
			return hooks[i];
	return p;
}

NO_SANITIZER static int hook_index(const char *name)
{
	if (!name || name[0] != 'c' || name[1] != 'u' || name[2] < 'A' || name[2] > 'Z')
		return -1;
	for (int i = 0; i < FN_HOOKS; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	return -1;
}

/*
 * dlsym. glibc uses the return address to find the caller of RTLD_NEXT or RTLD_DEFAULT. A lookup that is not answered here must
 * therefore be passed on by a jump, not by a call: the assembly returns `result` if that is set, and otherwise jumps to the real
 * dlsym with `handle`.
 */
struct dlsym_answer {
	void *result;
	void *handle;
};

__attribute__((visibility("hidden"), used)) NO_SANITIZER struct dlsym_answer medusa_dlsym(void *handle, const char *name)
{
	struct dlsym_answer pass = {NULL, handle};
	int i;
	void *p = NULL;
	Dl_info info;
	find_real_dlsym();
	if (handle == RTLD_NEXT || core_inside || (i = hook_index(name)) < 0 || !real_dlsym)
		return pass;
	if (handle != RTLD_DEFAULT)
		p = real_dlsym(handle, name);
	if (handle == RTLD_DEFAULT || p == hooks[i]) {
		/* The search found, or would find, our own export. The process must see the symbol of the next library instead. */
		p = real_dlsym(RTLD_NEXT, name);
		if (!p || core_mode() == MODE_INERT) {
			pass.result = p;
			/* libc has no such symbol either. Asking it returns NULL and sets the right dlerror. */
			pass.handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
			return pass;
		}
	}
	if (!p || !in_driver(p, &info) || core_mode() == MODE_INERT)
		return pass;
	note_found(i, p);
	return (struct dlsym_answer){hooks[i], NULL};
}

/*
 * dlvsym finds the driver's own function if the driver gives its symbols versions. Calls of it pass the hooks by, which a
 * recording has to say. It is passed on by a jump, as above.
 */
__attribute__((visibility("hidden"))) void *medusa_real_dlvsym;
#define real_dlvsym ((void *(*)(void *, const char *, const char *))__atomic_load_n(&medusa_real_dlvsym, __ATOMIC_ACQUIRE))

__attribute__((visibility("hidden"), used)) NO_SANITIZER void medusa_dlvsym(void *handle, const char *name, const char *version)
{
	Dl_info info;
	void *p;
	if (!real_dlvsym)
		__atomic_store_n(&medusa_real_dlvsym, libc_symbol("dlvsym"), __ATOMIC_RELEASE);
	if (core_inside || hook_index(name) < 0 || core_mode() != MODE_RECORD || !driver_handle())
		return;
	/* The next one behind the caller is the driver's, if any: the hooks have no versions. */
	p = real_dlvsym(handle == RTLD_NEXT ? driver_handle() : handle, name, version);
	/* mutant: names of the driver found by dlvsym */
	if (p && in_driver(p, &info))
		core_fault(name, "dlvsym found it in the driver: its calls are not seen");
}

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlvsym\n"
	".type dlvsym, @function\n"
	"dlvsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rdi\n	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n	.cfi_adjust_cfa_offset 8\n"
	"	push %rdx\n	.cfi_adjust_cfa_offset 8\n"
	"	call medusa_dlvsym\n"
	"	pop %rdx\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n	.cfi_adjust_cfa_offset -8\n"
	"	mov medusa_real_dlvsym(%rip), %rax\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	".size dlvsym, .-dlvsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlvsym\n"
	".type dlvsym, %function\n"
	"dlvsym:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, #-48]!\n	.cfi_adjust_cfa_offset 48\n"
	"	stp x0, x1, [sp, #16]\n"
	"	str x2, [sp, #32]\n"
	"	bl medusa_dlvsym\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldr x2, [sp, #32]\n"
	"	ldp x29, x30, [sp], #48\n	.cfi_adjust_cfa_offset -48\n"
	"	adrp x16, medusa_real_dlvsym\n"
	"	ldr x16, [x16, :lo12:medusa_real_dlvsym]\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size dlvsym, .-dlvsym\n");
#endif

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rdi\n	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n	.cfi_adjust_cfa_offset 8\n"
	"	sub $8, %rsp\n	.cfi_adjust_cfa_offset 8\n"
	"	call medusa_dlsym\n"
	"	add $8, %rsp\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n	.cfi_adjust_cfa_offset -8\n"
	"	test %rax, %rax\n"
	"	jne 1f\n"
	"	mov %rdx, %rdi\n"
	"	mov medusa_real_dlsym(%rip), %rax\n"
	"	jmp *%rax\n"
	"1:	ret\n"
	"	.cfi_endproc\n"
	".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, #-32]!\n	.cfi_adjust_cfa_offset 32\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl medusa_dlsym\n"
	"	mov x16, x0\n"
	"	mov x17, x1\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n	.cfi_adjust_cfa_offset -32\n"
	"	cbnz x16, 1f\n"
	"	mov x0, x17\n"
	"	adrp x16, medusa_real_dlsym\n"
	"	ldr x16, [x16, :lo12:medusa_real_dlsym]\n"
	"	br x16\n"
	"1:	mov x0, x16\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size dlsym, .-dlsym\n");
#else
#error "dlsym needs a tail-jumping wrapper for this machine"
#endif

/*
 * cuGetProcAddress. The driver decides which version and which stream flavour a name means. Its answer is then replaced by
 * address and never by name, because names and versions do not map one to one.
 */
static CUresult answered(CUresult rc, void **fn)
{
	if (rc == CUDA_SUCCESS && fn && *fn && core_mode() != MODE_INERT)
		*fn = driver_hook_of(*fn);
	return rc;
}

CUresult cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags)
{
	return answered(REAL(cuGetProcAddress)(symbol, fn, version, flags), fn);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, CUdriverProcAddressQueryResult *status)
{
	return answered(REAL(cuGetProcAddress_v2)(symbol, fn, version, flags, status), fn);
}

CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **fn, int version, uint64_t flags, CUdriverProcAddressQueryResult *status)
{
	return answered(REAL(cuGetProcAddress_v2_ptsz)(symbol, fn, version, flags, status), fn);
}
