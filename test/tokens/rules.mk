# Unmodified vLLM computes on the simulated GPU, natively and restored (runners/vllm/tokens). Needs clang, and no GPU; the first run installs
# vLLM and torch (3 GB). CASES: "MODEL TYPE RUNNER MODE", separated by commas, or all. JOBS: cases at the same time (2). A case that was finished with the
# same sources (all but pages) is not run again.
TOKENS := runners/vllm/tokens
TOKENS_SOURCES = $(shell for do in "ls-files -s" diff "ls-files -o --exclude-standard"; do git $$do -- . ":!docs" ":!*.md"; done | sha256sum | cut -c 1-16)

## Test: make test-tokens | vLLM computes true tokens on the simulated GPU, natively and restored (docs/true-tokens.md)
## Test: make test-serve-vllm | two models of vLLM and one of the reference engine under medusa serve on one simulated GPU (docs/serve.md)
.PHONY: test-tokens demo-vllm test-serve-vllm
test-tokens: vllm toolchain
	$(GO) build -o build/tokens ./test/tokens
	$(VLLM_PYTHON) $(TOKENS)/run.py --python $(VLLM_VENV)/bin/python --libraries $(VLLM_LIB) --build build --work $(or $(TOKENS_WORK),build/vllm/tokens) \
		--sources $(TOKENS_SOURCES) --results docs/results/tokens-$(VLLM_VERSION).json --commit "$(VLLM_COMMIT)" $(TITLE:%=--title %) $(if $(CASES),--cases "$(CASES)") --jobs $(or $(JOBS),2)

demo-vllm: vllm toolchain
	$(GO) build -o build/tokens ./test/tokens
	$(VLLM_PYTHON) $(TOKENS)/demo.py --python $(VLLM_VENV)/bin/python --libraries $(VLLM_LIB) --build build --work build/vllm/demo --sources $(TOKENS_SOURCES)

# `medusa serve` with two models of vLLM and one of the reference engine. REQUESTS, KILLS of engines, SEED.
test-serve-vllm: vllm toolchain
	$(VLLM_PYTHON) $(TOKENS)/under_serve.py --python $(VLLM_VENV)/bin/python --libraries $(VLLM_LIB) --build build --work build/vllm/serve \
		--sources $(TOKENS_SOURCES) $(REQUESTS:%=--requests %) $(KILLS:%=--kills %) $(SEED:%=--seed %)
