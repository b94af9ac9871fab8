/*
 * image_fuzz.c: no image of a module makes its readers leave it: cubins, fat binaries and PTX, generated and then damaged in
 * the fields of their headers. Linked with the simulated driver and the interposer's reader under sanitizers.
 *
 * In: image_fuzz ROUNDS SEED. Out: a line with the number of accepted images; a crash, or a report of a sanitizer, names the round, and
 * image_fuzz 1 SEED ROUND repeats that one alone. Fails: by that report.
 */
#include "../driver/ptx/ptx.h"
#include "cuda.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool image_is_whole(const void *image, uint64_t size); /* image_fuzz_preload.c */

static unsigned long round_now;

void __asan_set_death_callback(void (*callback)(void));
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1:detect_leaks=0"; }

static void died(void)
{
	fprintf(stderr, "image_fuzz: round %lu\n", round_now);
}

/* SplitMix64: any seed, so that each round has its own. */
static uint64_t state;
static uint64_t next(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}
static uint64_t below(uint64_t n) { return next() % n; }

/* An image being made, and the places of the numbers in it that are to be damaged. */
enum { CAP = 1 << 16, FIELDS = 1024 };
static struct { unsigned char data[CAP]; size_t size; struct { size_t at; unsigned bytes; } fields[FIELDS]; unsigned nfields; size_t sections; unsigned nsections; } made;

static size_t put(const void *from, size_t n)
{
	size_t at = made.size;
	memcpy(made.data + at, from, n);
	made.size += n;
	return at;
}

static void align(size_t to)
{
	while (made.size % to)
		put("", 1);
}

static void field(size_t at, unsigned bytes)
{
	if (made.nfields < FIELDS)
		made.fields[made.nfields++] = (__typeof__(made.fields[0])){at, bytes};
}

/* All numbers of a struct whose members have these sizes. */
static void fields(size_t at, const char *sizes)
{
	for (; *sizes; sizes++) {
		field(at, (unsigned)(*sizes - '0'));
		at += (size_t)(*sizes - '0');
	}
}

static uint32_t name(char *table, size_t *used, const char *text)
{
	uint32_t at = (uint32_t)*used;
	strcpy(table + at, text);
	*used += strlen(text) + 1;
	return at;
}

/* .nv.info of a kernel: some parameters, in either form, and the bytes that they take together. */
static size_t put_info(void)
{
	size_t begin = made.size;
	uint16_t n = (uint16_t)below(5);
	for (uint16_t i = 0; i < n; i++) {
		unsigned char form[2] = {4, below(2) ? 0x17 : 0x45};
		uint16_t length = 12, place[2] = {i, (uint16_t)(8 * i)};
		uint32_t zero = 0, size = form[1] == 0x17 ? 8u << 18 : 8;
		size_t at = put(form, 2);
		put(&length, 2), put(&zero, 4), put(place, 4), put(&size, 4);
		fields(at, "1124224");
	}
	unsigned char bytes[4] = {3, 0x19, (unsigned char)(8 * n), 0};
	fields(put(bytes, 4), "112");
	return made.size - begin;
}

