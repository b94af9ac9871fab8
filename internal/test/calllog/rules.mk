# The counting driver proxy, for devices without a call log of their own; included by the root Makefile.
PROXY_SRC := $(wildcard internal/test/calllog/proxy/*.c)

build/lib/libcalllog.so: $(PROXY_SRC) $(wildcard internal/test/calllog/proxy/*.h internal/cuda/include/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fPIC -fvisibility=hidden -Iinternal/cuda/include \
		-shared -Wl,-soname,libcuda.so.1 -o $@ $(PROXY_SRC) -ldl -lpthread
