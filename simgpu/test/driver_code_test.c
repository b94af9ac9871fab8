/*
 * driver_code_test.c: machine code: cubins and compressed fat binaries, refused, damaged and loaded.
 *
 * The cubin is made here, section by section, with the few facts that the driver reads: one kernel of three parameters, one
 * device function, one variable with contents and one without.
 */
#include "driver_test.h"

#include <elf.h>
#include <stddef.h>

enum { TEXT = 1, INFO, SHARED, RESERVED, INIT, BSS, SYMTAB, STRTAB, SECTIONS };

static const char strings[] = "\0kernel\0helper\0table\0scratch\0.text.kernel\0.nv.info.kernel\0.nv.shared.kernel\0"
                              ".nv.shared.reserved.0\0"
                              ".nv.global.init\0.nv.global\0.symtab\0.strtab";

static unsigned name_at(const char *name)
{
	for (const char *p = strings + 1; p < strings + sizeof(strings); p += strlen(p) + 1)
		if (strcmp(p, name) == 0)
			return (unsigned)(p - strings);
	CHECK(!"a string of the table");
	return 0;
}

/* Format, attribute, size, then index, ordinal and offset, and the size above bit 18. */
#define KPARAM(ordinal, offset, size) \
	0x04, 0x17, 12, 0, 0, 0, 0, 0, ordinal, 0, offset, 0, 0, 0xf0, (unsigned char)(((size) << 2 | 1) & 0xff), 0
static const unsigned char info[] = {
	KPARAM(2, 16, 5), KPARAM(1, 8, 8), KPARAM(0, 0, 8),
	0x03, 0x19, 21, 0,
	0x04, 0x05, 12, 0, 128, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,
};

struct cubin {
	Elf64_Ehdr head;
	Elf64_Shdr sections[SECTIONS];
	Elf64_Sym symbols[5];
	unsigned char text[16], info[sizeof(info)], init[8];
	char strings[sizeof(strings)];
};

static void section(struct cubin *c, int i, const char *name, unsigned type, size_t offset, size_t size, unsigned of)
{
	c->sections[i] = (Elf64_Shdr){.sh_name = name_at(name), .sh_type = type, .sh_offset = offset, .sh_size = size, .sh_info = of};
}

static struct cubin make(void)
{
	struct cubin c = {.head = {.e_machine = 190, .e_version = 0x80, .e_shoff = offsetof(struct cubin, sections),
	                           .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = SECTIONS, .e_shstrndx = STRTAB}};
	memcpy(c.head.e_ident, ELFMAG, SELFMAG);
	c.head.e_ident[EI_CLASS] = ELFCLASS64;
	c.head.e_phoff = sizeof(c); /* the end of the file: the section headers do not come last here */
	memcpy(c.info, info, sizeof(info));
	memcpy(c.init, "contents", 8);
	memcpy(c.strings, strings, sizeof(strings));
	section(&c, TEXT, ".text.kernel", SHT_PROGBITS, offsetof(struct cubin, text), sizeof(c.text), 0);
	section(&c, INFO, ".nv.info.kernel", 0x70000000, offsetof(struct cubin, info), sizeof(c.info), TEXT);
	section(&c, SHARED, ".nv.shared.kernel", SHT_NOBITS, 0, 48 + 1024, TEXT);
	section(&c, RESERVED, ".nv.shared.reserved.0", SHT_NOBITS, 0, 0, 0);
	section(&c, INIT, ".nv.global.init", SHT_PROGBITS, offsetof(struct cubin, init), sizeof(c.init), 0);
	section(&c, BSS, ".nv.global", SHT_NOBITS, 0, 64, 0);
	section(&c, SYMTAB, ".symtab", SHT_SYMTAB, offsetof(struct cubin, symbols), sizeof(c.symbols), 0);
	section(&c, STRTAB, ".strtab", SHT_STRTAB, offsetof(struct cubin, strings), sizeof(strings), 0);
	c.sections[SYMTAB].sh_link = STRTAB;
	c.symbols[1] = (Elf64_Sym){name_at("kernel"), ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0x10, TEXT, 0, 16};
	c.symbols[2] = (Elf64_Sym){name_at("helper"), ELF64_ST_INFO(STB_WEAK, STT_FUNC), 0, TEXT, 8, 8};
	c.symbols[3] = (Elf64_Sym){name_at("table"), ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, INIT, 0, 8};
	c.symbols[4] = (Elf64_Sym){name_at("scratch"), ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), 0, BSS, 0, 64};
	return c;
}

/* A fat binary with one compressed entry. The block is literals, but for sixteen times 0xaa that it ends in as a match. */
struct fat {
	struct { uint32_t magic, version; const void *data; void *more; } wrapper;
	struct { uint32_t magic; uint16_t version, header_size; uint64_t size; } head;
	struct {
		uint16_t kind, version;
		uint32_t header_size;
		uint64_t padded_size;
		uint32_t compressed_size, options;
		uint16_t minor, major;
		uint32_t arch, name, name_size;
		uint64_t flags, zero, uncompressed_size;
	} entry;
	unsigned char block[2 * sizeof(struct cubin)];
};

