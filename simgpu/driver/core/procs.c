/* procs.c: every entry point, generated from internal/cuda/driver.spec. */
#include "core/procs_gen.c"
