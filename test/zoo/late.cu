// The module that the zoo loads only when it first needs it.
#include "device.h"

extern "C" __global__ void scale(float *x, float s, int n)
{
	int i = cta_x() * ntid_x() + tid_x();
	if (i < n)
		x[i] *= s;
}
