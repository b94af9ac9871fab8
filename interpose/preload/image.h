/*
 * image.h: identifies the image of a module.
 *
 * In: the argument of a load call, in any form that the driver accepts. Out: the bytes of the image, and either their hash or
 * their place. Bytes that a program or library with a build-id maps read-only are identified by build-id and offset, because
 * hashing the hundreds of megabytes of a framework would take too long. Fails: a file cannot be read.
 */
#ifndef MEDUSA_IMAGE_H
#define MEDUSA_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

struct image {
	const void *data;
	uint64_t size;
	bool in_dso;        /* identified by its place; sha256 is not set then */
	uint8_t sha256[32];
	char dso[1024];
	char build_id[64]; /* hex, empty if the object has none */
	uint64_t dso_offset;
	void *mapped; /* released by image_unmap */
};

/* An image in memory. Its own header gives its size: a fatbin (in its wrapper or not), an ELF file, or text with a final NUL. */
void image_in_memory(const void *code, struct image *out);
/* Finds the program or library that maps size bytes of an image at data: sets the fields from dso on, and in_dso. */
void image_place(const void *data, uint64_t size, struct image *out);
/* A whole file. */
bool image_in_file(const char *path, struct image *out);
void image_unmap(struct image *im);

#endif
