# Rules of the reference engine's vendor BLAS and device code; included by the root Makefile.

BLAS_DIR = runners/reference/blas
BLAS_C = $(addprefix $(BLAS_DIR)/,vblas.c driver.c elf.c plan.c modules.c)
BLAS_SRC = $(BLAS_C) $(BLAS_DIR)/images.S
BLAS_DEPS = $(BLAS_SRC) $(wildcard $(BLAS_DIR)/*.h $(BLAS_DIR)/kernels/*.ptx) $(CUDA_HEADERS)
BLAS_FLAGS = -std=c11 -Wall -Wextra -Werror -fvisibility=hidden -fPIC $(CUDA_CFLAGS) -I$(BLAS_DIR) -Wa,-I$(BLAS_DIR)/kernels
BLAS_SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all

build/lib/libvendorblas.so: $(BLAS_DEPS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(BLAS_FLAGS) -shared -Wl,-soname,libvendorblas.so -o $@ $(BLAS_SRC) -ldl -pthread

# The library and its test in one sanitized program, against the simulated GPU. If there is none, the shapes are still
# planned and checked.
build/test/blas: $(BLAS_DEPS) $(wildcard $(BLAS_DIR)/test/*)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(BLAS_FLAGS) $(BLAS_SANITIZE) -o $@ $(wildcard $(BLAS_DIR)/test/*.c) $(BLAS_SRC) -ldl -pthread -lm

.PHONY: blas-test
blas-test: build/test/blas build/simulated/libcuda.so.1
	LD_LIBRARY_PATH=build/simulated build/test/blas

# Not a prerequisite of anything: the PTX is committed, and only changing a kernel needs clang.
PTX_CLANG ?= clang++-19
PTX_FLAGS = -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 --cuda-feature=+ptx70 -nocudainc -nocudalib -O2 -S -fno-verbose-asm -Irunners/reference/kernels
.PHONY: ptx
ptx:
	for f in $(wildcard runners/reference/kernels/*.cu $(BLAS_DIR)/kernels/*.cu); do \
		$(PTX_CLANG) $(PTX_FLAGS) -o $${f%.cu}.ptx $$f || exit 1; \
	done

# Needs the packages of check/requirements.txt. DEVICE=cuda compares a real GPU's logits.
PYTHON ?= python3
CHECK_HF_LIBRARIES = build/lib$(if $(filter simulated,$(DEVICE)),:build/simulated)
.PHONY: check-hf
check-hf: lib bin
	@mkdir -p build/test
	$(GO) build -o build/test/oracle-dump ./runners/reference/oracle/dump
	LD_LIBRARY_PATH=$(CHECK_HF_LIBRARIES):$$LD_LIBRARY_PATH \
		$(PYTHON) runners/reference/check/check_hf.py runners/reference/models/tiny build/test/oracle-dump build/reference
	LD_LIBRARY_PATH=$(CHECK_HF_LIBRARIES):$$LD_LIBRARY_PATH \
		$(PYTHON) runners/reference/check/check_shapes.py build/test/oracle-dump build/reference
