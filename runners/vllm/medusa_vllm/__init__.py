"""Medusa's plug-in for vLLM: cold starts with restored graphs and without the profile forward.

`medusa materialize -o X -- vllm serve MODEL ...` and `medusa restore X -- vllm serve MODEL ...` put the folder of this
package on PYTHONPATH; vLLM finds platform.activate through the entry point beside it, and platform.py names worker.Worker
if the user chose no worker class. The worker and the graph manager are subclasses of vLLM's own. Only an elastic KV cache
patches functions of vLLM (elastic.py). If Medusa is absent or a start is not supported (gate.py), vLLM starts as it always does.
"""
