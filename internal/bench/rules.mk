# Benchmarks, and what they run against: a driver without a device (internal/bench/stub).
BENCH := internal/bench
BENCH_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -Iinternal/cuda/include -I$(BENCH)/stub

# -Bsymbolic: its own calls must not lead to a preloaded library.
build/stub/libcuda.so.1: $(wildcard $(BENCH)/stub/*.[ch]) $(wildcard internal/cuda/include/*.h)
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -fPIC -shared -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -o $@ $(BENCH)/stub/driver.c $(BENCH)/stub/floor.c

build/stub/calls: $(BENCH)/stub/calls.c build/stub/libcuda.so.1
	$(CC) $(BENCH_CFLAGS) -o $@ $< build/stub/libcuda.so.1
