# Benchmarks, and the driver without a device that they run against (test/bench/stub).
BENCH := test/bench
BENCH_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror $(CUDA_CFLAGS) -I$(BENCH)/stub

# -Bsymbolic: its own calls must not lead to a preloaded library.
build/stub/libcuda.so.1: $(wildcard $(BENCH)/stub/*.[ch]) $(CUDA_HEADERS) $(GENERATED)/hooks_gen.h
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -Iinterpose/preload -fPIC -shared -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -o $@ $(BENCH)/stub/driver.c $(BENCH)/stub/nothing.c

build/stub/libfloor.so: $(BENCH)/stub/floor.c $(BENCH)/stub/stub.h $(CUDA_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -fPIC -shared -Wl,-z,lazy -o $@ $<

build/stub/calls: $(BENCH)/stub/calls.c build/stub/libcuda.so.1
	$(CC) $(BENCH_CFLAGS) -o $@ $< build/stub/libcuda.so.1

# Benchmarks of the restorer run in a process that has the stub as its driver, and the interposer before it. Their output is
# the input of benchstat (build/bench/new.txt); the last lines are the aims.
BENCH_RESTORE = cd restore/rebuild && LD_PRELOAD=$(CURDIR)/build/lib/libmedusa_interpose.so:$(CURDIR)/build/stub/libfloor.so LD_LIBRARY_PATH=$(CURDIR)/build/stub \
	MEDUSA_MODE=replay $(CURDIR)/build/bench/restore.test -test.run '^$$' -test.bench . -test.benchtime 1x

# Built without the race detector, even if the tests that ask for it run under it. Phony, because Go knows the sources.
## Measure: make bench | what Medusa itself costs, and its aims (docs/results/bench.md); ten minutes, 8 GB for temporary files
.PHONY: bench build/bench/restore.test build/bench/compile.test
build/bench/restore.test: BENCHED = ./restore/rebuild
build/bench/compile.test: BENCHED = ./materialize/compile
build/bench/restore.test build/bench/compile.test:
	@mkdir -p $(@D)
	$(GO) test -c -o $@ $(BENCHED)

bench: lib bin build/stub/libcuda.so.1 build/stub/libfloor.so build/stub/calls build/bench/restore.test
	$(BENCH_RESTORE) >$(CURDIR)/build/bench/new.txt
	$(GO) test -run '^$$$$' -bench . -benchtime 1x -timeout 1h ./materialize/compile ./interpose >>build/bench/new.txt
	$(GO) run ./test/bench/aims $(if $(HISTORY),-append docs/results/bench.md -commit "$$(git describe --always --dirty)") <build/bench/new.txt

# The cost of compiling the traces in the folders of MEDUSA_BENCH_TRACES.
.PHONY: bench-traces
bench-traces:
	@mkdir -p build/bench
	MEDUSA_BENCH_TRACES=$(MEDUSA_BENCH_TRACES) $(GO) test -run '^$$$$' -bench Kept -benchtime 1x ./materialize/compile | tee build/bench/traces.txt
