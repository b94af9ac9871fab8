# A device as large as real ones: 141 GB, 100 GiB of KV cache, 1,500 graphs, and at most 16 GiB of host memory a process.
.PHONY: fullsize-engine test-full-size
fullsize-engine:
	$(GO) build -o build/fullsize-engine ./test/fullsize/engine

test-full-size: all fullsize-engine
	$(GO) build -o build/fullsize-run ./test/fullsize/run
	build/fullsize-run -device 141000000000 -kv 107374182400 -graphs 1500 -nodes 100 -limit 17179869184
