# The example engine of docs/engines.md; included by the root Makefile. It is linked with libmedusa.so and the driver, here the
# simulated one.
EXAMPLE := runners/example
EXAMPLE_FLAGS := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror $(CUDA_CFLAGS) -Iinterpose/preload -Icmd/libmedusa

.PHONY: example
example: build/example
build/example: $(wildcard $(EXAMPLE)/*.[ch]) build/lib/libmedusa.so build/simulated/libcuda.so.1
	$(CC) $(CFLAGS) $(EXAMPLE_FLAGS) -o $@ $(EXAMPLE)/engine.c -Lbuild/lib -lmedusa -Lbuild/simulated -l:libcuda.so.1 -ldl -Wl,-rpath,'$$ORIGIN/lib'
