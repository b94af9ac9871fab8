# The simulated GPU, its tests and the conformance program; included by the root Makefile.

SIMGPU := simgpu
SIMGPU_SRC := $(sort $(wildcard $(SIMGPU)/driver/*.c))
SIMGPU_DEPS := $(wildcard $(SIMGPU)/driver/*.h) $(wildcard internal/cuda/include/*.h)
SIMGPU_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fvisibility=hidden -fPIC -Iinternal/cuda/include
SIMGPU_LDFLAGS := -shared -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -Wl,-z,defs -lpthread -ldl -lm
SIMGPU_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

SIMGPU_OBJ := $(patsubst $(SIMGPU)/driver/%.c,build/simulated/obj/%.o,$(SIMGPU_SRC))
SIMGPU_ASAN_OBJ := $(patsubst $(SIMGPU)/driver/%.c,build/simulated-asan/obj/%.o,$(SIMGPU_SRC))
CONFORMANCE_SRC := $(sort $(wildcard $(SIMGPU)/conformance/*.c))
CONFORMANCE_DEPS := $(wildcard $(SIMGPU)/conformance/*.h) $(wildcard internal/cuda/include/*.h)

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
	$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -I$(SIMGPU)/conformance -Iinternal/cuda/include $(CONFORMANCE_SRC) -o $@ -ldl -lpthread

build/conformance-asan: $(CONFORMANCE_SRC) $(CONFORMANCE_DEPS)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror $(SIMGPU_SANITIZE) -I$(SIMGPU)/conformance -Iinternal/cuda/include $(CONFORMANCE_SRC) -o $@ -ldl -lpthread

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

SIMGPU_TEST_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -Iinternal/cuda/include $(SIMGPU_SANITIZE)
PTX_TEST_SRC := $(sort $(wildcard $(SIMGPU)/test/ptx_*.c))

DRIVER_TEST_SRC := $(sort $(wildcard $(SIMGPU)/test/driver_*.c))

build/test/driver_test: $(DRIVER_TEST_SRC) $(SIMGPU)/test/driver_test.h build/simulated-asan/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(SIMGPU_TEST_CFLAGS) $(filter-out %.h,$^) -o $@ -ldl -lpthread

build/test/ptx_test: $(PTX_TEST_SRC) $(SIMGPU)/test/ptx_test.h $(filter build/simulated-asan/obj/ptx_%,$(SIMGPU_ASAN_OBJ))
	@mkdir -p $(@D)
	$(CC) $(SIMGPU_TEST_CFLAGS) $(filter-out %.h,$^) -o $@ -lm -lpthread

# The driver's and the interposer's readers of images, as one program.
build/test/image_fuzz: $(SIMGPU)/test/image_fuzz.c $(SIMGPU)/test/image_fuzz_preload.c interpose/preload/image.c interpose/preload/sha256.c $(SIMGPU_ASAN_OBJ)
	@mkdir -p $(@D)
	$(CC) $(SIMGPU_TEST_CFLAGS) -Iinterpose/preload $^ -o $@ -lpthread -ldl -lm

# All of it under AddressSanitizer and UBSan.
simgpu-test: build/test/driver_test build/test/ptx_test build/conformance-asan build/test/image_fuzz
	build/test/image_fuzz 5000 1
	build/test/ptx_test
	LD_LIBRARY_PATH=build/simulated-asan build/test/driver_test
	@SIMGPU_LOG=/dev/null LD_LIBRARY_PATH=build/simulated-asan build/conformance-asan > build/test/conformance.txt || \
		{ grep -v 'passed$$' build/test/conformance.txt; exit 1; }
	@tail -n 1 build/test/conformance.txt
