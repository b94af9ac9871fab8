"""Starts the engine with the device's ground truth and the places of tensors and graphs in files named after the run.

In: a folder, the engine's command. Out: FOLDER/RUN.truth, .places and .log, RUN being the purpose of this start (MEDUSA_RUN).
`medusa materialize` starts one command several times: without this each run would overwrite the files of the one before. TRUTH_SUFFIX ends the
name of the truth's file: an engine of several processes has one for each.
"""

import os
import sys


def name():
    run = os.environ.get("MEDUSA_RUN", "native")
    if run == "record":
        return "record-b" if os.environ.get("MEDUSA_GAP_SEED") else "record-a"
    return run


folder, *command = sys.argv[1:]
path = os.path.join(folder, name())
os.environ.update(SIMGPU_TRUTH=path + ".truth" + os.environ.get("TRUTH_SUFFIX", ""), SIMGPU_LOG=path + ".log")
os.execv(command[0], [*command, "--places", path + ".places"])
