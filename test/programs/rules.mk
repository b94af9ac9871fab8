# Random programs: `make programs N=10000 SEED=7`.
## Test: make programs | random programs, restored and compared (N=10000 SEED=7)
.PHONY: programs programs-engine
programs-engine:
	$(GO) build -o build/programs-engine ./test/programs/engine

programs: all programs-engine
	$(GO) run ./test/programs/run -n $(or $(N),300) -seed $(or $(SEED),1)

# The PTX is committed; only changing a kernel needs clang.
.PHONY: programs-ptx
programs-ptx:
	$(PTX_CLANG) $(PTX_FLAGS) -o test/programs/engine/kernels.ptx test/programs/engine/kernels.cu
