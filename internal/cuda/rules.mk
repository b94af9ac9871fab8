# C that is generated from the specifications; included by the root Makefile before the rules that use it. Generated Go is committed:
# Go alone builds and tests its packages. go run decides itself which of a generator's packages changed.
GENERATED      := build/generated
GENERATED_CUDA := $(addprefix $(GENERATED)/,cuda_procs_gen.h symbols_gen.h core/procs_gen.h core/procs_gen.c core/results_gen.h)
GENERATORS     := $(filter-out %_test.go,$(wildcard internal/specfile/*.go internal/*/gen/*.go interpose/gen/*.go))

# Whatever includes cuda.h.
CUDA_CFLAGS  := -Iinternal/cuda/include -I$(GENERATED)
CUDA_HEADERS := $(wildcard internal/cuda/include/*.h) $(GENERATED)/cuda_procs_gen.h

$(GENERATED_CUDA) &: internal/cuda/driver.spec $(GENERATORS)
	$(GO) run -C internal/cuda ./gen -c $(abspath $(GENERATED))
