/* storage.h: the type of a product's elements, which a kernel learns when it runs. The type is chosen outside of loops. */
#ifndef STORAGE_H
#define STORAGE_H

#include "device.h"

enum { F32, F16, BF16 }; /* vblasDataType_t */

/* Does f<T>, T being the type. */
#define FOR_STORAGE(type, f, ...)                  \
	switch (type) {                            \
	case F16: f<half>(__VA_ARGS__); break;     \
	case BF16: f<bf16>(__VA_ARGS__); break;    \
	default: f<float>(__VA_ARGS__);            \
	}

__device__ __forceinline__ int size_of(int type) { return type == F32 ? 4 : 2; }

template <typename T> __device__ __forceinline__ void store_at(char *to, float v) { store((T *)to, v); }
template <typename T> __device__ __forceinline__ void store4_at(char *to, float4v v) { store4((T *)to, v); }

#endif
