# The counting driver proxy, for devices without a call log of their own; included by the root Makefile. It has the driver's name,
# by which the interposer tells a driver's functions from those of other libraries.
PROXY_SRC := $(wildcard test/calllog/proxy/*.c)

build/lib/calllog/libcuda.so.1: $(PROXY_SRC) $(wildcard test/calllog/proxy/*.h) $(CUDA_HEADERS) $(GENERATED)/symbols_gen.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fPIC -fvisibility=hidden $(CUDA_CFLAGS) \
		-shared -Wl,-soname,libcuda.so.1 -o $@ $(PROXY_SRC) -ldl -lpthread
