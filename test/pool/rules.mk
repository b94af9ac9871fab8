# medusa pool under N requests (default 1000), with a small Python engine and random kills (SEED).
## Test: make test-pool | medusa pool: starts with other properties each, and random kills (N=1000 SEED=1)
.PHONY: test-pool
test-pool: lib bin build/lib/python
	$(GO) build -o build/test-pool ./test/pool
	build/test-pool $(if $(N),-n $(N)) $(if $(SEED),-seed $(SEED))
