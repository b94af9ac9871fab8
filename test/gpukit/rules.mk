# The kit for a machine with a GPU: `make gpu-kit` builds the folder, `make test-gpu-kit` makes all its steps on the simulated GPU
# in a root of its own (scripts/test-gpu-kit). The torch that such machines have decides which runtime and wheels come along.
KIT        := build/kit
KIT_SHIPPED := build/gpu-kit
KIT_PYTHON ?= 3.12
KIT_MIB    := 55
KIT_GO     := cmd/medusa cmd/medusa-probe runners/reference test/gpukit

build/test/floor: test/gpukit/programs/floor.c interpose/test/common.h $(INTERPOSE_HEADERS) build/simulated/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(INTERPOSE_TEST_CFLAGS) -Iinterpose/test -o $@ $< build/simulated/libcuda.so.1 -ldl

# Without torch: the files that steps 1, 2, 4 and 5 need.
## Measure: make gpu-kit | a folder that tries all this on a machine with a GPU, without Go, make or a network (docs/results)
.PHONY: gpu-kit-base gpu-kit test-gpu-kit
gpu-kit-base: lib build/conformance build/test/large build/test/exact build/test/floor build/lib/libmedusa.so build/lib/python build/nvml/libnvidia-ml.so.1
	mkdir -p $(KIT)/lib/calllog $(KIT)/simulated
	for p in $(KIT_GO); do CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o $(KIT)/ ./$$p || exit 1; done
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o $(KIT)/medusa-demo ./test/demo # it keeps its work in a folder demo
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o $(KIT)/programs ./test/programs/run
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o $(KIT)/programs-engine ./test/programs/engine
	cp build/conformance build/test/large build/test/exact build/test/floor $(KIT)/
	cp build/lib/libmedusa_interpose.so build/lib/libvendorblas.so build/lib/libmedusa.so $(KIT)/lib/
	cp build/lib/calllog/libcuda.so.1 $(KIT)/lib/calllog/
	cp build/simulated/libcuda.so.1 build/nvml/libnvidia-ml.so.1 $(KIT)/simulated/
	strip --strip-unneeded $(KIT)/lib/*.so $(KIT)/lib/calllog/libcuda.so.1 $(KIT)/simulated/*.so.1 $(KIT)/conformance
	ln -sf libcuda.so.1 $(KIT)/simulated/libcuda.so
	rm -rf $(KIT)/lib/python && mkdir -p $(KIT)/lib/python && cp -r build/lib/python/medusa_graphs* build/lib/python/medusa_vllm $(KIT)/lib/python/
	rm -rf $(KIT)/model && cp -r runners/reference/models/tiny $(KIT)/model

# The stand-ins of torch's libraries come along for the simulated GPU; a GPU's steps never see them.
gpu-kit: gpu-kit-base $(TORCH_LIB)/built $(KIT)/wheels/complete
	rm -rf $(KIT)/engine $(KIT)/simulated/torch && mkdir -p $(KIT)/engine $(KIT)/simulated/torch
	cp -r runners/torch/*.py runners/torch/presets $(KIT)/engine/
	mkdir $(KIT)/engine/vllm && cp runners/vllm/gpu/measure.py runners/vllm/gpu/shape.py runners/vllm/gpu/region.py test/gpukit/vllm/pack.py $(KIT)/engine/vllm/
	cp $(TORCH_LIB)/*.so* $(KIT)/simulated/torch/
	strip --strip-unneeded $(KIT)/simulated/torch/*.so*
	rm -rf $(KIT_SHIPPED) && mkdir -p $(KIT_SHIPPED) && cp test/gpukit/gpu-kit $(KIT_SHIPPED)/
	tar -C build --exclude kit/work -czf $(KIT_SHIPPED)/kit.tar.gz kit
	test $$(du -sm $(KIT_SHIPPED) | cut -f1) -le $(KIT_MIB) || { du -sm $(KIT_SHIPPED); echo "gpu-kit: over $(KIT_MIB) MiB"; exit 1; }
	echo "gpu-kit: $$(du -sm $(KIT_SHIPPED) | cut -f1) MiB in $(KIT_SHIPPED)"

# vLLM 0.26.0's packages, for machines with torch 2.11.0 and CUDA 13: step 11 puts the parts together.
.PHONY: gpu-kit-vllm
gpu-kit-vllm:
	rm -rf build/gpu-kit-vllm
	python3 test/gpukit/vllm/pack.py pack runners/vllm/requirements.txt build/gpu-kit-vllm --python $(KIT_PYTHON)

# Left out are packages that come with torch, and those that only transformers' command line and downloads use.
KIT_UNUSED := hf.xet|pydantic.*|rich|typer|click|pygments|markdown.it.py|mdurl|shellingham|annotated.*|typing.inspection
KIT_TORCH  := torch|triton|numpy|sympy|mpmath|networkx|jinja2|markupsafe|filelock|fsspec|typing_extensions|pip|setuptools|nvidia.*
$(KIT)/wheels/complete: $(TORCH_VENV)/engine
	rm -rf $(@D) && mkdir -p $(@D)
	$(TORCH_VENV)/bin/python -m pip freeze | grep -Eiv '^($(KIT_TORCH)|$(KIT_UNUSED))==' >$(@D)/requirements.txt
	$(TORCH_VENV)/bin/python -m pip download --quiet --no-deps --only-binary :all: --python-version $(KIT_PYTHON) \
		--platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 --dest $(@D) --requirement $(@D)/requirements.txt
	touch $@

test-gpu-kit: gpu-kit
	scripts/test-gpu-kit $(TORCH_VENV) $(if $(STEPS),-steps $(STEPS))
