# As many graphs as vLLM captures for a model of 28 layers, materialized on the simulated GPU: the time beyond native starts.
.PHONY: test-many-graphs
test-many-graphs: all
	$(GO) build -o build/manygraphs-engine ./test/manygraphs/engine
	$(GO) build -o build/manygraphs-run ./test/manygraphs/run
	build/manygraphs-run
