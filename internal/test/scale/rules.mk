# A large cluster in virtual time, through package dispatch (docs/results/scale.md). GPUS, MODELS, RATE, SECONDS: sizes; POLICIES; LEAST: fail below so many
# decisions a second.
.PHONY: scale
scale:
	$(GO) build -o build/scale ./internal/test/scale
	build/scale $(if $(GPUS),-gpus $(GPUS)) $(if $(MODELS),-models $(MODELS)) $(if $(RATE),-rate $(RATE)) $(if $(SECONDS),-seconds $(SECONDS)) $(if $(POLICIES),-policies $(POLICIES)) -least $(or $(LEAST),20000)
