# A large cluster in virtual time, through package dispatch (docs/results/scale.md). GPUS, MODELS, RATE, SECONDS: sizes; SEEDS: their number; POLICIES; LEAST: fail below so many
# decisions a second; PAGE: a file for the page.
## Measure: make scale | 1,000 GPUs in virtual time: decisions a second, times to the first token (docs/results/scale.md)
.PHONY: scale
scale:
	$(GO) build -o build/scale ./test/scale
	build/scale $(if $(GPUS),-gpus $(GPUS)) $(if $(MODELS),-models $(MODELS)) $(if $(RATE),-rate $(RATE)) $(if $(SECONDS),-seconds $(SECONDS)) $(if $(SEEDS),-seeds $(SEEDS)) $(if $(POLICIES),-policies $(POLICIES)) $(if $(PAGE),-page $(PAGE)) -least $(or $(LEAST),20000)
