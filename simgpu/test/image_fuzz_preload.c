/*
 * image_fuzz_preload.c: images for the interposer's reader, which takes their size from their own headers, as the driver's
 * interface makes it: only those that are whole by their headers may be shown to it.
 */
#include "image.h"

#include <elf.h>
#include <string.h>

bool image_is_whole(const void *image, uint64_t size);

static bool fits(uint64_t at, uint64_t entries, uint64_t each, uint64_t size)
{
	return (unsigned __int128)at + (unsigned __int128)entries * each <= size;
}

bool image_is_whole(const void *image, uint64_t size)
{
	Elf64_Ehdr h;
	struct { uint32_t magic; uint16_t version, header_size; uint64_t size; } fat;
	bool whole;
	uint32_t magic = 0;
	memcpy(&magic, image, size < 4 ? size : 4);
	if (magic == 0xba55ed50) {
		whole = size >= sizeof(fat) && (memcpy(&fat, image, sizeof(fat)), fits(fat.header_size, fat.size, 1, size));
	} else if (memcmp(&magic, ELFMAG, SELFMAG) == 0) {
		whole = size >= sizeof(h) && (memcpy(&h, image, sizeof(h)), fits(h.e_shoff, h.e_shnum, h.e_shentsize, size)) &&
		        fits(h.e_phoff, h.e_phnum, h.e_phentsize, size);
	} else {
		whole = memchr(image, 0, size) && magic != 0x466243b1; /* a wrapper leads to other memory */
	}
	struct image out;
	if (whole)
		image_in_memory(image, &out);
	return whole;
}
