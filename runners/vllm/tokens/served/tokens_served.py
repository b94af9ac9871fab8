"""The test's operators in processes that load vLLM's plug-ins and no program of the test: those of `vllm serve`, and of an engine's ranks.

In: this folder in PYTHONPATH. Out: as engine.py's. Fails: as the operators do.
"""

import os
import sys


def install():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path += [os.path.join(here, ".."), os.path.join(here, "..", "..", "test", "served")]
    import aten
    import controls
    import experts
    import kernels
    import sleep_runtime
    import workers

    controls.of_replays()
    aten.install()
    kernels.install()
    experts.install()
    sleep_runtime.install()
    if os.environ.get("SIMGPU_DEVICES", "1") != "1":
        workers.wait_after_steps()
