/*
 * image.c: from the bytes that a program loads to a parsed module.
 *
 * In: PTX text, a cubin, or a fat binary (fatbin.c); of a file, its size, which an image in memory does not have. Out: the text or machine code, and its parse. Fails:
 * NO_BINARY_FOR_GPU for PTX of a newer architecture; for machine code and for PTX that may not be interpreted (origin.c) unless
 * the environment admits them (their kernels have no effect here); INVALID_PTX with the parser's message in the error log and the caller's JIT log.
 */
#include "modules/modules.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243b1u
#define CONTAINER_MAGIC 0xba55ed50u

#define CU_JIT_ERROR_LOG_BUFFER 5
#define CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES 6

struct wrapper { uint32_t magic, version; const void *data; const void *more; };

void image_drop(struct image *image)
{
	free(image->owned);
	*image = (struct image){0};
}

/* A cubin in memory ends where its section or program headers end, whichever is later: its length is not given. */
static size_t cubin_size(const void *image)
{
	Elf64_Ehdr h;
	memcpy(&h, image, sizeof(h));
	uint64_t sections = h.e_shoff + (uint64_t)h.e_shentsize * h.e_shnum, programs = h.e_phoff + (uint64_t)h.e_phentsize * h.e_phnum;
	return sections > programs ? sections : programs;
}

/* PTX that may not be interpreted is treated as machine code is. */
static CUresult admit(struct call *c, bool packed, struct image *out)
{
	bool text = out->len < SELFMAG || memcmp(out->data, ELFMAG, SELFMAG) != 0;
	const char *why = text ? origin_refuses(out->data, out->len, packed) : NULL;
	out->idle = why != NULL;
	if (!why || config_get()->machine_code)
		return CUDA_SUCCESS;
	error_log("%s: this PTX is not interpreted: %s (SIMGPU_MACHINE_CODE)", c->name, why);
	image_drop(out);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult image_find(struct call *c, const void *image, size_t size, struct image *out)
{
	*out = (struct image){0};
	uint32_t magic;
	memcpy(&magic, image, sizeof(magic));
	if (magic == WRAPPER_MAGIC) {
		struct wrapper w;
		if (size != IMAGE_SIZE_UNKNOWN) /* it holds an address, which leads nowhere in a file */
			return CUDA_ERROR_INVALID_IMAGE;
		memcpy(&w, image, sizeof(w));
		if (w.version != 1)
			return call_unsupported_part(c, "fat binaries that need linking");
		image = w.data;
		memcpy(&magic, image, sizeof(magic));
	}
	if (magic == CONTAINER_MAGIC) {
		CUresult r = fatbin_pick(c, image, size, out);
		return r ? r : admit(c, true, out);
	}
	bool machine_code = memcmp(image, ELFMAG, SELFMAG) == 0;
	if (machine_code && !config_get()->machine_code) {
		error_log("%s: the image is machine code, and this device runs PTX only (SIMGPU_MACHINE_CODE)", c->name);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	if (machine_code && (size < sizeof(Elf64_Ehdr) || cubin_size(image) > size))
		return CUDA_ERROR_INVALID_IMAGE;
	out->data = image;
	out->len = machine_code ? cubin_size(image) : strlen(image);
	return admit(c, false, out);
}

CUresult image_from_file(struct call *c, const char *path, char **data, size_t *size)
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
	char *exact = realloc(buf, len + 1); /* so that a sanitizer sees a read beyond the file */
	*data = exact ? exact : buf;
	*size = len;
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

uint64_t image_hash(const char *text, size_t len)
{
	uint64_t h = 0xcbf29ce484222325;
	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * 0x100000001b3;
	return h;
}

CUresult image_parse(const struct image *image, int nopt, const CUjit_option *opt, void *const *val, struct ptx_module **out)
{
	const char *text = image->data;
	size_t len = image->len;
	char err[512] = "";
	if (len >= SELFMAG && memcmp(text, ELFMAG, SELFMAG) == 0) {
		*out = cubin_parse(text, len, err, sizeof(err));
		if (!*out)
			error_log("load machine code: %s", err);
		return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
	}
	if (target_too_new(text, len)) {
		error_log("load PTX: its .target is newer than the device");
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	*out = ptx_parse(text, len, err, sizeof(err));
	if (*out && image->idle)
		origin_idle(*out);
	if (*out)
		return CUDA_SUCCESS;
	error_log("load PTX: %s", err);
	jit_log(nopt, opt, val, err);
	return CUDA_ERROR_INVALID_PTX;
}
