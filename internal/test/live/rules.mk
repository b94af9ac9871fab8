# `medusa serve` with reference engines on the simulated GPU: true tokens under four policies, times of stub engines against the simulator,
# and faults. REQUESTS: for each policy; SEEDS, SECONDS: of arrivals; PARTS: tokens, times, faults, overhead.
.PHONY: test-serve
test-serve: all
	$(GO) build -o build/live ./internal/test/live
	$(GO) build -o build/stub-engine ./internal/test/stubengine/stub
	build/live $(if $(REQUESTS),-requests $(REQUESTS)) $(if $(PARTS),-parts $(PARTS)) $(if $(SEED),-seed $(SEED)) $(if $(SEEDS),-seeds $(SEEDS)) \
		$(if $(SECONDS),-seconds $(SECONDS))