static size_t compress(unsigned char *to, const void *from, size_t n)
{
	size_t at = 0, rest = n - 15;
	to[at++] = 0xf0 | 6; /* a match of 6 + 4 bytes */
	for (; rest >= 255; rest -= 255)
		to[at++] = 255;
	to[at++] = (unsigned char)rest;
	memcpy(to + at, from, n);
	at += n;
	to[at++] = 1; /* the byte before, repeated */
	to[at++] = 0;
	to[at++] = 0x60; /* six literals to end with */
	memset(to + at, 0xaa, 6);
	return at + 6;
}

static struct fat *wrap(const struct cubin *c)
{
	/* The cubin's last bytes are text that is never read: the match repeats them. */
	static struct fat f;
	unsigned char image[sizeof(*c) + 1];
	memcpy(image, c, sizeof(*c));
	image[sizeof(*c)] = 0xaa;
	f = (struct fat){.wrapper = {0x466243b1, 1, &f.head, NULL}, .head = {0xba55ed50, 1, 16, 0},
	                 .entry = {.kind = 2, .header_size = 64, .arch = 90, .flags = 0x2011}};
	f.entry.compressed_size = (uint32_t)compress(f.block, image, sizeof(image));
	f.entry.padded_size = (f.entry.compressed_size + 7u) & ~7u;
	f.entry.uncompressed_size = sizeof(image) + 10 + 6;
	f.head.size = f.entry.header_size + f.entry.padded_size;
	return &f;
}

void code_refused(void)
{
	struct cubin c = make();
	CUlibrary lib;
	CUmodule m;
	WANT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&m, &c));
	WANT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuLibraryLoadData(&lib, wrap(&c), NULL, NULL, 0, NULL, NULL, 0));
}

static void check_variables(CUmodule m)
{
	CUdeviceptr at;
	size_t size;
	char contents[8];
	OK(cuModuleGetGlobal(&at, &size, m, "table"));
	OK(cuMemcpyDtoH(contents, at, sizeof(contents)));
	CHECK(size == 8 && memcmp(contents, "contents", 8) == 0);
	OK(cuModuleGetGlobal(&at, &size, m, "scratch"));
	CHECK(size == 64);
}

static void check_kernel(CUfunction f)
{
	static const size_t want[][2] = {{0, 8}, {8, 8}, {16, 5}};
	size_t offset, size;
	int value;
	for (size_t i = 0; i < 3; i++) {
		OK(cuFuncGetParamInfo(f, i, &offset, &size));
		CHECK(offset == want[i][0] && size == want[i][1]);
	}
	WANT(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(f, 3, &offset, &size));
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
	CHECK(value == 48);
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
	CHECK(value == 128);
}

/* Launches are checked and captured, and have no effect. */
void code_runs_nothing(void)
{
	struct cubin c = make();
	CUlibrary lib;
	CUkernel kernel;
	CUfunction f;
	CUmodule m;
	unsigned count;
	OK(cuLibraryLoadData(&lib, wrap(&c), NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernelCount(&count, lib));
	CHECK(count == 1);
	WANT(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, lib, "helper"));
	OK(cuLibraryGetKernel(&kernel, lib, "kernel"));
	OK(cuKernelGetFunction(&f, kernel));
	OK(cuLibraryGetModule(&m, lib));
	check_kernel(f);
	check_variables(m);

	CUdeviceptr buf;
	uint64_t word = 7, scalar = 1;
	char five[5] = "five";
	void *params[] = {&buf, &scalar, five};
	CUstream s = new_stream();
	CUgraph g;
	CUgraphNode node;
	size_t nodes = 1;
	OK(cuMemAlloc(&buf, sizeof(word)));
	OK(cuMemcpyHtoD(buf, &word, sizeof(word)));
	OK(cuCtxSynchronize());
	WANT(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, s, params, NULL));
	OK(cuLaunchKernel(f, 1, 1, 1, 128, 1, 1, 0, s, params, NULL));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuLaunchKernel(f, 2, 1, 1, 128, 1, 1, 0, s, params, NULL));
	OK(cuStreamEndCapture(s, &g));
	OK(cuGraphGetNodes(g, &node, &nodes));
	CUDA_KERNEL_NODE_PARAMS p;
	OK(cuGraphKernelNodeGetParams(node, &p));
	CHECK(p.gridDimX == 2 && *(CUdeviceptr *)p.kernelParams[0] == buf && memcmp(p.kernelParams[2], "five", 5) == 0);
	word = 0;
	OK(cuStreamSynchronize(s));
	OK(cuMemcpyDtoH(&word, buf, sizeof(word)));
	CHECK(word == 7);
}

