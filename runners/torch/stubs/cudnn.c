/*
 * cudnn.c: cuDNN as a library that says it is version 0, so that a program takes its other paths.
 */
#include "stub.h"

#include <stddef.h>

EXPORT size_t cudnnGetVersion(void) { return 0; }
EXPORT size_t cudnnGetCudartVersion(void) { return 0; }
