# Tests of the processes of medusa pool, if there is a Python. They need only Python.
.PHONY: pool-test
pool-test:
	if command -v python3 >/dev/null; then cd runners/pool/test && python3 -m unittest -q test_pool; fi
