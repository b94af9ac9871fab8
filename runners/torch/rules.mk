# Real PyTorch on the simulated GPU: the CUDA build of torch in a virtual environment, a CUDA runtime of the project's own,
# and stand-ins for the libraries that torch links. Everything lies below build/torch; included by the root Makefile.

TORCH         := runners/torch
TORCH_VERSION ?= 2.8.0
TORCH_PYTHON  ?= python3
# The major version of CUDA that this torch is built for.
TORCH_CUDA    ?= 12
CUDART_12     := 12080
CUDART_13     := 13000
TORCH_VENV    ?= build/torch/venv-$(TORCH_VERSION)
TORCH_LIB     ?= build/torch/lib-$(TORCH_VERSION)
TORCH_CFLAGS  := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fvisibility=hidden -fPIC -Iinternal/cuda/include -I$(SIMGPU)/standins
TORCH_SO       = -shared -Wl,--build-id -Wl,-z,defs

# One shared object of each folder besides torch's own whose imports the stand-ins have to satisfy.
TORCH_USERS   ?=

# The nvidia-* wheels are what the stand-ins replace, hence --no-deps; these are the rest of torch's needs.
TORCH_NEEDS := typing_extensions sympy mpmath networkx jinja2 MarkupSafe filelock fsspec numpy

