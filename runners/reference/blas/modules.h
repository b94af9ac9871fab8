/* modules.h: the library's device code, loaded into the current context at the first call that needs it. */
#ifndef VBLAS_MODULES_H
#define VBLAS_MODULES_H

#include "driver.h"
#include "plan.h"

#define MAX_FUNCTIONS 16

struct vblas_modules {
	CUmodule module[VBLAS_MODULES];
	CUlibrary library[VBLAS_MODULES];
	struct {
		enum vblas_module module;
		const char *name;
		CUfunction function;
	} functions[MAX_FUNCTIONS];
	int function_count;
};

/* The kernel of that name in that module, which is loaded if it is not loaded yet. */
CUresult vblas_function(struct vblas_modules *m, enum vblas_module module, const char *name, CUfunction *out);

void vblas_unload(struct vblas_modules *m);

#endif
