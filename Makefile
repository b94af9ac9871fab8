# make          everything below build/
# make demo     the main job, on the simulated GPU (DEVICE=cuda: on a real one; ENGINE=vllm: with real vLLM)
# make test     all tests; needs no GPU
# make bench    what Medusa itself costs, and its aims (docs/results/bench.md); ten minutes, 8 GB for temporary files
# make programs random programs, restored and compared (N=10000 SEED=7)
# make faults   every driver call of a restored start fails once
# make attack   artifacts, traces, images, registries and kills that are made to do harm (N=20000 SEED=1); make attack-sample: a minute of it
# make gpu-kit  a folder that tries all this on a machine with a GPU, without Go, make or a network (docs/results)
# make test-ptxas        all PTX of the project under NVIDIA's assembler, fetched from PyPI (PTXAS=program)
# make test-real-driver  NVIDIA's own driver without a GPU: fetches 550 MB of packages of others (DIR=folder SERIES=550)
# make test-tokens       vLLM computes true tokens on the simulated GPU, natively and restored (docs/true-tokens.md)
# make vllm-fingerprint VERSION=x  what a release of vLLM has otherwise than the supported ones (docs/results/vllm-fingerprint.md)
# make test-serve medusa serve: true tokens under four policies, killed engines and servers (REQUESTS=500: for each policy)
# make test-serve-vllm two models of vLLM and one of the reference engine under medusa serve on one simulated GPU (docs/serve.md)
# make test-elastic one artifact with any part of its KV cache mapped, resized under load; ENGINE=vllm (docs/elastic.md)
# make test-gateway Envoy, medusa-picker and three agents: true tokens, faults, held requests (docs/gateway.md); make test-picker: its unit tests
# make scale    1,000 GPUs in virtual time: decisions a second, times to the first token (docs/results/scale.md)
# make test-pool medusa pool: starts with other properties each, and random kills (N=1000 SEED=1)
# make bench-boot vllm serve until it is healthy: native, restored, with a pool (docs/pool.md; ROUNDS=5)
# make soak-serve medusa serve under all faults at once for MINUTES=60: nothing lost, no orphan, no leak
# make claims-serve  what the papers claim of their policies, live with stub engines (a page with plots)
# make test-oci artifacts against a real registry (Debian's docker-registry)
# make fuzz-long  millions of inputs for the readers of files, manifests, traces and images
# make dist     archives, an image layout, bills of materials, provenance and checksums (KEY=release.key signs them)
# make test-dist the same commit built twice gives the same bytes; make audit: known vulnerabilities; make test-arm64 runs under emulation
# make test-kubernetes   the manifests of docs/kubernetes against published schemas
# make check    formatting, vet, staticcheck, stale generated files
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

.PHONY: all lib bin demo test check generate clean conformance mutants faults attack attack-sample test-oci fuzz-long
all: lib bin

include $(wildcard internal/cuda/rules.mk interpose/rules.mk cmd/*/rules.mk restore/*/rules.mk simgpu/rules.mk simgpu/*/rules.mk runners/rules.mk runners/*/rules.mk serving/simulate/rules.mk \
	docs/kubernetes/rules.mk serving/picker/rules.mk test/*/rules.mk scripts/*/rules.mk)

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
