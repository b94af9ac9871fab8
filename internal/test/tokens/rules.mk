# Unmodified vLLM computes on the simulated GPU, natively and restored (runners/vllm/tokens). Needs clang, and no GPU; the first run installs
# vLLM and torch (3 GB). CASES: "MODEL TYPE RUNNER MODE", separated by commas.
TOKENS := runners/vllm/tokens

.PHONY: test-tokens
test-tokens: vllm toolchain
	$(GO) build -o build/tokens ./internal/test/tokens
	$(VLLM_PYTHON) $(TOKENS)/run.py --python $(VLLM_VENV)/bin/python --libraries $(VLLM_LIB) --build build --work build/vllm/tokens $(if $(CASES),--cases "$(CASES)")
