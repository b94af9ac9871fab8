/* nothing.c: functions that the stub's driver does not have succeed and do nothing (stub.h). Results stay as the caller
 * has set them. */
#define X(name) int name(void) __attribute__((weak, alias("nothing"), visibility("default")));

int nothing(void);
int nothing(void) { return 0; }

#include "hooks_gen.h"
MEDUSA_HOOKS(X)

/* Hooks and programs call these besides. */
X(cuCtxSetCurrent)
X(cuCtxSynchronize)
X(cuDeviceGetAttribute)
X(cuDevicePrimaryCtxRetain)
X(cuKernelGetLibrary)
X(cuMemCreate)
X(cuMemRelease)
X(cuMemSetAccess)
X(cuStreamIsCapturing_ptsz)
