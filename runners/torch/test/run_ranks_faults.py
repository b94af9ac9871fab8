"""make test-torch-ranks-faults: a rank of the torch engine fails at a stage of its restored start, and all ranks start natively.

In: as run_ranks.py, how many cases, a seed. Out and fails: as failing_ranks.py. Each kind of failure at each stage comes before any comes again, on a random rank.
"""

import itertools
import random

import run_ranks
from failing_ranks import Faults

STAGES = "identify", "kv_bytes", "tensor", "trigger", "graphs", "make", "restored_tensor", "ready"
KINDS = "error", "death", "silence"
ENDS = 20  # seconds for a loaded machine: an engine ends when its first rank does


def drawn(count, ranks, rng):
    """Rank, stage and kind of so many failures."""
    found, each = [], list(itertools.product(STAGES, KINDS))
    while len(found) < count:
        found += [(rng.randrange(ranks), *both) for both in rng.sample(each, len(each))]
    return found[:count]


def main():
    p = run_ranks.parser(__doc__)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    case = run_ranks.Case(args, int(args.ranks), folder="faults")
    faults = Faults("test-torch-ranks", case, ("start", "graphs", "kv_bytes"), ENDS)
    for failure in drawn(args.count, case.count, random.Random(args.seed)):
        faults.fail(*failure)
    faults.passed(f"seed={args.seed}")


if __name__ == "__main__":
    main()
