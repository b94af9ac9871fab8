/* context.h: the state of a handle. */
#ifndef VBLAS_CONTEXT_H
#define VBLAS_CONTEXT_H

#include <pthread.h>

#include "modules.h"

struct vblasContext {
	CUstream stream;
	struct vblas_modules modules;
	CUdeviceptr own_workspace, user_workspace; /* the user's goes first if there is one */
	size_t user_bytes;
	CUdeviceptr entered, left; /* semaphores, four bytes each */
	pthread_mutex_t lock;
};

#endif
