# Engines of several worker processes; included by the root Makefile.
RANKS := internal/test/ranks

build/ranks: $(RANKS)/engine.c runners/example/model.h build/lib/libmedusa.so build/simulated/libcuda.so.1 build/nccl/libnccl.so.2
	$(CC) $(CFLAGS) $(EXAMPLE_FLAGS) -Irunners/example -o $@ $(RANKS)/engine.c -Lbuild/lib -lmedusa -Lbuild/nccl -l:libnccl.so.2 -Lbuild/simulated -l:libcuda.so.1 -ldl \
		-Wl,-rpath,'$$ORIGIN/lib:$$ORIGIN/nccl'
