# The PTX is committed; only changing the kernel needs clang.
.PHONY: hash-ptx
hash-ptx:
	$(PTX_CLANG) $(PTX_FLAGS) -o restore/devicehash/hash.ptx restore/devicehash/hash.cu
