# `medusa serve` with reference engines on the simulated GPU: true tokens under four policies, times of stub engines against the simulator,
# fairness, and faults. REQUESTS: for each policy; SEEDS, SECONDS: of arrivals; KILLS of engines, DEATHS of the server, CLIENTS that vanish; PARTS: tokens,
# openai, times, fairness, faults, overhead, bad-day. FULL=1: 500 requests for each policy, ten seeds, 500 kills, 50 deaths and 500 clients.
# Part openai asks with the openai package of Python, which is fetched from PyPI once.
ifdef FULL
REQUESTS ?= 500
SEEDS    ?= 10
KILLS    ?= 500
DEATHS   ?= 50
CLIENTS  ?= 500
endif
OPENAI_VENV := build/openai/venv
$(OPENAI_VENV)/installed: test/live/openai/requirements.txt
	python3 -m venv $(OPENAI_VENV)
	$(OPENAI_VENV)/bin/pip install --quiet --no-cache-dir --no-deps -r $<
	touch $@
comma := ,
## Test: make test-serve | medusa serve: true tokens under four policies, killed engines and servers (REQUESTS=500: for each policy)
.PHONY: test-serve
test-serve: all $(if $(filter openai,$(subst $(comma), ,$(PARTS))),$(OPENAI_VENV)/installed)
	$(GO) build -o build/live ./test/live
	$(GO) build -o build/stub-engine ./test/stubengine/stub
	build/live $(if $(REQUESTS),-requests $(REQUESTS)) $(if $(PARTS),-parts $(PARTS)) $(if $(SEED),-seed $(SEED)) $(if $(SEEDS),-seeds $(SEEDS)) \
		$(if $(SECONDS),-seconds $(SECONDS)) $(if $(KILLS),-kills $(KILLS)) $(if $(DEATHS),-deaths $(DEATHS)) $(if $(CLIENTS),-clients $(CLIENTS))

# A long run of all faults at once, with stub engines on loopback: no request lost silently, no orphan, no leak. Not part of CI.
MINUTES ?= 60
## Test: make soak-serve | medusa serve under all faults at once for MINUTES=60: nothing lost, no orphan, no leak
.PHONY: soak-serve
soak-serve: all
	$(GO) build -o build/live ./test/live
	$(GO) build -o build/stub-engine ./test/stubengine/stub
	build/live -parts soak -minutes $(MINUTES) $(if $(SEED),-seed $(SEED))

# The papers' claims, live with stub engines: OUT/serving.md and its plots, build/claims by default.
## Measure: make claims-serve | what the papers claim of their policies, live with stub engines (a page with plots)
.PHONY: claims-serve
claims-serve: all
	$(GO) build -o build/live ./test/live
	$(GO) build -o build/stub-engine ./test/stubengine/stub
	mkdir -p $(or $(OUT),build/claims)
	build/live -parts claims -out $(or $(OUT),build/claims) -seeds $(or $(SEEDS),8) -seconds $(or $(SECONDS),20) $(if $(SEED),-seed $(SEED))
