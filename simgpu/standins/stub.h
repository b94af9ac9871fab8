/*
 * stub.h: shared by all stand-ins for NVIDIA's libraries.
 *
 * A stand-in lets a program that links a library start on a machine without the library. A function that is
 * not provided prints a line on standard error and returns its library's "not supported" status.
 */
#ifndef MEDUSA_STUB_H
#define MEDUSA_STUB_H

#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))
#define WEAK __attribute__((visibility("default"), weak))

static inline int stub_missing(const char *name, int status, const char *status_name)
{
	if (status)
		fprintf(stderr, "stub: %s is not provided: returning %s (%d)\n", name, status_name, status);
	return status;
}

#endif
