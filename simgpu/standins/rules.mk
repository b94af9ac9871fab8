# The kernels of the stand-ins. The PTX is committed; only changing a kernel needs clang.
.PHONY: standins-ptx
standins-ptx:
	for f in $(wildcard $(STANDINS)/kernels/*.cu); do \
		$(PTX_CLANG) $(filter-out -I%,$(PTX_FLAGS)) -I$(STANDINS)/kernels -o $${f%.cu}.ptx $$f || exit 1; \
	done
	$(PTX_CLANG) $(filter-out -I%,$(PTX_FLAGS)) -o $(STANDINS)/nccl/collective.ptx $(STANDINS)/nccl/collective.cu

# Communicators of processes.
NCCL_SRC := $(addprefix $(STANDINS)/,nccl/nccl.c nccl/bootstrap.c nccl/image.S launch.c)
build/nccl/libnccl.so.2: $(NCCL_SRC) $(wildcard $(STANDINS)/*.h $(STANDINS)/nccl/*)
	@mkdir -p $(@D)
	$(CC) $(LIBRARY_CFLAGS) $(LIBRARY_LDFLAGS) -Wa,-I$(STANDINS)/nccl -Wl,-soname,libnccl.so.2 -o $@ $(NCCL_SRC) -ldl -lpthread

build/nvml/libnvidia-ml.so.1: $(STANDINS)/nvml.c $(STANDINS)/stub.h $(CUDA_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(LIBRARY_CFLAGS) $(LIBRARY_LDFLAGS) -Wl,-soname,libnvidia-ml.so.1 -o $@ $< -ldl

build/test/nccl_test: $(SIMGPU)/test/nccl_test.c build/simulated-asan/libcuda.so.1 $(NCCL_SRC) $(wildcard $(STANDINS)/*.h $(STANDINS)/nccl/*)
	@mkdir -p $(@D)
	$(CC) $(SIMGPU_TEST_CFLAGS) -I$(STANDINS) -Wa,-I$(STANDINS)/nccl -o $@ $< $(NCCL_SRC) build/simulated-asan/libcuda.so.1 -ldl -lpthread

# PyTorch's products against the CPU's; needs torch, and no GPU.
.PHONY: test-products
test-products: torch
	LD_LIBRARY_PATH=$(abspath $(TORCH_LIB)):$(CURDIR)/build/simulated SIMGPU_MACHINE_CODE=refuse \
		$(abspath $(TORCH_VENV))/bin/python $(STANDINS)/test/torch_products.py
