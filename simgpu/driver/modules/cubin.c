/*
 * cubin.c: modules from machine code, whose kernels have names and parameters, and no effect.
 *
 * In: a cubin (an ELF file of e_machine 190). Out: a module like that of PTX: kernels with the parameter layout of their
 * .nv.info sections, variables with storage and initial contents. Fails: NULL and a message for a file that is no cubin or
 * contradicts itself.
 *
 * Machine code is never interpreted: launches of these kernels are checked, recorded and captured, and change no memory.
 */
#include "ptx/ptx_internal.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EM_CUDA_MACHINE 190
#define STO_ENTRY 0x10 /* of st_other: the function is a kernel */
#define RESERVED ".nv.shared.reserved."
enum { RESERVED_BYTES = 1 << 10 };

/* Attributes of .nv.info; a payload follows those of format 4. */
enum { INFO_HVAL = 3, INFO_SVAL = 4 };
enum { ATTR_MAX_THREADS = 0x05, ATTR_REQNTID = 0x10, ATTR_KPARAM = 0x17, ATTR_PARAM_BYTES = 0x19, ATTR_KPARAM_V2 = 0x45 };
enum { MAX_PARAMS = 4096, MAX_PARAM_BYTES = 32768 };

struct cubin {
	const uint8_t *data;
	size_t len;
	const Elf64_Ehdr *head;
	const Elf64_Shdr *sections;
	const char *names;
	size_t names_len;
	struct ptx_module *module;
	const char *error;
};

static bool inside(const struct cubin *c, uint64_t offset, uint64_t size)
{
	return offset <= c->len && size <= c->len - offset;
}

/* A section's bytes. One without any in the file (SHT_NOBITS) may have any place and size. */
static const uint8_t *bytes_of(const struct cubin *c, const Elf64_Shdr *s, size_t *len)
{
	bool held = s->sh_type != SHT_NOBITS;
	*len = held ? s->sh_size : 0;
	return c->data + (held ? s->sh_offset : 0);
}

static const char *text_at(const char *table, size_t len, uint64_t offset)
{
	return offset < len && memchr(table + offset, 0, len - offset) ? table + offset : NULL;
}

static bool open_elf(struct cubin *c)
{
	c->head = (const Elf64_Ehdr *)c->data;
	if (c->len < sizeof(*c->head) || memcmp(c->data, ELFMAG, SELFMAG) || c->head->e_ident[EI_CLASS] != ELFCLASS64 ||
	    c->head->e_machine != EM_CUDA_MACHINE) {
		c->error = "not a 64-bit cubin";
		return false;
	}
	if (c->head->e_shentsize != sizeof(Elf64_Shdr) || c->head->e_shoff % 8 ||
	    !inside(c, c->head->e_shoff, (uint64_t)c->head->e_shnum * sizeof(Elf64_Shdr)) ||
	    c->head->e_shstrndx >= c->head->e_shnum) {
		c->error = "section headers outside the file";
		return false;
	}
	c->sections = (const Elf64_Shdr *)(c->data + c->head->e_shoff);
	for (unsigned i = 0; i < c->head->e_shnum; i++)
		if (c->sections[i].sh_type != SHT_NOBITS && !inside(c, c->sections[i].sh_offset, c->sections[i].sh_size)) {
			c->error = "a section lies outside the file";
			return false;
		}
	c->names = (const char *)bytes_of(c, &c->sections[c->head->e_shstrndx], &c->names_len);
	return true;
}

static const char *section_name(const struct cubin *c, unsigned i)
{
	const char *name = text_at(c->names, c->names_len, c->sections[i].sh_name);
	return name ? name : "";
}

/* The section of a kernel: .nv.info and .nv.shared name the index of its .text section in sh_info. */
static const Elf64_Shdr *belonging(const struct cubin *c, const char *prefix, unsigned text)
{
	for (unsigned i = 0; i < c->head->e_shnum; i++)
		if ((c->sections[i].sh_info & 0xffffff) == text && strncmp(section_name(c, i), prefix, strlen(prefix)) == 0)
			return &c->sections[i];
	return NULL;
}

