/*
 * module.h: modules, libraries and their functions.
 *
 * In: the calls that the hooks saw, and handles found in graphs. Out: module, image, names and function records, and
 * medusa_module_*.
 */
#ifndef MEDUSA_MODULE_H
#define MEDUSA_MODULE_H

#include "driver.h"

/* The trace's ID of the module to which a CUmodule or a CUlibrary belongs, or UINT32_MAX if its load was not seen. Needs the
 * lock held. */
uint32_t module_of_handle(uint64_t handle);
/* Records a module whose load was not seen. Takes the lock. */
uint32_t module_hidden(uint64_t handle);
/* The kernel from which cuKernelGetFunction made this function, or NULL. Needs the lock held. */
CUkernel module_kernel_of(CUfunction f);
/* Finds the kernel with this name and this function in the current context, in a library whose load was seen, or returns NULL.
 * It is needed if the function was made on a path without a hook. Takes the lock. */
CUkernel module_kernel_find(CUfunction f, const char *name);

#endif
