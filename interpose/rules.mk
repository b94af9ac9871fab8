# The interposer: build/lib/libmedusa_interpose.so, the same under sanitizers, and the tests of both.
INTERPOSE_GENERATED := $(addprefix $(GENERATED)/,hooks_gen.h trace_gen.h)
INTERPOSE_SRC     := $(wildcard interpose/preload/*.c)
INTERPOSE_HEADERS := $(wildcard interpose/preload/*.h) cmd/libmedusa/libmedusa.h $(CUDA_HEADERS) $(INTERPOSE_GENERATED) $(GENERATED)/contract_gen.c
INTERPOSE_CFLAGS  := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fPIC -fvisibility=hidden -fno-semantic-interposition \
                     -ftls-model=initial-exec -pthread $(CUDA_CFLAGS) -Iinterpose/preload -Icmd/libmedusa
INTERPOSE_LDFLAGS := -shared -pthread -Wl,--version-script=interpose/preload/export.map -Wl,-z,defs -Wl,-z,now
SANITIZE          := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

$(INTERPOSE_GENERATED) &: interpose/trace.spec internal/cuda/driver.spec $(GENERATORS)
	$(GO) run -C interpose ./gen -c $(abspath $(GENERATED))

$(GENERATED)/contract_gen.c: internal/contract/contract.spec $(GENERATORS)
	$(GO) run -C internal/contract ./gen -c $(abspath $(GENERATED))

build/lib/libmedusa_interpose.so: $(INTERPOSE_SRC) $(INTERPOSE_HEADERS) interpose/preload/export.map
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(INTERPOSE_CFLAGS) -o $@ $(INTERPOSE_SRC) $(INTERPOSE_LDFLAGS) -ldl

# The sanitizer's runtime must be preloaded before it. Symbols of that runtime are undefined here.
build/asan/libmedusa_interpose.so: $(INTERPOSE_SRC) $(INTERPOSE_HEADERS) interpose/preload/export.map
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(SANITIZE) $(INTERPOSE_CFLAGS) -o $@ $(INTERPOSE_SRC) $(filter-out %defs,$(INTERPOSE_LDFLAGS)) -ldl

# The programs that the tests run, and a driver of a few functions for those that need no GPU at all.
INTERPOSE_TEST_CFLAGS := -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror $(CUDA_CFLAGS) -Iinterpose/preload

build/test/fake/libcuda.so.1: interpose/test/fakecuda.c $(INTERPOSE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(INTERPOSE_TEST_CFLAGS) -fPIC -shared -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -o $@ $<

# One whose symbols have versions, which dlvsym needs.
build/test/versioned/libcuda.so.1: interpose/test/fakecuda.c $(INTERPOSE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(INTERPOSE_TEST_CFLAGS) -fPIC -shared -Wl,-Bsymbolic -Wl,--default-symver -Wl,-soname,libcuda.so.1 -o $@ $<

build/test/reach build/test/inert: build/test/%: interpose/test/%.c $(INTERPOSE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(INTERPOSE_TEST_CFLAGS) -o $@ $< -ldl

build/test/reach-linked: interpose/test/reach.c build/test/fake/libcuda.so.1
	$(CC) $(INTERPOSE_TEST_CFLAGS) -DLINKED -o $@ $< build/test/fake/libcuda.so.1

build/test/end build/test/plumbing: build/test/%: interpose/test/%.c interpose/test/common.h build/test/fake/libcuda.so.1
	$(CC) $(INTERPOSE_TEST_CFLAGS) -o $@ $< build/test/fake/libcuda.so.1

# They contain the interposer's own code, so running them tests it under sanitizers.
build/test/slow build/test/table build/test/sha256: build/test/%: interpose/test/%.c $(INTERPOSE_SRC) $(INTERPOSE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(INTERPOSE_TEST_CFLAGS) $(SANITIZE) -pthread -o $@ $<

build/test/graph build/test/figure6 build/test/hidden build/test/allocs build/test/trigger build/test/phases build/test/nodes build/test/outside build/test/threads build/test/exact build/test/gaps build/test/large build/test/old build/test/holes build/test/multicast build/test/devices: build/test/%: \
		interpose/test/%.c interpose/test/common.h $(INTERPOSE_HEADERS) build/simulated/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(INTERPOSE_TEST_CFLAGS) -Wl,--build-id -pthread -o $@ $< build/simulated/libcuda.so.1 -ldl

# The same tests with the library under sanitizers: a report ends the process, and its test fails.
.PHONY: interpose-test
interpose-test: build/asan/libmedusa_interpose.so
	INTERPOSE_SANITIZE=1 $(GO) test -count=1 ./interpose
