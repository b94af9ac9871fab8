# The files that users install, for both architectures, and the tests of the other one under emulation (Debian: gcc-aarch64-linux-gnu,
# libc6-dev-arm64-cross, qemu-user). Run on amd64.
DIST_CC_amd64 ?= x86_64-linux-gnu-gcc
DIST_CC_arm64 ?= aarch64-linux-gnu-gcc
DIST_FLAGS    := -O2 -ffile-prefix-map=$(CURDIR)=.

# A tree is made anew each time, because a release must not have stale files.
.PHONY: dist dist-amd64 dist-arm64
dist-amd64 dist-arm64: dist-%: $(INTERPOSE_SRC) $(INTERPOSE_HEADERS)
	@rm -rf build/dist/linux-$* && mkdir -p build/dist/linux-$*/lib/python
	GOOS=linux GOARCH=$* CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -ldflags=-s -o build/dist/linux-$*/ ./cmd/medusa ./cmd/medusa-probe
	$(DIST_CC_$*) $(DIST_FLAGS) $(INTERPOSE_CFLAGS) -o build/dist/linux-$*/lib/libmedusa_interpose.so $(INTERPOSE_SRC) $(INTERPOSE_LDFLAGS) -Wl,--build-id -s -ldl
	GOOS=linux GOARCH=$* CGO_ENABLED=1 CC=$(DIST_CC_$*) $(GO) build -trimpath -buildvcs=auto -ldflags=-s -buildmode=c-shared -o build/dist/linux-$*/lib/libmedusa.so ./cmd/libmedusa
	@rm build/dist/linux-$*/lib/libmedusa.h
	cp -r $(PLUGINS) build/dist/linux-$*/lib/python/
	@rm -rf build/dist/linux-$*/lib/python/*/__pycache__

# The license texts of all linked code, including Go's. The tool asks the network for URLs, which are not needed here, so its
# complaints go to a file.
RELEASE_TOOL := $(GO) tool -modfile=scripts/tools/release/go.mod
.PHONY: dist-licenses
dist-licenses:
	@rm -rf build/dist/licenses && mkdir -p build/dist/licenses/std
	cp "$$($(GO) env GOROOT)/LICENSE" build/dist/licenses/std/
	CGO_ENABLED=1 $(RELEASE_TOOL) go-licenses save --force --ignore medusa --save_path build/dist/licenses/modules ./cmd/medusa ./cmd/medusa-probe ./cmd/libmedusa \
		2>build/dist/licenses.log || { cat build/dist/licenses.log >&2; exit 1; }

# KEY=release.key signs the checksums (medusa keygen makes one); BUILDER names the builder in the provenance statement.
dist: dist-amd64 dist-arm64 dist-licenses
	@rm -f build/dist/medusa-*
	$(GO) run ./scripts/dist $(if $(KEY),-key "$(KEY)") $(if $(BUILDER),-builder "$(BUILDER)")

# Builds the same commit twice, in different folders and with separate caches, and compares all files that users fetch.
.PHONY: test-dist audit
test-dist:
	scripts/test-dist

# Checks all linked code for known vulnerabilities. It fails without a database. GOVULNDB names one.
audit:
	scripts/audit

QEMU_ARM64  ?= qemu-aarch64 -L /usr/aarch64-linux-gnu
ARM64       := build/arm64
# Packages whose tests neither start programs that they build nor build programs for the host.
ARM64_GO    := ./graphir/... ./kvprofile/... ./artifacts/... ./inspect/doctor ./interpose/trace ./inspect/... ./internal/cubin ./internal/cuda \
	./restore/digest ./serving/schedule/... ./serving/simulate $(addprefix ./runners/reference/,config engine marks oracle safetensors serve tokenizer)

$(ARM64)/simulated/libcuda.so.1: $(wildcard simgpu/driver/*/*) $(SIMGPU_DEPS)
	@mkdir -p $(@D)
	$(DIST_CC_arm64) $(SIMGPU_CFLAGS) $(SIMGPU_SRC) -o $@ $(SIMGPU_LDFLAGS)

$(ARM64)/lib/libvendorblas.so: $(BLAS_DEPS)
	@mkdir -p $(@D)
	$(DIST_CC_arm64) $(CFLAGS) $(BLAS_FLAGS) -shared -Wl,-soname,libvendorblas.so -o $@ $(BLAS_SRC) -ldl -pthread

$(ARM64)/conformance: $(wildcard simgpu/conformance/*) $(CUDA_HEADERS)
	@mkdir -p $(@D)
	$(DIST_CC_arm64) -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -I$(SIMGPU)/conformance $(CUDA_CFLAGS) $(CONFORMANCE_SRC) -o $@ -ldl -lpthread

# Debian's packages for missing tools: cross compiler, emulator.
.PHONY: test-arm64 arm64-tools
arm64-tools:
	command -v $(DIST_CC_arm64) $(firstword $(QEMU_ARM64)) >/dev/null || \
		$$([ $$(id -u) = 0 ] || echo sudo) apt-get install -y --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user

test-arm64: arm64-tools
	$(MAKE) --no-print-directory bin dist-arm64 $(ARM64)/simulated/libcuda.so.1 $(ARM64)/conformance $(ARM64)/lib/libvendorblas.so
	GOARCH=arm64 CGO_ENABLED=0 $(GO) build -o $(ARM64)/ ./test/zoo ./runners/reference
	scripts/test-arm64 "$(QEMU_ARM64)" $(ARM64) build/dist/linux-arm64 $(ARM64_GO)
