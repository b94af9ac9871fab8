# Rules of the reference engine's C library and device code; included by the root Makefile.

PTX_CLANG ?= clang++-19
PTX_FLAGS = -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 --cuda-feature=+ptx70 -nocudainc -nocudalib -O2 -S
KERNEL_PTX = $(patsubst %.cu,%.ptx,$(wildcard runners/reference/kernels/*.cu))
BLAS_DIR = runners/reference/blas
BLAS_PTX = $(patsubst %.cu,%.ptx,$(wildcard $(BLAS_DIR)/kernels/*.cu))

# Not a prerequisite of anything: the PTX is committed, and only changing a kernel needs clang.
.PHONY: ptx
ptx:
	for f in $(KERNEL_PTX) $(BLAS_PTX); do \
		$(PTX_CLANG) $(PTX_FLAGS) -Irunners/reference/kernels -o $$f $${f%.ptx}.cu || exit 1; \
	done
