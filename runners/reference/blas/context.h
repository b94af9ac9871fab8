/* context.h: what a handle holds. */
#ifndef VBLAS_CONTEXT_H
#define VBLAS_CONTEXT_H

#include <pthread.h>

#include "modules.h"

struct vblasContext {
	CUstream stream;
	struct vblas_modules modules;
	CUdeviceptr own_workspace, user_workspace; /* the user's goes first where there is one */
	size_t user_bytes;
	CUdeviceptr entered, left; /* semaphores, four bytes each */
	pthread_mutex_t lock;
};

#endif
