"""Captures in the simulated GPU's log of driver calls.

In: the text of a log. Out: the number of captured graphs, and of captured collective calls. Fails: never.
"""

import collections
import re

# Kernels of NCCL's stand-in, and of vLLM's custom all-reduce.
CALL = re.compile(r"\tcuLaunchKernel\w*\t[^\n]*\tkernel=(?:nccl_|[^\t]*cross_device_reduce)[^\n]*\tcapture=(\d+)")
FEW_NODES = re.compile(r"\tcuStreamEndCapture\t[^\n]*\tcapture=(\d+)\tnodes=[12]\t")  # of a custom all-reduce: a copy and the kernel


def captured(log):
    """A capture of one collective call is no graph: it is the call that a restored graph holds."""
    calls = collections.Counter(CALL.findall(log))
    alone = {capture for capture in FEW_NODES.findall(log) if calls[capture] == 1}
    return log.count("\tcuStreamBeginCapture") - len(alone), calls.total()
