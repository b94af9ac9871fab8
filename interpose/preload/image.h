/*
 * image.h: what identifies the image of a module.
 *
 * In: what was passed to a load call, in any of the forms the driver takes. Out: the image's own bytes, and either their
 * hash or their place: bytes that a program or library with a build-id maps and cannot write are known by build-id and
 * offset, so nobody has to read the hundreds of megabytes that a framework brings. What can fail: a file cannot be read.
 */
#ifndef MEDUSA_IMAGE_H
#define MEDUSA_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

struct image {
	const void *data;
	uint64_t size;
	bool in_dso;        /* known by its place; sha256 is not set then */
	uint8_t sha256[32];
	char dso[1024];
	char build_id[64]; /* hex, empty where the object has none */
	uint64_t dso_offset;
	void *mapped; /* image_unmap takes it back */
};

/* In memory, sized by its own header: a fatbin (in its wrapper or not), an ELF file, or text with a final NUL. */
void image_in_memory(const void *code, struct image *out);
/* Which program or library maps size bytes of an image at data: the fields from dso on, and in_dso. */
void image_place(const void *data, uint64_t size, struct image *out);
/* A whole file. */
bool image_in_file(const char *path, struct image *out);
void image_unmap(struct image *im);

#endif
