"""make test-tokens: unmodified vLLM computes on the simulated GPU, natively and restored, and its tokens are compared.

In: a virtual environment with vLLM, the runtime and the stand-ins of its libraries, the tool chain. Out: a line about each step, and last the line with
the counts. A step that was finished with the same sources is not repeated (kept.py). Fails: exit code 1 if a case fails (case.py), or if a kernel
was made by NVIDIA's tools.
"""

import argparse
import os
import sys
import threading
from concurrent import futures

import cases
import controls
from case import HERE, Case, Failed, checkpoint
from checkpoints_case import CheckpointsCase
from elastic_case import ElasticCase
from kept import begin
from loaders_case import LoadersCase
from tools import ROOT, add_places, of_toolchain, settings
from torch_case import TorchCase

sys.path.insert(0, os.path.join(ROOT, "runners", "torch", "test"))

import results  # noqa: E402


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_places(p)
    p.add_argument("--title", default="test-tokens", help="what each line begins with")
    p.add_argument("--cases", help="MODEL TYPE RUNNER MODE, several separated by commas, or all; default: those of cases.py")
    p.add_argument("--jobs", type=int, default=1, help="cases that run at the same time")
    p.add_argument("--controls", default=",".join(controls.ALL), help="mistakes that have to change tokens, and to be refused")
    p.add_argument("--sources", help="digest of the sources: work of other ones is dropped; default: nothing is kept")
    p.add_argument("--results", help="file that receives what each case has shown")
    p.add_argument("--commit", default="", help="what the sources are, if they have no changes of their own")
    return p.parse_args()


def stop(title, *what):
    print(f"{title}: FAIL", *what)
    sys.exit(1)


def make_checkpoints(s, chosen):
    """All that are missing, in one process. A case fails that has none afterwards."""
    missing = {name: checkpoint(s.work, name) for name in chosen}
    missing = {folder: name for name, folder in missing.items() if not os.path.exists(os.path.join(folder, "expected.json"))}
    if missing:
        case = Case(s, next(iter(missing.values())))
        made = case.run("checkpoints", [s.python, os.path.join(HERE, "checkpoint.py"), s.work, "--make", *map(os.path.basename, missing)])
        print("".join(f"{s.title}: {line}\n" for line in made.stdout.splitlines() if line.startswith("checkpoint: ")), end="", flush=True)
        if made.returncode:
            print(f"{s.title}: FAIL checkpoints: {made.stderr[-2000:]}", flush=True)


def store(args, name, row):
    """Each case as it ends: a run may be ended before the next one does."""
    if args.results:
        shown = "tokens", "identical", "captures", "distinct", "graphs", "nodes", "pointers", "reference", "changed", "refused", "minutes"
        results.store(args.results, {"device": "Simulated GPU", "vllm": row["vllm"]}, {name: {k: row[k] for k in shown}}, commit=args.commit)


def kind(name):
    if name in (cases.TORCH, cases.TORCH_RANKS):
        return TorchCase
    words = {cases.ELASTIC: ElasticCase, cases.LOADERS: LoadersCase, cases.CHECKPOINTS: CheckpointsCase}
    return next((kind for word, kind in words.items() if word in name.split()), Case)


def main():
    args = arguments()
    try:
        chosen = cases.select(args.cases)
    except ValueError as e:
        stop(args.title, e)
    s = settings(args, args.title, [c for c in args.controls.split(",") if c])
    begin(s.work, args.sources)
    make_checkpoints(s, [name for name in chosen if kind(name).shares])
    rows, failures = {}, []

    def compare(name):
        try:
            row = kind(name)(s, name).compare()
        except Failed as e:
            print(f"{s.title}: FAIL", e, flush=True)
            failures.append(name)
            return
        with lock:
            rows[name] = row
            store(args, name, row)

    lock = threading.Lock()
    with futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(compare, chosen))
    if not of_toolchain(s):
        stop(s.title, "a kernel was made by another tool chain")
    if failures:
        stop(s.title, ", ".join(failures))
    tokens, identical, captures = (sum(row[k] for row in rows.values()) for k in ("tokens", "identical", "captures"))
    vllm = next(iter(rows.values()))["vllm"]
    print(f"{s.title}: PASS device=simulated vllm={vllm} cases={len(rows)} tokens={tokens} identical={identical} captures={captures}")


if __name__ == "__main__":
    main()
