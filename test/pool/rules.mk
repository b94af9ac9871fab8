# medusa pool under N requests (default 1000), with a small Python engine and random kills (SEED).
.PHONY: test-pool
test-pool: lib bin build/lib/python
	$(GO) build -o build/test-pool ./test/pool
	build/test-pool $(if $(N),-n $(N)) $(if $(SEED),-seed $(SEED))