/* A cubin: per kernel a .text, its .nv.info and .nv.shared; variables with contents and without; symbols and two string tables. */
static void make_cubin(void)
{
	Elf64_Shdr s[24] = {{0}};
	Elf64_Sym syms[24] = {{0}};
	char strings[2048] = "", text[64];
	size_t used = 1;
	unsigned ns = 1, nsyms = 1, kernels = 1 + (unsigned)below(3);
	size_t base = made.size;
	Elf64_Ehdr h = {.e_machine = 190, .e_shentsize = sizeof(Elf64_Shdr)};
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	put(&h, sizeof(h));
	for (unsigned k = 0; k < kernels; k++) {
		unsigned code = ns++;
		snprintf(text, sizeof(text), ".text.k%u", k);
		s[code] = (Elf64_Shdr){.sh_name = name(strings, &used, text), .sh_type = SHT_PROGBITS, .sh_offset = put("0123456789abcdef", 16) - base, .sh_size = 16};
		snprintf(text, sizeof(text), ".nv.info.k%u", k);
		size_t at = made.size - base;
		s[ns++] = (Elf64_Shdr){.sh_name = name(strings, &used, text), .sh_type = 0x70000000, .sh_offset = at, .sh_size = put_info(), .sh_info = code};
		snprintf(text, sizeof(text), ".nv.shared.k%u", k);
		s[ns++] = (Elf64_Shdr){.sh_name = name(strings, &used, text), .sh_type = SHT_NOBITS, .sh_size = below(4096), .sh_info = code};
		snprintf(text, sizeof(text), "k%u", k);
		syms[nsyms++] = (Elf64_Sym){name(strings, &used, text), ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0x10, (uint16_t)code, 0, 16};
	}
	unsigned init = ns++, bss = ns++;
	s[init] = (Elf64_Shdr){.sh_name = name(strings, &used, ".nv.global.init"), .sh_type = SHT_PROGBITS, .sh_offset = put("contents", 8) - base, .sh_size = 8};
	s[bss] = (Elf64_Shdr){.sh_name = name(strings, &used, ".nv.global"), .sh_type = SHT_NOBITS, .sh_size = 64};
	syms[nsyms++] = (Elf64_Sym){name(strings, &used, "table"), ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, (uint16_t)init, 0, 8};
	syms[nsyms++] = (Elf64_Sym){name(strings, &used, "scratch"), ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), 0, (uint16_t)bss, 0, 64};
	unsigned symtab = ns++, strtab = ns++;
	s[symtab] = (Elf64_Shdr){.sh_name = name(strings, &used, ".symtab"), .sh_type = SHT_SYMTAB, .sh_link = strtab, .sh_size = nsyms * sizeof(Elf64_Sym)};
	s[strtab] = (Elf64_Shdr){.sh_name = name(strings, &used, ".strtab"), .sh_type = SHT_STRTAB};
	s[strtab].sh_size = used;
	s[strtab].sh_offset = put(strings, used) - base;
	align(8);
	s[symtab].sh_offset = put(syms, nsyms * sizeof(*syms)) - base;
	for (unsigned i = 0; i < nsyms; i++)
		fields(base + s[symtab].sh_offset + i * sizeof(*syms), "411288");
	h.e_shoff = put(s, ns * sizeof(*s)) - base;
	for (unsigned i = 0; i < ns; i++)
		fields(base + h.e_shoff + i * sizeof(*s), "4488884488");
	made.sections = base + h.e_shoff;
	made.nsections = ns;
	h.e_shnum = (uint16_t)ns;
	h.e_shstrndx = (uint16_t)strtab;
	h.e_phoff = below(2) ? made.size - base : 0;
	memcpy(made.data + base, &h, sizeof(h));
	fields(base + 16, "224888422222");
}

static const char ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .f32 v = 0f3F800000;\n"
                          ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n.reg .b64 %rd<4>;\n.reg .f32 %f<4>;\nld.param.u64 %rd1, [p];\n"
                          "cvta.to.global.u64 %rd2, %rd1;\nld.global.f32 %f1, [%rd2];\nadd.f32 %f2, %f1, %f1;\nst.global.f32 [%rd2], %f2;\nret;\n}\n";

static void make_ptx(void)
{
	size_t at = put(ptx, sizeof(ptx));
	for (int i = 0; i < 40; i++)
		field(at + below(sizeof(ptx)), 1);
}

/* A fat binary of entries, plain or in LZ4 of literals alone. */
static void make_fatbin(void)
{
	struct { uint32_t magic; uint16_t version, header_size; uint64_t size; } head = {0xba55ed50, 1, 16, 0};
	size_t base = put(&head, sizeof(head));
	for (uint64_t n = 1 + below(3); n; n--) {
		struct {
			uint16_t kind, version;
			uint32_t header_size;
			uint64_t padded_size;
			uint32_t compressed_size, options;
			uint16_t minor, major;
			uint32_t arch, name, name_size;
			uint64_t flags, zero, uncompressed_size;
		} e = {.kind = (uint16_t)(1 + below(2)), .header_size = 64, .arch = 80 + 10 * (uint32_t)below(2)};
		size_t at = put(&e, sizeof(e)), body = made.size;
		e.kind == 1 ? make_ptx() : make_cubin();
		if (e.kind == 2 && below(2)) { /* literals alone: a token, the length beyond 15 in bytes, and the bytes */
			static unsigned char plain[CAP];
			size_t size = made.size - body, rest = size - 15;
			memcpy(plain, made.data + body, size);
			made.size = body;
			put("\xf0", 1);
			for (; rest >= 255; rest -= 255)
				put("\xff", 1);
			unsigned char last = (unsigned char)rest;
			put(&last, 1);
			put(plain, size);
			e.flags = 0x2011;
			e.uncompressed_size = size;
		}
		e.compressed_size = (uint32_t)(made.size - body);
		align(8);
		e.padded_size = made.size - body;
		memcpy(made.data + at, &e, sizeof(e));
		fields(at, "22484422444888");
	}
	head.size = made.size - base - sizeof(head);
	memcpy(made.data + base, &head, sizeof(head));
	fields(base, "4228");
}

