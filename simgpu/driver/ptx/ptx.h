/*
 * ptx.h: parse PTX text and run its kernels on the host.
 *
 * In:  PTX text of the project's own kernels (PTX ISA 7.x/8.x as clang and nvcc print it for sm_80 and later).
 * Out: kernels with their parameter layouts, and the effects of a launch on memory.
 * Fails: parse errors name line and construct; a launch stops at the first invalid access or unsupported instruction and
 *        describes it in struct ptx_fault. The interpreter does not use the driver API, streams or graphs.
 *
 * Device addresses are host addresses: a global access is a plain host access after a range check against `find`.
 */
#ifndef PTX_H
#define PTX_H

#include <stddef.h>
#include <stdint.h>

struct ptx_module;
struct ptx_kernel;

/* Live device memory that contains addr, or a range with size 0. The interpreter caches answers during one launch. */
struct ptx_range { uint64_t base, size; };
#define PTX_MOST_DEVICES 8
struct ptx_memory {
	struct ptx_range (*find)(void *ctx, uint64_t addr);
	void *ctx;
	/* The host addresses that a multicast address stands for; 0: none. NULL: there are no such addresses. */
	size_t (*find_all)(void *ctx, uint64_t addr, uint64_t bytes, uint8_t *hosts[PTX_MOST_DEVICES]);
};

struct ptx_param { uint32_t offset, size, align; };

/* A `.global`/`.const` variable of the module: storage is provided by the caller through ptx_bind before any launch. */
struct ptx_global {
	const char *name;
	uint64_t size;
	uint32_t align;
	int is_const;
	const void *init; /* NULL: zero */
};

/* Parses a module. Returns NULL and a message in err ("line 12: unknown opcode foo.b32") on failure. */
struct ptx_module *ptx_parse(const char *text, size_t len, char *err, size_t err_cap);
/* The same for machine code (cubin.c): a launch of such a kernel has no effect. */
struct ptx_module *cubin_parse(const void *image, size_t len, char *err, size_t err_cap);
void ptx_free(struct ptx_module *m);

size_t ptx_kernel_count(const struct ptx_module *m);
struct ptx_kernel *ptx_kernel_at(const struct ptx_module *m, size_t i); /* in the order of the text */
const char *ptx_kernel_name(const struct ptx_kernel *k);
size_t ptx_kernel_params(const struct ptx_kernel *k, const struct ptx_param **out);
uint32_t ptx_kernel_param_bytes(const struct ptx_kernel *k);
uint32_t ptx_kernel_shared_bytes(const struct ptx_kernel *k); /* static */
uint32_t ptx_kernel_max_threads(const struct ptx_kernel *k);  /* .maxntid product, or 1024 */
uint32_t ptx_kernel_local_bytes(const struct ptx_kernel *k);

size_t ptx_global_count(const struct ptx_module *m);
const struct ptx_global *ptx_global_at(const struct ptx_module *m, size_t i);
/* Tells the module where global i lives; initialisers (with addresses of other globals resolved) are the caller's to copy
 * with ptx_init_global once all globals are bound. */
void ptx_bind(struct ptx_module *m, size_t i, uint64_t addr);
void ptx_init_global(const struct ptx_module *m, size_t i, void *host);

struct ptx_fault {
	enum { PTX_OK = 0, PTX_ILLEGAL_ADDRESS, PTX_MISALIGNED, PTX_UNSUPPORTED, PTX_DEADLOCK, PTX_TRAP } kind;
	char text[256]; /* "ld.global.f32 at line 88: address 0x... is in no live allocation" */
	uint32_t block[3], thread[3];
	uint64_t addr;
};

/* Runs the kernel over the whole grid. params holds ptx_kernel_param_bytes bytes. Returns 0, or -1 with *fault filled;
 * writes before the fault stay, as on a device. */
int ptx_launch(const struct ptx_kernel *k, const uint32_t grid[3], const uint32_t block[3], uint32_t dynamic_shared,
               const void *params, const struct ptx_memory *mem, struct ptx_fault *fault);

/* Decides in which order warps run between barriers, with the number of the launch. */
extern uint64_t ptx_order_seed;

/* Instructions interpreted by this process so far, counted per lane. For benchmarks. */
uint64_t ptx_instructions(void);

#endif
