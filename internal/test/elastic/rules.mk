# One artifact of the reference engine with an elastic KV cache, restored with parts of it mapped and beside other processes, resized under load, trading memory
# with another engine and giving way to one, and with faults in each call that maps or unmaps. RESIZES: under load. ROUNDS: of the trade. SEED: of sizes and requests.
# PARTS: sizes, neighbours, load, trade, pressure, faults.
.PHONY: test-elastic
test-elastic: all
	$(GO) build -o build/elastic ./internal/test/elastic
	build/elastic $(if $(PARTS),-parts $(PARTS)) $(if $(RESIZES),-resizes $(RESIZES)) $(if $(ROUNDS),-rounds $(ROUNDS)) $(if $(SEED),-seed $(SEED))
