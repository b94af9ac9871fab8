# The simulated GPU, its tests and the conformance program; included by the root Makefile.

SIMGPU := simgpu
SIMGPU_SRC := $(sort $(wildcard $(SIMGPU)/driver/*/*.c))
SIMGPU_DEPS := $(wildcard $(SIMGPU)/driver/*/*.h) $(CUDA_HEADERS) $(GENERATED_CUDA)
SIMGPU_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fvisibility=hidden -fPIC $(CUDA_CFLAGS) -I$(SIMGPU)/driver
SIMGPU_LDFLAGS := -shared -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -Wl,-z,defs -lpthread -ldl -lm
SIMGPU_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

SIMGPU_OBJ := $(patsubst $(SIMGPU)/driver/%.c,build/simulated/obj/%.o,$(SIMGPU_SRC))
SIMGPU_ASAN_OBJ := $(patsubst $(SIMGPU)/driver/%.c,build/simulated-asan/obj/%.o,$(SIMGPU_SRC))
CONFORMANCE_SRC := $(sort $(wildcard $(SIMGPU)/conformance/*.c))
CONFORMANCE_DEPS := $(wildcard $(SIMGPU)/conformance/*.h) $(CUDA_HEADERS)

build/simulated/obj/%.o: $(SIMGPU)/driver/%.c $(SIMGPU_DEPS)
	@mkdir -p $(@D)
	$(CC) $(SIMGPU_CFLAGS) -c $< -o $@

build/simulated-asan/obj/%.o: $(SIMGPU)/driver/%.c $(SIMGPU_DEPS)
	@mkdir -p $(@D)
	$(CC) $(SIMGPU_CFLAGS) $(SIMGPU_SANITIZE) -c $< -o $@

build/simulated/libcuda.so.1: $(SIMGPU_OBJ)
	$(CC) $^ -o $@ $(SIMGPU_LDFLAGS)

build/simulated-asan/libcuda.so.1: $(SIMGPU_ASAN_OBJ)
	$(CC) $(SIMGPU_SANITIZE) $^ -o $@ $(SIMGPU_LDFLAGS)

build/conformance: $(CONFORMANCE_SRC) $(CONFORMANCE_DEPS)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -I$(SIMGPU)/conformance $(CUDA_CFLAGS) $(CONFORMANCE_SRC) -o $@ -ldl -lpthread

build/conformance-asan: $(CONFORMANCE_SRC) $(CONFORMANCE_DEPS)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror $(SIMGPU_SANITIZE) -I$(SIMGPU)/conformance $(CUDA_CFLAGS) $(CONFORMANCE_SRC) -o $@ -ldl -lpthread

# DEVICE=simulated (default) or cuda: the driver that the dynamic linker finds.
DEVICE ?= simulated
.PHONY: conformance simgpu-test
ifeq ($(DEVICE),cuda)
conformance: build/conformance
	build/conformance
else
conformance: build/conformance build/simulated/libcuda.so.1
	LD_LIBRARY_PATH=build/simulated build/conformance
endif

SIMGPU_TEST_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror $(CUDA_CFLAGS) $(SIMGPU_SANITIZE)
PTX_TEST_SRC := $(sort $(wildcard $(SIMGPU)/test/ptx_*.c))

DRIVER_TEST_SRC := $(sort $(wildcard $(SIMGPU)/test/driver_*.c))

build/test/driver_test: $(DRIVER_TEST_SRC) $(SIMGPU)/test/driver_test.h build/simulated-asan/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(SIMGPU_TEST_CFLAGS) $(filter-out %.h,$^) -o $@ -ldl -lpthread

build/test/ptx_test: $(PTX_TEST_SRC) $(SIMGPU)/test/ptx_test.h $(filter build/simulated-asan/obj/ptx/ptx_%,$(SIMGPU_ASAN_OBJ))
	@mkdir -p $(@D)
	$(CC) $(SIMGPU_TEST_CFLAGS) $(filter-out %.h,$^) -o $@ -lm -lpthread

# How fast the interpreter is, as it is built for use.
.PHONY: simgpu-speed
build/test/speed: $(SIMGPU)/test/speed.c $(filter build/simulated/obj/ptx/ptx_%,$(SIMGPU_OBJ))
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror $(filter-out %.h,$^) -o $@ -lm -lpthread
simgpu-speed: build/test/speed
	build/test/speed $(SIMGPU)/test/ptx/kernels.ptx

# The CUDA runtime and the stand-ins of closed libraries, for programs that are no part of this project (simgpu/README.md):
#   make simgpu CUDA=12 FOR="folders of the programs and of their libraries"
CUDA             ?= 12
FOR              ?=
SIMGPU_LIB       ?= build/simgpu-$(CUDA)
SIMGPU_PYTHON    ?= python3
CUDART_12        := 12080
CUDART_13        := 13000
STANDINS         := $(SIMGPU)/standins
SIMGPU_LIBRARIES := $(wildcard $(SIMGPU)/cudart/* $(STANDINS)/* $(STANDINS)/nccl/* $(STANDINS)/kernels/*) $(CUDA_HEADERS)
LIBRARY_CFLAGS   := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fvisibility=hidden -fPIC $(CUDA_CFLAGS) -I$(STANDINS) -Wa,-I$(STANDINS)/kernels
LIBRARY_LDFLAGS  := -shared -Wl,--build-id -Wl,-z,defs

.PHONY: simgpu simgpu-libraries
simgpu: simgpu-libraries build/simulated/libcuda.so.1
	ln -sf $(abspath build/simulated/libcuda.so.1) $(SIMGPU_LIB)/libcuda.so.1
	echo "simgpu: LD_LIBRARY_PATH=$(abspath $(SIMGPU_LIB))"

# The functions that programs import from a library are generated, except those that are written by hand.
simgpu-libraries: $(SIMGPU_LIB)/libcudart.so.$(CUDA) build/nvml/libnvidia-ml.so.1
	rm -rf $(SIMGPU_LIB)/standins
	$(SIMGPU_PYTHON) $(STANDINS)/generate.py $(SIMGPU_LIB)/standins $(CUDA) $(FOR)
	set -e; for so in $$(cat $(SIMGPU_LIB)/standins/sonames); do \
		by_hand=; \
		case $$so in \
		libcublas.so*) by_hand="$(addprefix $(STANDINS)/,cublas.c gemm.c launch.c images.S)" ;; \
		libcublasLt.so*) by_hand="$(addprefix $(STANDINS)/,cublasLt.c gemm.c launch.c images.S)" ;; \
		libcudnn.so*) by_hand="$(addprefix $(STANDINS)/,cudnn.c launch.c)" ;; \
		libnccl.so*) by_hand="-Wa,-I$(STANDINS)/nccl $(NCCL_SRC)" ;; \
		esac; \
		$(CC) $(LIBRARY_CFLAGS) $(LIBRARY_LDFLAGS) -Wl,-soname,$$so -Wl,--version-script=$(SIMGPU_LIB)/standins/$$so.map \
			-o $(SIMGPU_LIB)/$$so $(SIMGPU_LIB)/standins/$$so.c $$by_hand -ldl -lpthread; \
	done
	cp build/nvml/libnvidia-ml.so.1 $(SIMGPU_LIB)/

$(SIMGPU_LIB)/libcudart.so.$(CUDA): $(wildcard $(SIMGPU)/cudart/*) $(CUDA_HEADERS)
	@mkdir -p $(@D)
	sed s/@CUDA@/$(CUDA)/ $(SIMGPU)/cudart/export.map >$(@D)/cudart.map
	$(CC) $(LIBRARY_CFLAGS) -DCUDART_VERSION=$(CUDART_$(CUDA)) $(LIBRARY_LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=$(@D)/cudart.map \
		-o $@ $(SIMGPU)/cudart/*.c -ldl -lpthread

# A program over the runtime and the stand-in of cuBLAS, all of it sanitized.
build/test/runtime_test: $(SIMGPU)/test/runtime_test.c $(SIMGPU_LIBRARIES) build/simulated-asan/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(SIMGPU_TEST_CFLAGS) -I$(STANDINS) -Wa,-I$(STANDINS)/kernels -o $@ $< $(wildcard $(SIMGPU)/cudart/*.c) $(addprefix $(STANDINS)/,cublas.c gemm.c launch.c images.S) -ldl -lpthread

# Products of both stand-ins against plain C.
build/test/gemm_test: $(SIMGPU)/test/gemm_test.c $(SIMGPU_LIBRARIES) build/simulated-asan/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(SIMGPU_TEST_CFLAGS) -I$(STANDINS) -Wa,-I$(STANDINS)/kernels -o $@ $< $(addprefix $(STANDINS)/,cublas.c cublasLt.c gemm.c launch.c images.S) \
		build/simulated-asan/libcuda.so.1 -ldl -lpthread -lm

# The driver's and the interposer's readers of images, as one program.
build/test/image_fuzz: $(SIMGPU)/test/image_fuzz.c $(SIMGPU)/test/image_fuzz_preload.c interpose/preload/image.c interpose/preload/sha256.c $(SIMGPU_ASAN_OBJ)
	@mkdir -p $(@D)
	$(CC) $(SIMGPU_TEST_CFLAGS) -Iinterpose/preload $^ -o $@ -lpthread -ldl -lm

# All of it under AddressSanitizer and UBSan.
simgpu-test: build/test/driver_test build/test/ptx_test build/test/runtime_test build/conformance-asan build/test/image_fuzz build/test/gemm_test build/test/nccl_test toolchain-test
	build/test/image_fuzz 5000 1
	LD_LIBRARY_PATH=build/simulated-asan build/test/runtime_test
	LD_LIBRARY_PATH=build/simulated-asan build/test/gemm_test
	LD_LIBRARY_PATH=build/simulated-asan build/test/nccl_test
	if command -v $(SIMGPU_PYTHON) >/dev/null; then $(SIMGPU_PYTHON) -m unittest -q $(SIMGPU)/test/test_generate.py; fi
	build/test/ptx_test
	LD_LIBRARY_PATH=build/simulated-asan build/test/driver_test
	@for machine in SIMGPU_DEVICES=1 SIMGPU_DEVICES=2 "SIMGPU_DEVICES=2 SIMGPU_MULTICAST=1"; do env $$machine SIMGPU_LOG=/dev/null LD_LIBRARY_PATH=build/simulated-asan build/conformance-asan > build/test/conformance.txt || \
		{ grep -v 'passed$$' build/test/conformance.txt; exit 1; }; done
	@tail -n 1 build/test/conformance.txt