/* Every byte of the image is damaged once: it loads or is refused, and the process goes on. */
void code_damaged(void)
{
	unsigned loaded = 0, refused = 0;
	for (size_t i = 0; i < sizeof(struct cubin); i++)
		for (unsigned bits = 0x01; bits <= 0xff; bits = bits * 15 + 1) {
			struct cubin c = make();
			CUlibrary lib;
			((unsigned char *)&c)[i] ^= (unsigned char)bits;
			CUresult r = cuLibraryLoadData(&lib, wrap(&c), NULL, NULL, 0, NULL, NULL, 0);
			loaded += r == CUDA_SUCCESS;
			refused += r == CUDA_ERROR_INVALID_IMAGE || r == CUDA_ERROR_INVALID_PTX;
			CHECK(r == CUDA_SUCCESS || r == CUDA_ERROR_INVALID_IMAGE || r == CUDA_ERROR_INVALID_PTX);
			if (r == CUDA_SUCCESS)
				OK(cuLibraryUnload(lib));
		}
	CHECK(loaded > 100 && refused > 100);
}

/* A section without bytes in the file has none, even if it states a place: not as names, nor as strings or a kernel's .nv.info. */
void code_sections_without_bytes(void)
{
	static const int readers[] = {INFO, STRTAB};
	for (size_t i = 0; i < 2; i++)
		for (int far = 0; far < 2; far++) {
			struct cubin c = make();
			CUlibrary lib;
			unsigned count = 1;
			c.sections[readers[i]].sh_type = SHT_NOBITS;
			c.sections[readers[i]].sh_offset = far ? (uint64_t)1 << 40 : sizeof(c);
			c.sections[readers[i]].sh_size = (uint64_t)1 << 30;
			CUresult r = cuLibraryLoadData(&lib, wrap(&c), NULL, NULL, 0, NULL, NULL, 0);
			CHECK(r == CUDA_SUCCESS);
			if (r != CUDA_SUCCESS)
				continue;
			OK(cuLibraryGetKernelCount(&count, lib));
			CHECK(count == (readers[i] == INFO)); /* without strings, no kernel has a name */
			OK(cuLibraryUnload(lib));
		}
}

/* Writes the start of a fat binary or a cubin to a file of its own and loads that. */
static CUresult load_file(const void *data, size_t size)
{
	char path[] = "/tmp/code-XXXXXX";
	int fd = mkstemp(path);
	CUlibrary lib;
	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
	CUresult r = cuLibraryLoadFromFile(&lib, path, NULL, NULL, 0, NULL, NULL, 0);
	unlink(path);
	if (r == CUDA_SUCCESS)
		OK(cuLibraryUnload(lib));
	return r;
}

/* The size that a file states is compared with the file. */
void code_files_cut_off(void)
{
	struct cubin c = make();
	struct fat *f = wrap(&c);
	size_t size = sizeof(f->head) + f->head.size;
	OK(load_file(&f->head, size));
	OK(load_file(&c, sizeof(c)));
	for (size_t n = 4; n < size; n += n < 100 ? 1 : 61)
		WANT(CUDA_ERROR_INVALID_IMAGE, load_file(&f->head, n));
	for (size_t n = 4; n < sizeof(c); n += n < 100 ? 1 : 61)
		WANT(CUDA_ERROR_INVALID_IMAGE, load_file(&c, n));
	f->head.size = (uint64_t)1 << 40;
	f->entry.padded_size = ((uint64_t)1 << 40) - 64;
	f->entry.flags = 0x11; /* not compressed: the entry is the cubin itself */
	WANT(CUDA_ERROR_INVALID_IMAGE, load_file(&f->head, size));
	f->head.size = UINT64_MAX; /* with the header in front of it, less than the file */
	WANT(CUDA_ERROR_INVALID_IMAGE, load_file(&f->head, size));
	WANT(CUDA_ERROR_INVALID_IMAGE, load_file(&f->wrapper, sizeof(f->wrapper) + size)); /* it holds an address */
}

/* The same for the compressed block. */
void code_damaged_block(void)
{
	struct cubin c = make();
	unsigned refused = 0;
	for (size_t i = 0; i < wrap(&c)->entry.compressed_size; i += 3) {
		struct fat *f = wrap(&c);
		CUlibrary lib;
		f->block[i] ^= 0xff;
		CUresult r = cuLibraryLoadData(&lib, f, NULL, NULL, 0, NULL, NULL, 0);
		refused += r != CUDA_SUCCESS;
		if (r == CUDA_SUCCESS)
			OK(cuLibraryUnload(lib));
	}
	struct fat *f = wrap(&c);
	CUlibrary lib;
	f->entry.uncompressed_size++;
	WANT(CUDA_ERROR_INVALID_IMAGE, cuLibraryLoadData(&lib, f, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(refused > 10);
}
