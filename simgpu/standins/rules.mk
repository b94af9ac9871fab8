# The kernels of the stand-ins. The PTX is committed; only changing a kernel needs clang.
.PHONY: standins-ptx
standins-ptx:
	for f in $(wildcard $(STANDINS)/kernels/*.cu); do \
		$(PTX_CLANG) $(filter-out -I%,$(PTX_FLAGS)) -I$(STANDINS)/kernels -o $${f%.cu}.ptx $$f || exit 1; \
	done

# PyTorch's products against the CPU's; needs torch, and no GPU.
.PHONY: test-products
test-products: torch
	LD_LIBRARY_PATH=$(abspath $(TORCH_LIB)):$(CURDIR)/build/simulated SIMGPU_MACHINE_CODE=refuse \
		$(abspath $(TORCH_VENV))/bin/python $(STANDINS)/test/torch_products.py
