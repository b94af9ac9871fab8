# Random programs: `make programs N=10000 SEED=7`.
.PHONY: programs programs-engine
programs-engine:
	$(GO) build -o build/programs-engine ./internal/test/programs/engine

programs: all programs-engine
	$(GO) run ./internal/test/programs/run -n $(or $(N),300) -seed $(or $(SEED),1)

# The PTX is committed; only changing a kernel needs clang.
.PHONY: programs-ptx
programs-ptx:
	$(PTX_CLANG) $(PTX_FLAGS) -o internal/test/programs/engine/kernels.ptx internal/test/programs/engine/kernels.cu
