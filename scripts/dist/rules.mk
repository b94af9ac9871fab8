# The files that users install, for both architectures, and the tests of the other one under emulation (Debian: gcc-aarch64-linux-gnu,
# libc6-dev-arm64-cross, qemu-user). Run on amd64.
DIST_CC_arm64 ?= aarch64-linux-gnu-gcc
DIST_FLAGS    := -O2 -ffile-prefix-map=$(CURDIR)=.

# C is compiled for an old glibc, with zig's headers and stubs, so that it runs on Debian 10, RHEL 8 and newer: manylinux_2_28.
DIST_PYTHON   ?= python3
DIST_TOOLS    := $(CURDIR)/build/dist-tools
DIST_MACHINE_amd64 := x86_64
DIST_MACHINE_arm64 := aarch64
DIST_ZIG      = $(DIST_TOOLS)/bin/python -m ziglang cc -target $(DIST_MACHINE_$*)-linux-gnu.2.28
$(DIST_TOOLS)/installed: scripts/dist/requirements.txt
	$(DIST_PYTHON) -m venv $(DIST_TOOLS)
	$(DIST_TOOLS)/bin/pip install --quiet -r $<
	touch $@

# A tree is made anew each time, because a release must not have stale files.
.PHONY: dist dist-amd64 dist-arm64
dist-amd64 dist-arm64: export ZIG_GLOBAL_CACHE_DIR := $(DIST_TOOLS)/zig
dist-amd64 dist-arm64: export ZIG_LOCAL_CACHE_DIR := $(DIST_TOOLS)/zig
dist-amd64 dist-arm64: dist-%: $(DIST_TOOLS)/installed $(INTERPOSE_SRC) $(INTERPOSE_HEADERS)
	@rm -rf build/dist/linux-$* && mkdir -p build/dist/linux-$*/lib
	GOOS=linux GOARCH=$* CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -ldflags=-s -o build/dist/linux-$*/ ./cmd/medusa
	$(DIST_ZIG) $(DIST_FLAGS) $(INTERPOSE_CFLAGS) -o build/dist/linux-$*/lib/libmedusa_interpose.so $(INTERPOSE_SRC) $(INTERPOSE_LDFLAGS) -Wl,--build-id -s -ldl
	GOOS=linux GOARCH=$* CGO_ENABLED=1 CC="$(DIST_ZIG)" $(GO) build -trimpath -buildvcs=auto -ldflags=-s -buildmode=c-shared -o build/dist/linux-$*/lib/libmedusa.so ./cmd/libmedusa
	@rm build/dist/linux-$*/lib/libmedusa.h
	GOOS=linux GOARCH=$* CGO_ENABLED=1 CC="$(DIST_ZIG)" $(GO) build -trimpath -buildvcs=auto -ldflags=-s -o build/dist/linux-$*/ ./cmd/medusa-probe
	$(call plugins-in,build/dist/linux-$*/lib/python)

# The plug-ins with all that they need, as pip installs them: no Python module is compiled, so one wheel fits every Python.
.PHONY: wheel wheel-amd64 wheel-arm64
## Release: make wheel | medusa_graphs-VERSION-py3-none-manylinux_2_28_*.whl for both architectures (make wheel-amd64: one)
wheel: wheel-amd64 wheel-arm64
# The least date that a zip file can have.
wheel-amd64 wheel-arm64: export SOURCE_DATE_EPOCH := 315532800
wheel-amd64 wheel-arm64: wheel-%: dist-% dist-licenses
	@rm -rf build/wheel/$* && mkdir -p build/wheel/$*/medusa_graphs-$(RELEASE).data/scripts
	cp -r build/dist/linux-$*/lib/python/. build/wheel/$*/
	mkdir build/wheel/$*/medusa_graphs/lib && cp build/dist/linux-$*/lib/*.so build/wheel/$*/medusa_graphs/lib/
	cp build/dist/linux-$*/medusa build/dist/linux-$*/medusa-probe build/wheel/$*/medusa_graphs-$(RELEASE).data/scripts/
	mkdir build/wheel/$*/$(DIST_INFO)/licenses && cp -r LICENSE build/dist/licenses/* build/wheel/$*/$(DIST_INFO)/licenses/
	printf 'Wheel-Version: 1.0\nGenerator: medusa %s\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_28_%s\n' $(RELEASE) $(DIST_MACHINE_$*) >build/wheel/$*/$(DIST_INFO)/WHEEL
	find build/wheel/$* -type f ! -name '*.so' ! -path '*/scripts/*' -exec chmod 644 {} +
	@mkdir -p build/dist && $(DIST_TOOLS)/bin/python -m wheel pack build/wheel/$* --dest-dir build/dist
	$(DIST_TOOLS)/bin/auditwheel show build/dist/$(DIST_INFO:.dist-info=)-py3-none-manylinux_2_28_$(DIST_MACHINE_$*).whl >build/wheel/$*.txt
	grep -E 'manylinux_2_(5|12|17|24|26|27|28)_' build/wheel/$*.txt || { cat build/wheel/$*.txt; exit 1; }

# The license texts of all linked code, including Go's. The tool asks the network for URLs, which are not needed here, so its
# complaints go to a file.
RELEASE_TOOL := $(GO) tool -modfile=scripts/tools/release/go.mod
.PHONY: dist-licenses
dist-licenses:
	@rm -rf build/dist/licenses && mkdir -p build/dist/licenses/std
	cp "$$($(GO) env GOROOT)/LICENSE" build/dist/licenses/std/
	CGO_ENABLED=1 $(RELEASE_TOOL) go-licenses save --force --ignore medusa --save_path build/dist/licenses/modules ./cmd/medusa ./cmd/medusa-probe ./cmd/libmedusa \
		2>build/dist/licenses.log || { cat build/dist/licenses.log >&2; exit 1; }

## Release: make dist | archives, an image layout, bills of materials, provenance and checksums (KEY=release.key signs them)
# KEY=release.key signs the checksums (medusa keygen makes one); BUILDER names the builder in the provenance statement.
dist: dist-amd64 dist-arm64 dist-licenses
	@rm -f build/dist/medusa-*
	$(GO) run ./scripts/dist $(if $(KEY),-key "$(KEY)") $(if $(BUILDER),-builder "$(BUILDER)")

# Builds the same commit twice, in different folders and with separate caches, and compares all files that users fetch.
## Release: make test-dist | the same commit built twice gives the same bytes
## Release: make audit | known vulnerabilities in linked code
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
## Test: make test-arm64 | the other architecture under emulation
.PHONY: test-arm64 arm64-tools
arm64-tools:
	command -v $(DIST_CC_arm64) $(firstword $(QEMU_ARM64)) >/dev/null || \
		$$([ $$(id -u) = 0 ] || echo sudo) apt-get install -y --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user

test-arm64: arm64-tools
	$(MAKE) --no-print-directory bin dist-arm64 $(ARM64)/simulated/libcuda.so.1 $(ARM64)/conformance $(ARM64)/lib/libvendorblas.so
	GOARCH=arm64 CGO_ENABLED=0 $(GO) build -o $(ARM64)/ ./test/zoo ./runners/reference
	scripts/test-arm64 "$(QEMU_ARM64)" $(ARM64) build/dist/linux-arm64 $(ARM64_GO)
