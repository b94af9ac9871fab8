# Real PyTorch on the simulated GPU: the CUDA build of torch in a virtual environment, a CUDA runtime of the project's own,
# and stand-ins for the libraries that torch links. Everything lies below build/torch; included by the root Makefile.

TORCH         := runners/torch
TORCH_VERSION ?= 2.8.0
TORCH_PYTHON  ?= python3
# The major version of CUDA that this torch is built for.
TORCH_CUDA    ?= 12
TORCH_VENV    ?= build/torch/venv-$(TORCH_VERSION)
TORCH_LIB     ?= build/torch/lib-$(TORCH_VERSION)

# One shared object of each folder besides torch's own whose imports the stand-ins have to satisfy.
TORCH_USERS   ?=

# The stand-ins replace the nvidia-* wheels, hence --no-deps; these are the rest of torch's needs.
TORCH_NEEDS := typing_extensions sympy mpmath networkx jinja2 MarkupSafe filelock fsspec numpy

$(TORCH_VENV)/installed:
	@mkdir -p build/torch
	$(TORCH_PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/pip install --quiet --no-cache-dir --no-deps torch==$(TORCH_VERSION) $(TORCH_NEEDS)
	touch $@

# The packages that the engine itself imports, and the Triton that this torch names.
TORCH_TRITON := from importlib.metadata import requires; print(next(r.split(";")[0] for r in requires("torch") if r.startswith("triton")))
$(TORCH_VENV)/engine: $(TORCH_VENV)/installed $(TORCH)/requirements.txt
	$(TORCH_VENV)/bin/python -m pip install --quiet --no-cache-dir -r $(TORCH)/requirements.txt
	$(TORCH_VENV)/bin/python -m pip install --quiet --no-cache-dir --no-deps "$$($(TORCH_VENV)/bin/python -c '$(TORCH_TRITON)')"
	touch $@

# The CUDA runtime and the stand-ins. torch's imports decide which functions of the stand-ins are generated.
$(TORCH_LIB)/built: $(TORCH_VENV)/installed $(SIMGPU_LIBRARIES)
	$(MAKE) --no-print-directory simgpu-libraries CUDA=$(TORCH_CUDA) SIMGPU_LIB=$(TORCH_LIB) SIMGPU_PYTHON=$(TORCH_PYTHON) \
		FOR="$$(test ! -d $(TORCH_VENV) || find -H $(TORCH_VENV) -name libtorch_cuda.so -printf '%h ' $(patsubst %,-o -name % -printf '%h ',$(TORCH_USERS)))"
	touch $@

# The name by which Triton links the code that it compiles for the host.
build/simulated/libcuda.so: build/simulated/libcuda.so.1
	ln -sf $(<F) $@

## Test: make test-torch | PyTorch's engine on the simulated GPU (docs/torch.md)
.PHONY: torch test-torch test-torch-ranks test-torch-ranks-alone torch-test torch-programs torch-shapes
torch: all build/simulated/libcuda.so build/lib/libmedusa.so build/lib/python $(TORCH_VENV)/engine $(TORCH_LIB)/built

# Needs no GPU; the first run installs torch (900 MB). CASE: this one of test-torch alone.
TORCH_RUN = $(TORCH_PYTHON) $(TORCH)/test/run.py --python $(TORCH_VENV)/bin/python --libraries $(TORCH_LIB) --build build --work build/torch/test

torch-programs: torch
	$(TORCH_RUN) --programs $(or $(N),40) --seed $(or $(SEED),1)

# The ten shapes of the paper's Table 1, and one of Qwen3's.
TORCH_SHAPES := falcon-7b,llama2-7b,llama2-13b,qwen1.5-0.5b,qwen1.5-1.8b,qwen1.5-4b,qwen1.5-7b,qwen1.5-14b,yi-6b,yi-9b,qwen3-0.6b
torch-shapes: torch
	$(TORCH_RUN) --title torch-shapes --shapes $(or $(SHAPES),$(TORCH_SHAPES))

# Tensor parallel ranks, with collective calls in graphs (RANKS_OF=2,4).
TORCH_RANKS = --python $(TORCH_VENV)/bin/python --libraries $(TORCH_LIB) --build build --work build/torch/test
test-torch-ranks: torch
	$(TORCH_PYTHON) $(TORCH)/test/run_ranks.py $(TORCH_RANKS) --ranks $(or $(RANKS_OF),2,4)

# The same from an artifact that was made with one device, one rank after another.
test-torch-ranks-alone: torch
	$(TORCH_PYTHON) $(TORCH)/test/run_ranks.py $(TORCH_RANKS) --ranks $(or $(RANKS_OF),2) --alone

# Tests of the plug-in's decisions, if there is a Python. They need no torch.
torch-test:
	if command -v $(TORCH_PYTHON) >/dev/null; then cd $(TORCH)/test && $(TORCH_PYTHON) -m unittest -q test_plugin test_ranges test_holes test_attach; fi

test-torch: torch torch-test
	cd $(TORCH)/test && MEDUSA_BUILD=$(CURDIR)/build $(TORCH_PYTHON) -m unittest -q test_compare test_results test_libraries test_library test_measure
	cd $(TORCH)/test && LD_LIBRARY_PATH=$(abspath $(TORCH_LIB)):$(CURDIR)/build/simulated SIMGPU_MACHINE_CODE=no-op \
		$(abspath $(TORCH_VENV))/bin/python -m unittest -q test_model test_weights
	$(TORCH_RUN) --results docs/results/tested/torch.json $(CASE:%=--only %)

# Records a torch engine, two layers of Llama 2 7B at 35 batch sizes, and measures the compilation of its traces.
TORCH_BENCH := build/torch/bench
.PHONY: bench-torch
bench-torch: torch
	rm -rf $(TORCH_BENCH) && mkdir -p $(TORCH_BENCH)/torch-llama2-7b
	LD_LIBRARY_PATH=$(abspath $(TORCH_LIB)):$(CURDIR)/build/simulated SIMGPU_MACHINE_CODE=no-op HF_HUB_OFFLINE=1 \
		build/medusa materialize -o $(TORCH_BENCH)/torch.medusa --keep-traces $(TORCH_BENCH)/torch-llama2-7b -- \
		$(abspath $(TORCH_VENV))/bin/python $(TORCH)/engine.py --preset llama2-7b --layers 2 --vocabulary 2000 --tokens 2 >$(TORCH_BENCH)/materialize.txt
	$(MAKE) --no-print-directory bench-traces MEDUSA_BENCH_TRACES=$(CURDIR)/$(TORCH_BENCH)/torch-llama2-7b
