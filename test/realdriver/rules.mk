# NVIDIA's own driver on a machine without a GPU: 550 MB of packages of others, fetched into DIR and kept there for the next call.
# No part of `make test`.
build/test/real-query build/test/real-runtime: build/test/real-%: test/realdriver/programs/%.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -o $@ $< -ldl

## Test: make test-real-driver | NVIDIA's own driver without a GPU: fetches 550 MB of packages of others (DIR=folder SERIES=550)
.PHONY: test-real-driver
test-real-driver: lib bin build/conformance build/test/real-query build/test/real-runtime
	$(GO) run ./test/realdriver $(if $(DIR),-dir $(DIR)) $(if $(MIRROR),-mirror $(MIRROR)) $(if $(SERIES),-series $(SERIES))
