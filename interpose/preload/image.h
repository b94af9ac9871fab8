/*
 * image.h: what identifies the image of a module.
 *
 * In: what was passed to a load call, in any of the forms the driver takes. Out: the image's own bytes, their hash, and
 * the shared object that holds them, if one does. What can fail: a file cannot be read.
 */
#ifndef MEDUSA_IMAGE_H
#define MEDUSA_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

struct image {
	const void *data;
	uint64_t size;
	uint8_t sha256[32];
	char dso[1024];
	char build_id[64]; /* hex, empty where the object has none */
	uint64_t dso_offset;
	void *mapped; /* image_unmap takes it back */
};

/* In memory, sized by its own header: a fatbin (in its wrapper or not), an ELF file, or text with a final NUL. */
void image_in_memory(const void *code, struct image *out);
/* A whole file. */
bool image_in_file(const char *path, struct image *out);
void image_unmap(struct image *im);

#endif
