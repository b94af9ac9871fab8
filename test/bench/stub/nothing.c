/* nothing.c: functions that the stub's driver does not have return success. Results stay as the caller has set them
 * (stub.h). */
#define X(name) int name(void) __attribute__((weak, alias("nothing"), visibility("default")));

int nothing(void);
int nothing(void) { return 0; }

#include "hooks_gen.h"
MEDUSA_HOOKS(X)

/* Hooks and programs call these as well. */
X(cuCtxSetCurrent)
X(cuCtxSynchronize)
X(cuDeviceGetAttribute)
X(cuDevicePrimaryCtxRetain)
X(cuKernelGetLibrary)
X(cuMemRelease)
X(cuMemSetAccess)
X(cuStreamIsCapturing_ptsz)
