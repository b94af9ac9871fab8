/*
 * module.h: modules, libraries and the functions in them.
 *
 * In: what the hooks saw, and handles found in graphs. Out: module, image, names and function records, and medusa_module_*.
 */
#ifndef MEDUSA_MODULE_H
#define MEDUSA_MODULE_H

#include "driver.h"

/* The trace's id of the module that a CUmodule or a CUlibrary belongs to, or UINT32_MAX where its load was not seen.
 * Needs the lock held. */
uint32_t module_of_handle(uint64_t handle);
/* Records a module whose load nobody saw. Takes the lock. */
uint32_t module_hidden(uint64_t handle);
/* The kernel that a function came from by cuKernelGetFunction, or NULL. Needs the lock held. */
CUkernel module_kernel_of(CUfunction f);
/* The kernel of a library whose load was seen that has this name, and this function in the current context, or NULL: a function
 * may come by a path that no hook sees. Takes the lock. */
CUkernel module_kernel_find(CUfunction f, const char *name);

#endif
