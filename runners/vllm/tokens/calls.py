"""Captures in the simulated GPU's log of driver calls.

In: the text of a log. Out: the number of captured graphs, and of captured collective calls. Fails: never.
"""

import re

CALL = re.compile(r"\tcuLaunchKernel\w*\t[^\n]*\tkernel=nccl_[^\n]*\tcapture=(\d+)")
ONE_NODE = re.compile(r"\tcuStreamEndCapture\t[^\n]*\tcapture=(\d+)\tnodes=1\t")


def captured(log):
    """A capture with one node, a collective call's, is no graph: it is the call that a restored graph holds."""
    calls = CALL.findall(log)
    alone = set(calls) & set(ONE_NODE.findall(log))
    return log.count("\tcuStreamBeginCapture") - len(alone), len(calls)
