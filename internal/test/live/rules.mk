# `medusa serve` with reference engines on the simulated GPU: true tokens under every policy, and faults. REQUESTS: for each policy;
# PARTS: tokens, faults, overhead.
.PHONY: test-serve
test-serve: all
	$(GO) build -o build/live ./internal/test/live
	$(GO) build -o build/stub-engine ./internal/test/stubengine/stub
	build/live $(if $(REQUESTS),-requests $(REQUESTS)) $(if $(PARTS),-parts $(PARTS)) $(if $(SEED),-seed $(SEED))
