// Kernels that a check of memory alone takes for good ones (harsh.go).
#include "device.h"

// Attention with a scheduler: a block works on its tile only if the metadata has a tile for it.
extern "C" __global__ void tiles(const unsigned *count, const float *x, float *out)
{
	int i = cta_x() * ntid_x() + tid_x();
	if ((unsigned)cta_x() < *count)
		out[i] = 2.0f * x[i];
}

// All elements depend on the largest of some: one that is no number makes all of them the same.
extern "C" __global__ void normalise(const float *x, const float *scale, float *out)
{
	int i = cta_x() * ntid_x() + tid_x();
	float all = 0;
	for (int k = 0; k < ntid_x(); k++)
		all += 0.0f * scale[k];
	out[i] = x[i] + all;
}

// Adds to an accumulator that others add to at the same time.
extern "C" __global__ void accumulate(float value, float *out)
{
	int i = cta_x() * ntid_x() + tid_x();
	out[i] += value;
}

// Waits for a value that another kernel never writes.
extern "C" __global__ void await(const volatile int *flag, float *out)
{
	while (*flag != 1)
		;
	out[cta_x() * ntid_x() + tid_x()] = 1.0f;
}
