# Real vLLM on the simulated GPU: its CUDA build from PyPI in a virtual environment, with the runtime and the stand-ins of
# runners/torch built for CUDA 13. Everything lies below build/vllm; included by the root Makefile.

VLLM         := runners/vllm
VLLM_VERSION := 0.26.0
VLLM_PYTHON  ?= python3
VLLM_VENV    := build/vllm/venv-$(VLLM_VERSION)
VLLM_LIB     := build/vllm/lib-$(VLLM_VERSION)
VLLM_TORCH   := TORCH_CUDA=13 TORCH_VENV=$(VLLM_VENV) TORCH_LIB=$(VLLM_LIB) TORCH_USERS="_C_stable_libtorch.abi3.so _vllm_fa2_C.abi3.so"

# Below, runners/torch builds for this environment and has the rule for it. Equal files of several releases are linked, if hardlink is installed.
ifneq ($(TORCH_VENV),$(VLLM_VENV))
$(VLLM_VENV)/installed: $(VLLM)/requirements.txt $(wildcard $(VLLM)/requirements-$(VLLM_VERSION).txt)
	@mkdir -p build/vllm
	$(VLLM_PYTHON) -m venv $(VLLM_VENV)
	awk -F== '!seen[tolower($$1)]++ && $$2 != ""' $(filter-out $<,$^) $< > build/vllm/requirements-$(VLLM_VERSION)
	$(VLLM_VENV)/bin/pip install --quiet --no-cache-dir --no-deps -r build/vllm/requirements-$(VLLM_VERSION)
	-hardlink --quiet --ignore-time build/vllm/venv-*
	touch $@
endif

## Develop: make vllm-fingerprint VERSION=x | what a release of vLLM has otherwise than the supported ones
## Measure: make bench-boot | vllm serve until it is healthy: native, restored, with a pool (docs/pool.md; ROUNDS=5)
## Test: make test-vllm | vLLM on the simulated GPU (docs/vllm.md; VLLM_VERSION=x)
.PHONY: vllm test-vllm test-vllm-architectures test-vllm-faults test-vllm-serve test-vllm-plain test-vllm-sleep test-vllm-ranks test-vllm-data-parallel test-vllm-caches test-vllm-deployments vllm-test bench-boot vllm-fingerprint vllm-identity vllm-upstream
# The link is the name by which fastsafetensors loads the runtime.
vllm: all build/lib/libmedusa.so build/lib/python $(VLLM_VENV)/installed
	$(MAKE) --no-print-directory $(VLLM_TORCH) $(VLLM_LIB)/built
	ln -sf libcudart.so.13 $(VLLM_LIB)/libcudart.so

# The last commit that changed more than documents, if no other file has uncommitted changes.
VLLM_COMMIT = $(shell git diff --quiet HEAD -- . ':!*.md' ':!docs' && git log -1 --format=%h --abbrev=12 -- . ':!*.md' ':!docs')

VLLM_RUN = --python $(VLLM_VENV)/bin/python --libraries $(VLLM_LIB) --build build --work build/vllm/test

# Needs no GPU; the first run installs vLLM and torch (3.5 GB). Cases that were shown are not run again if the files that they depend on are the same. VLLM_VERSIONS: several
# releases, or all that are supported: the newest with every combination for four models, the oldest with the usual cases, others with six.
ifneq ($(VLLM_VERSIONS),)
VLLM_SUPPORTED := $(shell cd $(VLLM) && $(VLLM_PYTHON) -c "from medusa_vllm import gate; print(*gate.SUPPORTED)")
VLLM_FEW       := --models llama,qwen2-moe --pieces FULL_AND_PIECEWISE
VLLM_EVERY     := --every --models llama,qwen3,mistral,qwen2-moe
test-vllm:
	set -e; for version in $(if $(filter all,$(VLLM_VERSIONS)),$(VLLM_SUPPORTED),$(VLLM_VERSIONS)); do \
		case $$version in \
		$(lastword $(VLLM_SUPPORTED))) cases="$(VLLM_EVERY)" ;; \
		$(firstword $(VLLM_SUPPORTED))) cases= ;; \
		*) cases="$(VLLM_FEW)" ;; \
		esac; \
		$(MAKE) --no-print-directory test-vllm VLLM_VERSIONS= VLLM_VERSION=$$version VLLM_CASES="$$cases"; \
	done
else
test-vllm: vllm
	$(VLLM_PYTHON) $(VLLM)/test/run.py $(VLLM_RUN) --results docs/results/tested/vllm-$(VLLM_VERSION).json --commit "$(VLLM_COMMIT)" $(VLLM_CASES)