/* The bytes of each block's shared memory that the driver reserves. From compute capability 9.0 on, a kernel's section counts them, which the
 * section RESERVED shows. */
static uint64_t reserved_shared(const struct cubin *c)
{
	for (unsigned i = 0; i < c->head->e_shnum; i++)
		if (strncmp(section_name(c, i), RESERVED, strlen(RESERVED)) == 0)
			return RESERVED_BYTES;
	return 0;
}

static uint32_t static_shared(const struct cubin *c, unsigned text)
{
	const Elf64_Shdr *shared = belonging(c, ".nv.shared.", text);
	uint64_t reserved = reserved_shared(c);
	return shared && shared->sh_size > reserved ? (uint32_t)(shared->sh_size - reserved) : 0;
}

static uint32_t u32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static uint16_t u16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }

static bool add_param(struct ptx_kernel *k, uint32_t ordinal, uint32_t offset, uint32_t size)
{
	if (ordinal >= MAX_PARAMS || offset + size > MAX_PARAM_BYTES || !size)
		return false;
	if (ordinal >= k->nparams)
		k->nparams = ordinal + 1;
	if (k->params)
		k->params[ordinal] = (struct ptx_param){offset, size, size & -size};
	return true;
}

/* Walks .nv.info.<kernel>; without k->params it only counts. */
static bool read_info(const struct cubin *c, const Elf64_Shdr *s, struct ptx_kernel *k)
{
	size_t len;
	const uint8_t *p = bytes_of(c, s, &len), *end = p + len;
	while (end - p >= 4) {
		uint8_t format = p[0], attr = p[1];
		uint16_t v = u16(p + 2);
		p += 4;
		size_t n = format == INFO_SVAL ? v : 0;
		if (n > (size_t)(end - p))
			return false;
		bool ok = true;
		if (format == INFO_HVAL && attr == ATTR_PARAM_BYTES)
			k->f->param_bytes = v;
		else if (attr == ATTR_KPARAM && n == 12)
			ok = add_param(k, u16(p + 4), u16(p + 6), u32(p + 8) >> 18);
		else if (attr == ATTR_KPARAM_V2 && n == 12)
			ok = add_param(k, u16(p + 4), u16(p + 6), u16(p + 8));
		else if ((attr == ATTR_MAX_THREADS || attr == ATTR_REQNTID) && n == 12)
			k->f->max_threads = u32(p) * u32(p + 4) * u32(p + 8);
		if (!ok)
			return false;
		p += n;
	}
	return true;
}

static bool add_kernel(struct cubin *c, const char *name, unsigned text)
{
	struct ptx_module *m = c->module;
	struct ptx_kernel *k = &m->kernels[m->nkernels];
	const Elf64_Shdr *info = belonging(c, ".nv.info.", text);
	*k = (struct ptx_kernel){.module = m, .f = ptx_alloc(&m->arena, 1, sizeof(struct func)), .machine_code = true};
	char *own = ptx_alloc(&m->arena, strlen(name) + 1, 1);
	if (!k->f || !own)
		return false;
	strcpy(own, name);
	k->f->name = own;
	k->f->max_threads = 1024;
	k->shared_bytes = static_shared(c, text);
	if (info && !read_info(c, info, k)) {
		c->error = "a kernel's .nv.info contradicts itself";
		return false;
	}
	k->params = ptx_alloc(&m->arena, k->nparams + 1, sizeof(*k->params));
	if (!k->params || (info && !read_info(c, info, k)))
		return false;
	for (uint32_t i = 0; i < k->nparams; i++)
		if (!k->params[i].size || k->params[i].offset + k->params[i].size > k->f->param_bytes) {
			c->error = "a kernel's parameters do not fill its parameter space";
			return false;
		}
	m->nkernels++;
	return true;
}