$(TORCH_VENV)/installed:
	@mkdir -p build/torch
	$(TORCH_PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/pip install --quiet --no-cache-dir --no-deps torch==$(TORCH_VERSION) $(TORCH_NEEDS)
	touch $@

# What the engine itself imports, and the Triton that this torch names.
TORCH_TRITON := from importlib.metadata import requires; print(next(r.split(";")[0] for r in requires("torch") if r.startswith("triton")))
$(TORCH_VENV)/engine: $(TORCH_VENV)/installed $(TORCH)/requirements.txt
	$(TORCH_VENV)/bin/python -m pip install --quiet --no-cache-dir -r $(TORCH)/requirements.txt
	$(TORCH_VENV)/bin/python -m pip install --quiet --no-cache-dir --no-deps "$$($(TORCH_VENV)/bin/python -c '$(TORCH_TRITON)')"
	touch $@

$(TORCH_LIB)/libcudart.so.$(TORCH_CUDA): $(wildcard $(SIMGPU)/cudart/*) $(wildcard internal/cuda/include/*.h)
	@mkdir -p $(@D)
	sed s/@CUDA@/$(TORCH_CUDA)/ $(SIMGPU)/cudart/export.map >$(@D)/cudart.map
	$(CC) $(TORCH_CFLAGS) -DCUDART_VERSION=$(CUDART_$(TORCH_CUDA)) $(TORCH_SO) -Wl,-soname,$(@F) -Wl,--version-script=$(@D)/cudart.map -o $@ $(SIMGPU)/cudart/*.c -ldl -lpthread

# Which symbols torch imports decides what is generated, so the lists are read from the installation.
$(TORCH_LIB)/stubs/sonames: $(SIMGPU)/standins/generate.py $(TORCH_VENV)/installed
	@mkdir -p $(@D)
	$(TORCH_PYTHON) $(SIMGPU)/standins/generate.py $(@D) $$(dirname $$(find $(TORCH_VENV) -name libtorch_cuda.so $(addprefix -o -name ,$(TORCH_USERS))))

# A generated library with what is written by hand for it, if anything.
$(TORCH_LIB)/built: $(TORCH_LIB)/stubs/sonames $(wildcard $(SIMGPU)/standins/*.[ch]) $(wildcard internal/cuda/include/*.h)
	set -e; for so in $$(cat $<); do \
		by_hand=; \
		case $$so in \
		libcublas.so*) by_hand="$(addprefix $(SIMGPU)/standins/,cublas.c gemm.c launch.c)" ;; \
		libcublasLt.so*) by_hand="$(addprefix $(SIMGPU)/standins/,cublasLt.c gemm.c launch.c)" ;; \
		libcudnn.so*) by_hand="$(addprefix $(SIMGPU)/standins/,cudnn.c launch.c)" ;; \
		esac; \
		$(CC) $(TORCH_CFLAGS) $(TORCH_SO) -Wl,-soname,$$so -Wl,--version-script=$(@D)/stubs/$$so.map -o $(@D)/$$so \
			$(@D)/stubs/$$so.c $$by_hand -ldl -lpthread; \
	done
	$(CC) $(TORCH_CFLAGS) $(TORCH_SO) -Wl,-soname,libnvidia-ml.so.1 -o $(@D)/libnvidia-ml.so.1 $(SIMGPU)/standins/nvml.c -ldl
	touch $@

# The name by which Triton links what it compiles for the host.
build/simulated/libcuda.so: build/simulated/libcuda.so.1
	ln -sf $(<F) $@

.PHONY: torch test-torch torch-programs torch-shapes
torch: all build/simulated/libcuda.so build/lib/libmedusa.so build/lib/python $(TORCH_VENV)/engine $(TORCH_LIB)/libcudart.so.$(TORCH_CUDA) $(TORCH_LIB)/built

# Needs no GPU; the first run installs torch (900 MB).
TORCH_RUN = $(TORCH_PYTHON) $(TORCH)/test/run.py --python $(TORCH_VENV)/bin/python --libraries $(TORCH_LIB) --build build --work build/torch/test

torch-programs: torch
	$(TORCH_RUN) --programs $(or $(N),40) --seed $(or $(SEED),1)

# The ten shapes of the paper's Table 1, and one of Qwen3's.
TORCH_SHAPES := falcon-7b,llama2-7b,llama2-13b,qwen1.5-0.5b,qwen1.5-1.8b,qwen1.5-4b,qwen1.5-7b,qwen1.5-14b,yi-6b,yi-9b,qwen3-0.6b
torch-shapes: torch
	$(TORCH_RUN) --title torch-shapes --shapes $(or $(SHAPES),$(TORCH_SHAPES))

test-torch: torch
	cd $(TORCH)/test && MEDUSA_BUILD=$(CURDIR)/build $(TORCH_PYTHON) -m unittest -q test_compare test_libraries test_library test_measure
	cd $(TORCH)/test && LD_LIBRARY_PATH=$(abspath $(TORCH_LIB)):$(CURDIR)/build/simulated SIMGPU_MACHINE_CODE=no-op \
		$(abspath $(TORCH_VENV))/bin/python -m unittest -q test_model test_weights
	$(TORCH_RUN)

# Records a torch engine, two layers of Llama 2 7B at 35 batch sizes, and measures what compiling its traces takes.
TORCH_BENCH := build/torch/bench
.PHONY: bench-torch
bench-torch: torch
	rm -rf $(TORCH_BENCH) && mkdir -p $(TORCH_BENCH)/torch-llama2-7b
	LD_LIBRARY_PATH=$(abspath $(TORCH_LIB)):$(CURDIR)/build/simulated SIMGPU_MACHINE_CODE=no-op HF_HUB_OFFLINE=1 \
		build/medusa materialize -o $(TORCH_BENCH)/torch.medusa --keep-traces $(TORCH_BENCH)/torch-llama2-7b -- \
		$(abspath $(TORCH_VENV))/bin/python $(TORCH)/engine.py --preset llama2-7b --layers 2 --vocabulary 2000 --tokens 2 >$(TORCH_BENCH)/materialize.txt
	$(MAKE) --no-print-directory bench-traces MEDUSA_BENCH_TRACES=$(CURDIR)/$(TORCH_BENCH)/torch-llama2-7b

# All that scripts/gpu-torch needs on a machine with a GPU besides torch: tools, libraries, engine, and the engine's Python
# packages for the interpreters that such machines have. What comes with torch is left out, and what only transformers' command line
# and downloads use.
TORCH_BUNDLE := build/torch/bundle
TORCH_UNUSED := hf.xet|pydantic.*|rich|typer|click|pygments|markdown.it.py|mdurl|shellingham|annotated.*|typing.inspection
TORCH_OWN    := torch|triton|numpy|sympy|mpmath|networkx|jinja2|markupsafe|filelock|fsspec|typing_extensions|pip|setuptools|nvidia.*
.PHONY: torch-bundle
torch-bundle: all build/lib/libmedusa.so build/lib/python $(TORCH_BUNDLE)/wheels/complete
	mkdir -p $(TORCH_BUNDLE)/lib $(TORCH_BUNDLE)/engine
	cp build/medusa build/medusa-probe $(TORCH_BUNDLE)/
	cp build/lib/libmedusa_interpose.so build/lib/libmedusa.so $(TORCH_BUNDLE)/lib/
	rm -rf $(TORCH_BUNDLE)/lib/python && mkdir $(TORCH_BUNDLE)/lib/python && cp -r build/lib/python/medusa $(TORCH_BUNDLE)/lib/python/
	rm -rf $(TORCH_BUNDLE)/engine && mkdir $(TORCH_BUNDLE)/engine && cp -r $(TORCH)/*.py $(TORCH)/presets $(TORCH_BUNDLE)/engine/
	test $$(du -sm $(TORCH_BUNDLE) | cut -f1) -lt 60 || { echo "torch-bundle: over 60 MB"; exit 1; }

$(TORCH_BUNDLE)/wheels/complete: $(TORCH_VENV)/engine
	rm -rf $(@D) && mkdir -p $(@D)
	$(TORCH_VENV)/bin/python -m pip freeze | grep -Eiv '^($(TORCH_OWN)|$(TORCH_UNUSED))==' >$(@D)/requirements.txt
	for v in 3.11 3.12 3.13; do \
		$(TORCH_VENV)/bin/python -m pip download --quiet --no-deps --only-binary :all: --python-version $$v --platform manylinux2014_x86_64 \
			--platform manylinux_2_28_x86_64 --dest $(@D) --requirement $(@D)/requirements.txt || exit 1; \
	done
	touch $@
