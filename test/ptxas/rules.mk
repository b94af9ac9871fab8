# NVIDIA's assembler over all PTX of the project and over the texts that the simulated GPU refuses: 47 MB from PyPI into a temporary
# folder, or PTXAS=program. No part of `make test`.
## Test: make test-ptxas | all PTX of the project under NVIDIA's assembler, fetched from PyPI (PTXAS=program)
.PHONY: test-ptxas
test-ptxas: build/test/ptx_test
	rm -rf build/test/ptx && mkdir -p build/test/ptx
	build/test/ptx_test $(SIMGPU)/test/ptx build/test/ptx
	$(GO) run ./test/ptxas -loaded build/test/ptx $(if $(PTXAS),-ptxas $(PTXAS))