/* Makes a section one that has no bytes in the file, and lies anywhere. */
static void empty_section(void)
{
	Elf64_Shdr s;
	size_t at = made.sections + below(made.nsections) * sizeof(s);
	memcpy(&s, made.data + at, sizeof(s));
	s.sh_type = SHT_NOBITS;
	s.sh_offset = next() >> below(64) & ~7ull;
	if (below(2))
		s.sh_size = next() >> below(64);
	memcpy(made.data + at, &s, sizeof(s));
}

/* Changes some of the numbers: to bounds, by little, or to another of them. */
static void damage(void)
{
	if (made.nsections && below(4) == 0)
		empty_section();
	static const uint64_t bounds[] = {0, 1, 7, 8, 0x7f, 0xff, 0xffff, 0x10000, 0x7fffffff, 0xffffffff, 0x100000000, 1ull << 63, UINT64_MAX - 7, UINT64_MAX};
	for (uint64_t n = below(5); n; n--) {
		unsigned i = (unsigned)below(made.nfields), j = (unsigned)below(made.nfields);
		uint64_t v = 0;
		memcpy(&v, made.data + made.fields[i].at, made.fields[i].bytes);
		switch (below(4)) {
		case 0: v = bounds[below(sizeof(bounds) / sizeof(*bounds))]; break;
		case 1: v += below(17) - 8; break;
		case 2: v = 0, memcpy(&v, made.data + made.fields[j].at, made.fields[j].bytes); break;
		default: v = next() >> below(64);
		}
		memcpy(made.data + made.fields[i].at, &v, made.fields[i].bytes);
	}
	if (below(8) == 0)
		made.size = 1 + below(made.size);
}

/* Loads the image as a file: then its readers know its end. */
static bool load(void)
{
	char path[64];
	CUmodule m;
	CUfunction f;
	int fd = memfd_create("image", 0);
	if (fd < 0 || write(fd, made.data, made.size) != (ssize_t)made.size)
		exit(1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	bool loaded = cuModuleLoad(&m, path) == CUDA_SUCCESS;
	if (loaded) {
		unsigned n = 0;
		CUdeviceptr at;
		size_t size;
		cuModuleGetFunctionCount(&n, m);
		cuModuleGetFunction(&f, m, "k0");
		cuModuleGetGlobal(&at, &size, m, "table");
		cuModuleUnload(m);
	}
	close(fd);
	return loaded;
}

/* The same to the readers that are given bytes and their number: in memory that ends with the image. */
static bool parse(bool elf)
{
	char error[256];
	unsigned char *exact = malloc(made.size);
	memcpy(exact, made.data, made.size);
	struct ptx_module *m = elf ? cubin_parse(exact, made.size, error, sizeof(error)) : ptx_parse((char *)exact, made.size, error, sizeof(error));
	if (m)
		ptx_free(m);
	free(exact);
	return m;
}

int main(int argc, char **argv)
{
	CUdevice device;
	CUcontext context;
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000, seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	unsigned long first = argc > 3 ? strtoul(argv[3], NULL, 10) : 0, accepted = 0, whole = 0;
	setenv("SIMGPU_MACHINE_CODE", "no-op", 1);
	setenv("SIMGPU_LOG", "/dev/null", 0);
	__asan_set_death_callback(died);
	if (cuInit(0) || cuDeviceGet(&device, 0) || cuCtxCreate(&context, 0, device))
		return 1;
	for (round_now = first; round_now < first + rounds; round_now++) {
		state = seed ^ round_now * 0x2545f4914f6cdd1d;
		made.size = 0;
		made.nfields = made.nsections = 0;
		unsigned kind = (unsigned)below(4);
		kind == 0 ? make_ptx() : kind == 1 ? make_fatbin() : make_cubin();
		damage();
		if (kind != 1)
			accepted += parse(kind != 0);
		accepted += load();
		unsigned char *exact = malloc(made.size);
		memcpy(exact, made.data, made.size);
		whole += image_is_whole(exact, made.size);
		free(exact);
	}
	printf("image_fuzz: seed %lu, %lu rounds, %lu images accepted, %lu known by their own size\n", seed, rounds, accepted, whole);
	return 0;
}
