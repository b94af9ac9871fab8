# `make help` lists the targets; a line "## PURPOSE: make TARGET | text" here or in a rules.mk puts one there. `make V=1` shows commands.
## Build: make | everything that a user needs, below build/
## Build: make install PREFIX=DIR | the same in DIR/bin, DIR/lib/medusa and DIR/include
## Build: make clean | removes build/
## Try: make demo | the main job, on the simulated GPU (DEVICE=cuda: on a real one; ENGINE=vllm: with real vLLM; MODEL=dir)
## Test: make test | all tests; needs no GPU
## Test: make check | formatting, vet, staticcheck, stale generated files
## Test: make faults | every driver call of a restored start fails once
## Test: make attack | artifacts, traces, images, registries and kills that are made to do harm (N=20000 SEED=1)
## Test: make attack-sample | a minute of it
## Test: make mutants | each mechanism switched off fails its test (FRESH=1)
## Test: make fuzz-long | millions of inputs for the readers of files, manifests, traces and images
## Test: make test-oci | artifacts against a real registry (Debian's docker-registry)
CC      ?= cc
CFLAGS  ?= -O2 -g
DEVICE  ?= simulated
MODEL   ?= runners/reference/models/tiny
GO      ?= go
export CGO_ENABLED ?= 0

# With V=1 commands are shown. Otherwise each file below build/ is named when its first command begins, so that a long build is not
# silent: make expands SHELL for each command.
ifndef V
.SILENT:
USED_SHELL := $(SHELL)
SHELL = $(if $(filter-out $(NAMED),$(filter build/%,$@)),$(eval NAMED += $@)$(info $()  $@))$(USED_SHELL)
endif

.PHONY: all help install lib bin demo test check generate clean conformance mutants faults attack attack-sample test-oci fuzz-long
all: lib bin build/lib/libmedusa.so build/lib/python

include $(wildcard internal/cuda/rules.mk interpose/rules.mk cmd/*/rules.mk restore/*/rules.mk simgpu/rules.mk simgpu/*/rules.mk runners/rules.mk runners/*/rules.mk serving/simulate/rules.mk \
	docs/kubernetes/rules.mk serving/picker/rules.mk test/*/rules.mk scripts/*/rules.mk)

# Purposes come in the order of their first line.
help:
	awk -F' [|] ' '/^## [A-Z]/ { purpose = $$1; sub(/^## /, "", purpose); sub(/: .*/, "", purpose); if (!(purpose in text)) order[++n] = purpose; \
		sub(/^## [^:]*: /, "", $$1); text[purpose] = text[purpose] sprintf("  %-34s %s\n", $$1, $$2) } \
		END { for (i = 1; i <= n; i++) printf("%s:\n%s", order[i], text[order[i]]) }' $(MAKEFILE_LIST)

# DESTDIR is put before PREFIX, as packagers expect.
PREFIX ?= /usr/local
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/medusa $(DESTDIR)$(PREFIX)/include
	install build/medusa build/medusa-probe $(DESTDIR)$(PREFIX)/bin/
	install build/lib/libmedusa_interpose.so build/lib/libmedusa.so $(DESTDIR)$(PREFIX)/lib/medusa/
	rm -rf $(DESTDIR)$(PREFIX)/lib/medusa/python && cp -r build/lib/python $(DESTDIR)$(PREFIX)/lib/medusa/
	install -m 644 interpose/preload/medusa.h cmd/libmedusa/libmedusa.h $(DESTDIR)$(PREFIX)/include/

lib: build/lib/libmedusa_interpose.so build/lib/libvendorblas.so build/lib/calllog/libcuda.so.1 build/simulated/libcuda.so.1

bin:
	echo "  build/medusa and other programs in Go"
	$(GO) build -o build/ ./cmd/medusa ./cmd/medusa-probe
	$(GO) build -o build/reference ./runners/reference

# The engine of the whole-process tests.
.PHONY: zoo
zoo:
	$(GO) build -o build/zoo ./test/zoo

ifeq ($(ENGINE),vllm)
demo: demo-vllm
else
demo:
	$(if $(ENGINE),$(error ENGINE=$(ENGINE): the demo knows vllm))
	echo "building (a minute or two the first time)"
	$(MAKE) --no-print-directory all
	$(GO) run ./test/demo -device $(DEVICE) -model $(MODEL)
endif

# C under AddressSanitizer and UBSan, Go under the race detector (which needs cgo), each fuzz target for a few seconds.
test: all simgpu-test interpose-test blas-test torch-test vllm-test pool-test
	command -v valgrind >/dev/null || echo "valgrind is not installed: instructions are not counted" >&2
	CGO_ENABLED=1 $(GO) test -race ./...
	scripts/fuzz 3s

check:
	scripts/check

generate:
	$(GO) generate ./...

test-oci: all
	scripts/test-oci

# Readers of what others made: graph IR, artifacts, directories in them, manifests, traces, images. A million inputs and more
# beyond those that an earlier run found interesting.
fuzz-long: build/test/image_fuzz
	scripts/fuzz 252000x graphir artifacts interpose/trace internal/cubin
	build/test/image_fuzz 1000000 $(or $(SEED),1)

# Every driver call of a restored start fails once, with each error that is documented for it.
faults: all zoo
	$(GO) run ./test/faults

attack: all zoo build/test/image_fuzz
	build/test/image_fuzz $(or $(N),20000) $(or $(SEED),1)
	$(GO) build -o build/attack ./test/attack
	build/attack -n $(or $(N),20000) -seed $(or $(SEED),1)

# Artifacts alone, with several seeds. test/attack.TestAttack has a few attacks of every kind.
attack-sample: all zoo
	$(GO) build -o build/attack ./test/attack
	for seed in 1 2 3 4 5; do build/attack -n 1000 -seed $$seed -only stages,live,fallbacks || exit 1; done

# Repeats only what changed since an earlier run, also one that was interrupted (build/mutants/results.json). FRESH=1 repeats all.
mutants: all
	$(GO) run ./test/mutants -relocations 100
	$(GO) run ./test/mutants $(if $(FRESH),-fresh)

clean:
	rm -rf build
