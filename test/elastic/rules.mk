# One artifact of the reference engine with an elastic KV cache, restored with parts of it mapped and beside other processes, resized under load, trading memory
# with another engine and giving way to one, and with faults in each call that maps or unmaps. RESIZES: under load. ROUNDS: of the trade. SEED: of sizes and requests.
# PARTS: sizes, neighbours, load, trade, pressure, faults.
#
# ENGINE=vllm: vLLM, whose kernels compute on the simulated GPU, by the case of make test-tokens that has an elastic cache. Needs clang; the first run installs vLLM.
## Test: make test-elastic | one artifact with any part of its KV cache mapped, resized under load; ENGINE=vllm (docs/elastic.md)
.PHONY: test-elastic
ifeq ($(ENGINE),vllm)
test-elastic: vllm toolchain
	$(MAKE) --no-print-directory test-tokens TITLE=test-elastic TOKENS_WORK=build/vllm/elastic CASES="$(or $(CASES),llama float32 V2 FULL_DECODE_ONLY elastic)" JOBS=1
else
test-elastic: all
	$(GO) build -o build/elastic ./test/elastic
	build/elastic $(if $(PARTS),-parts $(PARTS)) $(if $(RESIZES),-resizes $(RESIZES)) $(if $(ROUNDS),-rounds $(ROUNDS)) $(if $(SEED),-seed $(SEED))
endif
