# The processes of medusa pool, where there is a Python; needs nothing else.
.PHONY: pool-test
pool-test:
	if command -v python3 >/dev/null; then cd runners/pool/test && python3 -m unittest -q test_pool; fi
