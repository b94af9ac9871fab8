"""make test-vllm-ranks-faults: a rank of vLLM fails at a stage of its restored start, and all ranks start natively.

In: as ranks_run.py. Out and fails: as failing_ranks.py of TORCH's tests.
"""

import ranks_run
from failing_ranks import Faults
from ranks_run import Case

# Medusa may handle an error itself, and the other ranks agree. Death and silence end the engine.
FAULTS = [
    ("identify", "error"),
    ("identify", "death"),
    ("kv_bytes", "error"),
    ("kv_bytes", "silence"),
    ("trigger", "death"),
    ("graphs", "error"),
    ("graphs", "silence"),
    ("make", "error"),
    ("make", "death"),
    ("ready", "death"),
]
TORCH_SECONDS = 30  # how long ranks wait for each other while torch makes its process groups; by default 10 minutes
ENDS = 30  # seconds that vLLM may take to notice that a worker is gone, and to end


def main():
    args = ranks_run.arguments()
    args.set += [f"distributed_timeout_seconds={TORCH_SECONDS}", f"cpu_distributed_timeout_seconds={TORCH_SECONDS}"]
    case = Case(args, args.models, int(args.ranks))
    faults = Faults("test-vllm-ranks", case, ("start", "keys", "launches", "steps"), TORCH_SECONDS + ENDS, PYTHONPATH="")
    for call, kind in FAULTS:
        faults.fail(case.count - 1, call, kind)
    faults.passed()


if __name__ == "__main__":
    main()
