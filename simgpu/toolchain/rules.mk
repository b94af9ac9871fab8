# The tool chain that Triton uses for the simulated GPU (README.md): an assembler's stand-in and a device library.

TOOLCHAIN := simgpu/toolchain
LIBDEVICE_SRC := $(sort $(wildcard $(TOOLCHAIN)/libdevice/*.c))
LIBDEVICE_DEPS := $(LIBDEVICE_SRC) $(wildcard $(TOOLCHAIN)/libdevice/*.h)
# Only these targets need clang. Any release that Debian has will do: LLVM reads the bitcode of older releases.
TOOLCHAIN_CLANG ?= $(firstword $(foreach c,clang clang-19 clang-16 clang-15 clang-14 clang-13,$(shell command -v $(c) 2>/dev/null)) no-clang)
# Without unrolled loops a kernel of the library stays short. Contraction is left to the program that links it.
LIBDEVICE_CFLAGS := --target=nvptx64-nvidia-cuda -march=sm_80 -std=gnu11 -O2 -ffreestanding -nostdlibinc -fno-math-errno -ffp-contract=off \
	-fno-unroll-loops -fno-vectorize -fno-slp-vectorize -fno-ident -I$(TOOLCHAIN)/libdevice

.PHONY: toolchain toolchain-test test-toolchain
toolchain: build/toolchain/ptxas build/toolchain/libdevice.bc

build/toolchain/ptxas: $(TOOLCHAIN)/ptxas
	@mkdir -p $(@D)
	cp $< $@

build/toolchain/libdevice.bc: $(LIBDEVICE_DEPS)
	@mkdir -p $(@D)
	command -v $(TOOLCHAIN_CLANG) >/dev/null || { echo "make $@: clang is not installed (apt install clang, or TOOLCHAIN_CLANG=program)" >&2; exit 1; }
	printf '#include "%s"\n' $(notdir $(LIBDEVICE_SRC)) | $(TOOLCHAIN_CLANG) $(LIBDEVICE_CFLAGS) -x c - -emit-llvm -c -o $@

build/test/libdevice_test: $(LIBDEVICE_DEPS) $(TOOLCHAIN)/test/libdevice_test.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -ffp-contract=off -fsanitize=address,undefined -fno-sanitize-recover=all \
		$(filter %.c,$^) -o $@ -lm

# The tests that need neither clang nor Triton.
toolchain-test: build/test/libdevice_test
	build/test/libdevice_test
	if command -v $(SIMGPU_PYTHON) >/dev/null; then $(SIMGPU_PYTHON) -m unittest -q $(TOOLCHAIN)/test/test_ptxas.py $(TOOLCHAIN)/test/test_check_use.py; fi

# Triton compiles with the tool chain, and the simulated GPU computes: TRITON_VENV is an environment with triton and numpy.
TRITON_VENV ?= build/toolchain/venv
test-toolchain: toolchain build/simulated/libcuda.so.1
	LD_LIBRARY_PATH=build/simulated $(TRITON_VENV)/bin/python $(TOOLCHAIN)/test/triton_functions.py build/toolchain
