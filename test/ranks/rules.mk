# Engines of several worker processes; included by the root Makefile.
RANKS := test/ranks

build/ranks: $(RANKS)/engine/engine.c runners/example/model.h build/lib/libmedusa.so build/simulated/libcuda.so.1 build/nccl/libnccl.so.2
	$(CC) $(CFLAGS) $(EXAMPLE_FLAGS) -Irunners/example -o $@ $(RANKS)/engine/engine.c -Lbuild/lib -lmedusa -Lbuild/nccl -l:libnccl.so.2 -Lbuild/simulated -l:libcuda.so.1 -ldl \
		-Wl,-rpath,'$$ORIGIN/lib:$$ORIGIN/nccl'

# Graphs with collective calls, over 2 and 4 ranks, and mistakes that have to be noticed.
.PHONY: test-ranks
test-ranks: build/ranks build/lib/libmedusa_interpose.so bin
	LD_LIBRARY_PATH=$(CURDIR)/build/simulated $(GO) run ./test/ranks

# Artifacts that are made on one GPU, one rank after another, for 2 and 8 ranks.
.PHONY: test-ranks-alone
test-ranks-alone: build/ranks build/lib/libmedusa_interpose.so bin
	LD_LIBRARY_PATH=$(CURDIR)/build/simulated $(GO) run ./test/ranks -alone

# Failures of a rank: `make test-ranks-faults N=100 SEED=7`.
.PHONY: test-ranks-faults
test-ranks-faults: build/ranks build/lib/libmedusa_interpose.so bin
	LD_LIBRARY_PATH=$(CURDIR)/build/simulated $(GO) run ./test/ranks -faults -n $(or $(N),33) -seed $(or $(SEED),1)

# The processor time of a rank of eight until it is ready, beside that of the only rank of each of eight engines: ROUNDS=15 starts of each, on an idle machine.
.PHONY: test-ranks-cost
test-ranks-cost: build/ranks build/lib/libmedusa_interpose.so bin
	LD_LIBRARY_PATH=$(CURDIR)/build/simulated $(GO) run ./test/ranks -cost $(or $(ROUNDS),15)

# The same of PyTorch's ranks: RANKS_OF=2, N=100, SEED=7.
.PHONY: test-torch-ranks-faults
test-torch-ranks-faults: torch
	$(TORCH_PYTHON) $(TORCH)/test/run_ranks_faults.py $(TORCH_RANKS) --ranks $(or $(RANKS_OF),2) --count $(or $(N),100) --seed $(or $(SEED),1)

# The same of vLLM's ranks, ten failures: RANKS_OF=2.
.PHONY: test-vllm-ranks-faults
test-vllm-ranks-faults: vllm
	$(VLLM_PYTHON) $(VLLM)/test/ranks_faults.py $(VLLM_RUN) --ranks $(or $(RANKS_OF),2)
