/*
 * elf.c: looks a symbol up in the loaded libcuda by reading the library's own dynamic section.
 *
 * In:  a symbol name.  Out: its address in this process.  Fails (NULL) if libcuda is not loaded, has neither hash table,
 * or does not define the name.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <string.h>

#include "driver.h"

struct tables {
	ElfW(Addr) base;
	const ElfW(Sym) *symbols;
	const char *strings;
	const uint32_t *gnu_hash, *hash;
};

/* glibc relocates these entries in place on most targets, other loaders leave them relative. */
static const void *at(ElfW(Addr) base, ElfW(Addr) value)
{
	return (const void *)(value < base ? base + value : value);
}

static int find_libcuda(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	const char *name = strrchr(info->dlpi_name, '/');
	if (strncmp(name ? name + 1 : info->dlpi_name, "libcuda.so", strlen("libcuda.so")))
		return 0;
	struct tables *t = arg;
	t->base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
		for (; d->d_tag != DT_NULL; d++) {
			const void *p = at(t->base, d->d_un.d_ptr);
			if (d->d_tag == DT_SYMTAB)
				t->symbols = p;
			else if (d->d_tag == DT_STRTAB)
				t->strings = p;
			else if (d->d_tag == DT_GNU_HASH)
				t->gnu_hash = p;
			else if (d->d_tag == DT_HASH)
				t->hash = p;
		}
	}
	return 1;
}

static int matches(const struct tables *t, uint32_t i, const char *name)
{
	const ElfW(Sym) *s = &t->symbols[i];
	return s->st_shndx != SHN_UNDEF && !strcmp(t->strings + s->st_name, name);
}

static uint32_t lookup_gnu(const struct tables *t, const char *name)
{
	uint32_t h = 5381;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		h = h * 33 + *c;
	const uint32_t *head = t->gnu_hash;
	uint32_t buckets = head[0], first = head[1], bloom_words = head[2];
	const uint32_t *bucket = head + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4), *chain = bucket + buckets;
	uint32_t i = buckets ? bucket[h % buckets] : 0;
	if (i < first)
		return 0;
	for (;; i++) {
		uint32_t entry = chain[i - first];
		if ((entry | 1) == (h | 1) && matches(t, i, name))
			return i;
		if (entry & 1)
			return 0;
	}
}

static uint32_t lookup_sysv(const struct tables *t, const char *name)
{
	for (uint32_t i = 1; i < t->hash[1]; i++)
		if (matches(t, i, name))
			return i;
	return 0;
}

void *vblas_driver_symbol(const char *name)
{
	struct tables t = {0};
	if (!dl_iterate_phdr(find_libcuda, &t) || !t.symbols || !t.strings)
		return NULL;
	uint32_t i = t.gnu_hash ? lookup_gnu(&t, name) : t.hash ? lookup_sysv(&t, name) : 0;
	return i ? (void *)(t.base + t.symbols[i].st_value) : NULL;
}
