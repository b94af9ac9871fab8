/*
 * fatbin.c: which entry of a fat binary this device loads, and its bytes.
 *
 * In: a container and, if it is known, the size of the room around it. Out: an image: machine code if it may be loaded (config.c), as a real driver prefers it, else PTX.
 * Fails: INVALID_IMAGE for a container that contradicts itself, NOT_SUPPORTED for compression that cannot be undone,
 * NO_BINARY_FOR_GPU if no entry suits the device.
 *
 * LZ4 is decoded here. zstd, which newer tools write, is left to the system's libzstd if there is one: a decoder of
 * our own would be longer than everything else that machine code needs.
 */
#include "modules/modules.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_PTX 1
#define ENTRY_ELF 2
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u
#define MAX_IMAGE ((uint64_t)1 << 31)

struct container { uint32_t magic; uint16_t version, header_size; uint64_t size; };
struct entry {
	uint16_t kind, version;
	uint32_t header_size;
	uint64_t padded_size;
	uint32_t compressed_size, options_offset;
	uint16_t minor, major;
	uint32_t arch, name_offset, name_size;
	uint64_t flags, zero, uncompressed_size;
};
_Static_assert(sizeof(struct entry) == 64, "layout of a fat binary's entry");

static bool zstd_decode(const void *src, size_t src_len, void *dst, size_t dst_len)
{
	static size_t (*decompress)(void *, size_t, const void *, size_t);
	void *lib = decompress ? NULL : dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
	if (lib)
		*(void **)&decompress = dlsym(lib, "ZSTD_decompress");
	return decompress && decompress(dst, dst_len, src, src_len) == dst_len;
}

static CUresult payload(struct call *c, const struct entry *e, const unsigned char *data, struct image *out)
{
	bool lz4 = e->flags & FLAG_LZ4, zstd = e->flags & FLAG_ZSTD;
	if (!lz4 && !zstd) {
		out->data = (const char *)data;
		out->len = e->kind == ENTRY_PTX ? strnlen(out->data, e->padded_size) : e->padded_size;
		return CUDA_SUCCESS;
	}
	if (!e->uncompressed_size || e->uncompressed_size > MAX_IMAGE || e->compressed_size > e->padded_size)
		return CUDA_ERROR_INVALID_IMAGE;
	out->owned = xalloc(e->uncompressed_size + 1);
	out->data = out->owned;
	out->len = e->uncompressed_size;
	if (lz4 ? lz4_decode(data, e->compressed_size, out->owned, out->len) : zstd_decode(data, e->compressed_size, out->owned, out->len))
		return CUDA_SUCCESS;
	image_drop(out);
	if (lz4) {
		error_log("%s: the fat binary holds a damaged LZ4 block", c->name);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	return call_unsupported_part(c, "zstd in a fat binary without a libzstd.so.1 that decodes it");
}

/* Machine code runs on devices of its own major version that are not older. */
static bool suits(const struct entry *e, uint32_t cc)
{
	if (e->kind == ENTRY_ELF)
		return config_get()->machine_code && e->arch / 10 == cc / 10 && e->arch <= cc;
	return e->kind == ENTRY_PTX && e->arch <= cc;
}

CUresult fatbin_pick(struct call *c, const void *image, size_t size, struct image *out)
{
	const unsigned char *p = image, *data = NULL;
	struct container head;
	if (size < sizeof(head))
		return CUDA_ERROR_INVALID_IMAGE;
	memcpy(&head, p, sizeof(head));
	if (head.header_size < sizeof(head) || head.header_size > size || head.size > size - head.header_size)
		return CUDA_ERROR_INVALID_IMAGE;
	struct entry best = {0};
	uint32_t cc = (uint32_t)(config_get()->cc_major * 10 + config_get()->cc_minor);
	for (uint64_t at = 0; sizeof(struct entry) <= head.size - at;) {
		const unsigned char *q = p + head.header_size + at;
		struct entry e;
		memcpy(&e, q, sizeof(e));
		if (e.header_size < sizeof(e) || e.header_size > head.size - at || e.padded_size > head.size - at - e.header_size)
			return CUDA_ERROR_INVALID_IMAGE;
		if (suits(&e, cc) && (!data || e.kind > best.kind || (e.kind == best.kind && e.arch >= best.arch))) {
			best = e;
			data = q + e.header_size;
		}
		at += e.header_size + e.padded_size;
	}
	if (!data) {
		error_log("%s: the fat binary has nothing that a device of compute capability %u.%u can load%s", c->name, cc / 10,
		          cc % 10, config_get()->machine_code ? "" : " (machine code is refused: SIMGPU_MACHINE_CODE)");
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	if (best.kind == ENTRY_PTX && best.flags & (FLAG_LZ4 | FLAG_ZSTD))
		return call_unsupported_part(c, "compressed PTX in a fat binary");
	return payload(c, &best, data, out);
}
