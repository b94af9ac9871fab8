"""The engines of one start with data parallelism. With a dense model they share nothing: each is restored, or not, by itself.

In: vLLM's configuration, where the engines are started and in a worker of each. Out: their number and each one's place, for the status; the device of
a worker. Fails: never.

vLLM starts a process for each engine and sets its `data_parallel_size` to 1. Only the place remains (`data_parallel_index`), so the process that
starts the engines leaves their number in the environment.
"""

import os

from . import contract


def announce(parallel):
    os.environ[contract.ENV_ENGINES] = str(parallel.data_parallel_size)


def enter(parallel):
    """To be called before the session is opened."""
    if several():
        os.environ[contract.ENV_ENGINE] = str(parallel.data_parallel_index)


def several():
    return int(os.environ.get(contract.ENV_ENGINES) or 1) > 1


def device(local_rank, parallel):
    """The number of the device that the worker will choose in init_device. Each engine has as many as it has workers."""
    # mutant: device of another engine
    return local_rank + (parallel.data_parallel_rank_local or 0) * parallel.world_size


def own_file(path, parallel):
    """The file of this engine's only worker, if the others write theirs."""
    return f"{path}.{parallel.data_parallel_index}" if several() else path