/* Variables with contents lie in .nv.global.init and .nv.constant3, those without in .nv.global. */
static bool add_variable(struct cubin *c, const Elf64_Sym *sym, const char *name, const Elf64_Shdr *s, bool constant)
{
	struct ptx_module *m = c->module;
	struct gvar *g = ptx_alloc(&m->arena, 1, sizeof(*g));
	char *own = ptx_alloc(&m->arena, strlen(name) + 1, 1);
	if (!g || !own)
		return false;
	strcpy(own, name);
	g->pub = (struct ptx_global){.name = own, .size = sym->st_size, .align = 16, .is_const = constant};
	if (s->sh_type != SHT_NOBITS) {
		if (sym->st_value > s->sh_size || sym->st_size > s->sh_size - sym->st_value) {
			c->error = "a variable lies outside its section";
			return false;
		}
		void *init = ptx_alloc(&m->arena, sym->st_size + 1, 1);
		if (!init)
			return false;
		memcpy(init, c->data + s->sh_offset + sym->st_value, sym->st_size);
		g->pub.init = init;
	}
	m->globals[m->nglobals++] = g;
	return true;
}

static bool add_symbols(struct cubin *c, const Elf64_Shdr *table)
{
	struct ptx_module *m = c->module;
	size_t n = table->sh_size / sizeof(Elf64_Sym);
	if (table->sh_offset % 8 || table->sh_link >= c->head->e_shnum) {
		c->error = "the symbol table contradicts itself";
		return false;
	}
	const Elf64_Sym *syms = (const Elf64_Sym *)(c->data + table->sh_offset);
	size_t strings_len;
	const char *strings = (const char *)bytes_of(c, &c->sections[table->sh_link], &strings_len);
	m->kernels = ptx_alloc(&m->arena, n + 1, sizeof(*m->kernels));
	m->globals = ptx_alloc(&m->arena, n + 1, sizeof(*m->globals));
	if (!m->kernels || !m->globals)
		return false;
	for (size_t i = 0; i < n; i++) {
		const Elf64_Sym *sym = &syms[i];
		const char *name = text_at(strings, strings_len, sym->st_name);
		if (!name || !*name || sym->st_shndx == SHN_UNDEF || sym->st_shndx >= c->head->e_shnum)
			continue;
		const char *section = section_name(c, sym->st_shndx);
		bool ok = true;
		if (ELF64_ST_TYPE(sym->st_info) == STT_FUNC && sym->st_other & STO_ENTRY)
			ok = add_kernel(c, name, sym->st_shndx);
		else if (ELF64_ST_TYPE(sym->st_info) == STT_OBJECT && sym->st_size &&
		         (strncmp(section, ".nv.global", 10) == 0 || strcmp(section, ".nv.constant3") == 0))
			ok = add_variable(c, sym, name, &c->sections[sym->st_shndx], section[4] == 'c');
		if (!ok)
			return false;
	}
	return true;
}

struct ptx_module *cubin_parse(const void *image, size_t len, char *err, size_t err_cap)
{
	struct cubin c = {.data = image, .len = len, .module = calloc(1, sizeof(struct ptx_module))};
	bool ok = c.module;
	if (ok && (uintptr_t)image % 8) { /* headers are read in place */
		void *copy = ptx_alloc(&c.module->arena, len, 1);
		c.data = copy;
		if ((ok = copy))
			memcpy(copy, image, len);
	}
	ok = ok && open_elf(&c);
	for (unsigned i = 0; ok && i < c.head->e_shnum; i++)
		if (c.sections[i].sh_type == SHT_SYMTAB) {
			ok = add_symbols(&c, &c.sections[i]);
			break;
		}
	if (ok)
		return c.module;
	snprintf(err, err_cap, "%s", c.error ? c.error : "out of memory");
	ptx_free(c.module);
	return NULL;
}
