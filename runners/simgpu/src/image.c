/*
 * image.c: from what a program loads to PTX text.
 *
 * In: PTX text, or a fat binary whose entries hold uncompressed PTX. Out: the text and its parse. Fails:
 * NO_BINARY_FOR_GPU for machine code and for PTX of a newer architecture (this device has no machine code), NOT_SUPPORTED
 * for compressed entries, INVALID_PTX with the parser's message in the error log and the caller's JIT log.
 */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243b1u
#define CONTAINER_MAGIC 0xba55ed50u
#define ENTRY_PTX 1
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u

#define CU_JIT_ERROR_LOG_BUFFER 5
#define CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES 6

struct wrapper { uint32_t magic, version; const void *data; const void *more; };
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

static CUresult container_text(struct call *c, const unsigned char *p, const char **text, size_t *len)
{
	struct container head;
	memcpy(&head, p, sizeof(head));
	uint32_t best = 0, cc = (uint32_t)(config_get()->cc_major * 10 + config_get()->cc_minor);
	bool compressed = false;
	*text = NULL;
	for (uint64_t at = 0; at + sizeof(struct entry) <= head.size;) {
		const unsigned char *q = p + head.header_size + at;
		struct entry e;
		memcpy(&e, q, sizeof(e));
		if (e.header_size < sizeof(e) || e.header_size > head.size - at || e.padded_size > head.size - at - e.header_size)
			return CUDA_ERROR_INVALID_IMAGE;
		if (e.kind == ENTRY_PTX && e.arch <= cc && e.arch >= best) {
			if (e.flags & (FLAG_LZ4 | FLAG_ZSTD)) {
				compressed = true;
			} else {
				best = e.arch;
				*text = (const char *)q + e.header_size;
				*len = strnlen(*text, e.padded_size);
			}
		}
		at += e.header_size + e.padded_size;
	}
	if (*text)
		return CUDA_SUCCESS;
	if (compressed)
		return call_unsupported_part(c, "compressed PTX in a fat binary");
	error_log("%s: the fat binary has no PTX for compute capability %u.%u", c->name, cc / 10, cc % 10);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult image_text(struct call *c, const void *image, const char **text, size_t *len)
{
	uint32_t magic;
	memcpy(&magic, image, sizeof(magic));
	if (magic == WRAPPER_MAGIC) {
		struct wrapper w;
		memcpy(&w, image, sizeof(w));
		if (w.version != 1)
			return call_unsupported_part(c, "fat binaries that need linking");
		image = w.data;
		memcpy(&magic, image, sizeof(magic));
	}
	if (magic == CONTAINER_MAGIC)
		return container_text(c, image, text, len);
	if (memcmp(image, "\177ELF", 4) == 0) {
		error_log("%s: the image is machine code, and this device runs PTX only", c->name);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	*text = image;
	*len = strlen(image);
	return CUDA_SUCCESS;
}

CUresult image_from_file(struct call *c, const char *path, char **data)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		error_log("%s: open %s: %s", c->name, path, strerror(errno));
		return CUDA_ERROR_FILE_NOT_FOUND;
	}
	char *buf = NULL;
	size_t len = 0, cap = 0, n;
	do {
		buf = grow(buf, &cap, len + 65537, 1);
		n = fread(buf + len, 1, 65536, f);
		len += n;
	} while (n);
	bool bad = ferror(f);
	fclose(f);
	buf[len] = 0;
	if (bad || len < 4) {
		free(buf);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	*data = buf;
	return CUDA_SUCCESS;
}

/* ".target sm_80" above the device's compute capability cannot be compiled for it. */
static bool target_too_new(const char *text, size_t len)
{
	static const char key[] = ".target";
	const char *p = memmem(text, len, key, sizeof(key) - 1);
	int arch;
	if (!p)
		return false;
	char line[64] = {0};
	size_t n = len - (size_t)(p - text);
	memcpy(line, p, n < sizeof(line) - 1 ? n : sizeof(line) - 1);
	return sscanf(line, ".target sm_%d", &arch) == 1 && arch > config_get()->cc_major * 10 + config_get()->cc_minor;
}

static void jit_log(int nopt, const CUjit_option *opt, void *const *val, const char *text)
{
	char *buf = NULL;
	size_t size = 0;
	for (int i = 0; i < nopt; i++) {
		if (opt[i] == CU_JIT_ERROR_LOG_BUFFER)
			buf = val[i];
		else if (opt[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			size = (size_t)(uintptr_t)val[i] & 0xffffffffu;
	}
	if (buf && size)
		snprintf(buf, size, "%s", text);
}

CUresult image_parse(const char *text, size_t len, int nopt, const CUjit_option *opt, void *const *val, struct ptx_module **out)
{
	char err[512] = "";
	if (target_too_new(text, len)) {
		error_log("load PTX: its .target is newer than the device");
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	*out = ptx_parse(text, len, err, sizeof(err));
	if (*out)
		return CUDA_SUCCESS;
	error_log("load PTX: %s", err);
	jit_log(nopt, opt, val, err);
	return CUDA_ERROR_INVALID_PTX;
}
