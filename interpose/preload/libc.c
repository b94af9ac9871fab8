/* libc.c: see libc.h. It runs before the C library may be asked by dlsym, and needs no memory. */
#include "libc.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A sanitizer's runtime looks symbols up before it is ready itself. */
#define NO_SANITIZER __attribute__((no_sanitize("address", "undefined")))

struct search {
	const char *name;
	void *found;
};

struct symbols {
	const ElfW(Sym) *table;
	const char *names;
	const uint32_t *gnu_hash;
};

NO_SANITIZER static bool same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* libc.so.6, and libdl.so.2 before glibc 2.34. */
NO_SANITIZER static bool is_libc(const char *path)
{
	const char *base = path;
	for (const char *p = path; *p; p++)
		if (*p == '/')
			base = p + 1;
	return same(base, "libc.so.6") || same(base, "libdl.so.2");
}

/* The loader has made the addresses in a dynamic section absolute, except on machines with a read-only
 * dynamic section. */
NO_SANITIZER static const void *at(const struct dl_phdr_info *info, ElfW(Addr) value)
{
	return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr : value);
}

NO_SANITIZER static struct symbols symbols_of(const struct dl_phdr_info *info)
{
	struct symbols s = {NULL, NULL, NULL};
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		for (const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); d->d_tag != DT_NULL; d++) {
			if (d->d_tag == DT_SYMTAB)
				s.table = at(info, d->d_un.d_ptr);
			if (d->d_tag == DT_STRTAB)
				s.names = at(info, d->d_un.d_ptr);
			if (d->d_tag == DT_GNU_HASH)
				s.gnu_hash = at(info, d->d_un.d_ptr);
		}
	}
	return s;
}

/* The table of a GNU hash: counts, a filter, one chain a bucket, whose last entry has its lowest bit set. */
NO_SANITIZER static const ElfW(Sym) *look_up(const struct symbols *s, const char *name)
{
	uint32_t hash = 5381, buckets = s->gnu_hash[0], first = s->gnu_hash[1], filter = s->gnu_hash[2];
	const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(s->gnu_hash + 4) + filter), *chain = bucket + buckets;
	for (const char *p = name; *p; p++)
		hash = hash * 33 + (unsigned char)*p;
	for (uint32_t i = bucket[hash % buckets]; i >= first && i; i++) {
		if ((chain[i - first] | 1) == (hash | 1) && same(s->names + s->table[i].st_name, name) && s->table[i].st_shndx != SHN_UNDEF)
			return &s->table[i];
		if (chain[i - first] & 1)
			break;
	}
	return NULL;
}

NO_SANITIZER static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *search = arg;
	struct symbols s;
	const ElfW(Sym) *found;
	(void)size;
	if (!info->dlpi_name || !is_libc(info->dlpi_name))
		return 0;
	s = symbols_of(info);
	found = s.table && s.names && s.gnu_hash ? look_up(&s, search->name) : NULL;
	if (found)
		search->found = (void *)(info->dlpi_addr + found->st_value);
	return search->found != NULL;
}

NO_SANITIZER void *libc_symbol(const char *name)
{
	struct search search = {name, NULL};
	dl_iterate_phdr(visit, &search);
	return search.found;
}
