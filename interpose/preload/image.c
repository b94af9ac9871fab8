/* image.c: see image.h. The layouts of ELF and fatbin headers are those that the CUDA binary utilities write. */
#include "image.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sha256.h"

#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC 0xba55ed50u

struct wrapper {
	uint32_t magic, version;
	const void *data;
	void *filename_or_fatbins;
};

struct fatbin_header {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size; /* without the header */
};


static uint64_t elf_size(const void *p)
{
	Elf64_Ehdr h;
	uint64_t sections, segments;
	memcpy(&h, p, sizeof h);
	sections = h.e_shoff + (uint64_t)h.e_shentsize * h.e_shnum;
	segments = h.e_phoff + (uint64_t)h.e_phentsize * h.e_phnum;
	return sections > segments ? sections : segments;
}

/* A text may be shorter than a magic number. */
static bool starts_with(const void *p, const void *magic)
{
	for (int i = 0; i < 4; i++)
		if (((const unsigned char *)p)[i] != ((const unsigned char *)magic)[i])
			return false;
	return true;
}

static uint64_t size_of(const void *p)
{
	static const uint32_t fatbin = FATBIN_MAGIC;
	if (starts_with(p, &fatbin)) {
		struct fatbin_header h;
		memcpy(&h, p, sizeof h);
		return h.header_size + h.size;
	}
	if (starts_with(p, ELFMAG))
		return elf_size(p);
	return strlen(p);
}

struct search {
	uintptr_t addr;
	struct image *out;
};

static void read_build_id(const struct dl_phdr_info *info, const ElfW(Phdr) *ph, char out[64])
{
	const char *note = (const char *)(info->dlpi_addr + ph->p_vaddr), *end = note + ph->p_memsz;
	while (note + sizeof(ElfW(Nhdr)) <= end) {
		const ElfW(Nhdr) *h = (const void *)note;
		const char *name = note + sizeof *h;
		const unsigned char *desc = (const void *)(name + ((h->n_namesz + 3u) & ~3u));
		if (h->n_type == NT_GNU_BUILD_ID && h->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
			for (uint32_t i = 0; i < h->n_descsz && i < 31; i++)
				snprintf(out + 2 * i, 3, "%02x", desc[i]);
			return;
		}
		note = (const char *)desc + ((h->n_descsz + 3u) & ~3u);
	}
}

static int search_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	const ElfW(Phdr) *home = NULL;
	(void)size;
	for (int i = 0; i < info->dlpi_phnum && !home; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;
		if (ph->p_type == PT_LOAD && s->addr >= start && s->addr < start + ph->p_filesz)
			home = ph;
	}
	if (!home)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE && !s->out->build_id[0])
			read_build_id(info, &info->dlpi_phdr[i], s->out->build_id);
	s->out->dso_offset = s->addr - info->dlpi_addr - home->p_vaddr + home->p_offset;
	/* mutant: images that a program can write */
	s->out->in_dso = s->out->build_id[0] && !(home->p_flags & PF_W) &&
			 s->out->size <= home->p_filesz - (s->addr - info->dlpi_addr - home->p_vaddr);
	if (info->dlpi_name[0]) {
		snprintf(s->out->dso, sizeof s->out->dso, "%s", info->dlpi_name);
	} else { /* the program itself */
		ssize_t n = readlink("/proc/self/exe", s->out->dso, sizeof s->out->dso - 1);
		s->out->dso[n > 0 ? n : 0] = 0;
	}
	return 1;
}

void image_place(const void *data, uint64_t size, struct image *out)
{
	struct search s = {(uintptr_t)data, out};
	out->size = size;
	dl_iterate_phdr(search_object, &s);
}

void image_in_memory(const void *code, struct image *out)
{
	static const uint32_t wrapper = WRAPPER_MAGIC;
	*out = (struct image){.data = code};
	if (starts_with(code, &wrapper)) {
		struct wrapper w;
		memcpy(&w, code, sizeof w);
		out->data = w.data;
	}
	image_place(out->data, size_of(out->data), out);
	if (!out->in_dso)
		sha256(out->data, out->size, out->sha256);
}

bool image_in_file(const char *path, struct image *out)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	*out = (struct image){0};
	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		out->size = (uint64_t)st.st_size;
		out->mapped = mmap(NULL, out->size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	close(fd);
	if (!out->mapped || out->mapped == MAP_FAILED) {
		out->mapped = NULL;
		return false;
	}
	out->data = out->mapped;
	sha256(out->data, out->size, out->sha256);
	return true;
}

void image_unmap(struct image *im)
{
	if (im->mapped)
		munmap(im->mapped, im->size);
	im->mapped = NULL;
}