endif

# The outcome of each architecture that vLLM generates text with; several hours. Architectures that were shown are not run again if the files that they depend on are the same.
test-vllm-architectures: vllm
	$(VLLM_PYTHON) $(VLLM)/test/architectures.py $(VLLM_RUN) --results docs/results/vllm-architectures.json --commit "$(VLLM_COMMIT)"

# The faults that keep a start from being restored; some forty starts.
test-vllm-faults: vllm
	$(VLLM_PYTHON) $(VLLM)/test/faults.py $(VLLM_RUN)

# `vllm serve`, and an engine process of an offline LLM.
test-vllm-serve: vllm
	$(VLLM_PYTHON) $(VLLM)/test/serve.py $(VLLM_RUN)

# Medusa as pip installs it, switched on by MEDUSA_ARTIFACT alone.
.PHONY: test-vllm-wheel
## Test: make test-vllm-wheel | the wheel: pip installs and removes it, and MEDUSA_ARTIFACT alone makes vllm serve restore
test-vllm-wheel: vllm wheel-amd64
	$(VLLM_PYTHON) $(VLLM)/test/wheel.py --wheel build/dist/$(DIST_INFO:.dist-info=)-py3-none-manylinux_2_28_x86_64.whl $(VLLM_RUN)

# `vllm serve MODEL` with all of vLLM's defaults; RANKS_OF=2: over two ranks.
test-vllm-plain: vllm
	RANKS=$(RANKS_OF) $(VLLM_PYTHON) $(VLLM)/test/plain.py $(VLLM_RUN)

# vLLM sleeps and wakes, stock and restored; VLLM_CASES="--kinds V2": one kind of engine (KINDS of sleep.py).
test-vllm-sleep: vllm
	$(VLLM_PYTHON) $(VLLM)/test/sleep.py $(VLLM_RUN) $(VLLM_CASES)

# Tensor parallel ranks, with collective calls in graphs; RANKS_OF=2,4, VLLM_CASES="--models qwen2-moe --set enable_expert_parallel=true".
test-vllm-ranks: vllm
	$(VLLM_PYTHON) $(VLLM)/test/ranks_run.py $(VLLM_RUN) --ranks $(or $(RANKS_OF),2) $(VLLM_CASES)

# `vllm serve` with two engines of a dense model (data parallelism), from an artifact that one engine made.
test-vllm-data-parallel: vllm
	$(VLLM_PYTHON) $(VLLM)/test/data_parallel.py $(VLLM_RUN)

# The artifact bundles the output of JIT compilers: a first start on another machine does not compile.
test-vllm-caches: vllm
	$(VLLM_PYTHON) $(VLLM)/test/caches.py $(VLLM_RUN)

# One artifact restored in other places than the one where it was made, and each variable that counts as a difference with a name.
test-vllm-deployments: vllm
	$(VLLM_PYTHON) $(VLLM)/test/deployments.py $(VLLM_RUN)

# How long `vllm serve` takes until it is healthy: natively, restored, with a pool of the start's own and with one that runs (ROUNDS=5).
bench-boot: vllm
	ROUNDS=$(ROUNDS) $(VLLM_PYTHON) $(VLLM)/test/boot.py $(VLLM_RUN)

# Tests of the plug-in's decisions, if there is a Python. They need neither vLLM nor torch.
vllm-test:
	if command -v $(VLLM_PYTHON) >/dev/null; then $(VLLM_PYTHON) -m unittest discover -q -s $(VLLM)/test; fi

# The differences between a release and the supported ones, as far as the plug-in uses it: VERSION=x, or the folder SOURCE with the package. STORE=1 stores the
# result for docs/results. KEEP=1 makes the fingerprint with which starts of a supported release are compared.
vllm-fingerprint:
	$(VLLM_PYTHON) $(VLLM)/fingerprint/releases.py --version $(or $(VERSION),$(error vllm-fingerprint needs VERSION=x)) $(SOURCE:%=--source %) $(KEEP:%=--keep) \
		$(STORE:%=--results docs/results/vllm-fingerprint.json --page docs/results/vllm-fingerprint.md)

# The page about the variables and settings that an artifact depends on.
vllm-identity:
	$(VLLM_PYTHON) $(VLLM)/fingerprint/tables.py

# The patch that docs/upstream proposes fits the release: VERSION=x and SOURCE as above.
vllm-upstream:
	$(VLLM_PYTHON) $(VLLM)/upstream.py --version $(or $(VERSION),0.33.0) $(SOURCE:%=--source %)
