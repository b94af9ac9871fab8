"""Engines of several ranks: every rank's graphs, captured natively and restored with its collective calls made anew, are compared.

In: the name of a run, the files of each rank that the engine left (engine_run.py). Out: per rank, counts and differences in a Comparison. Fails: as compare.py.
"""

import dataclasses
import json
import sys

import holes
from compare import Comparison, read

NATIVE = "record-a", "record-b", "native", "check-native"
ALONE = "alone/record-a", "alone/record-b", "alone/check-native"  # ranks that were run one after another


@dataclasses.dataclass
class Files:
    """Of one rank and run: the device's truth, and the places of tensors and graphs."""

    truth: str
    places: str

    def graphs(self):
        return read(self.truth, self.places)


def compare(c, name, files, ranks):
    """files: of each run, those of one rank. ranks: how many there are. Returns how many calls the rank's restored graphs hold."""
    captured, raw = [holes.written(files[run].graphs(), ranks) for run in NATIVE], holes.written(files["restore"].graphs(), ranks)
    native, restored = [holes.fold(graphs) for graphs in captured], holes.splice(raw)
    c.pairs = {}
    c.run(native, restored)
    copies(c, name, captured, raw)
    counts = [holes.calls(graphs) for graphs in (*native, restored)]
    if len(set(counts)) > 1 or holes.calls(raw):
        c.differ(name, "collective calls natively and restored:", counts, "not made anew:", holes.calls(raw))
    return counts[-1]


def copies(c, name, captured, restored):
    """Compares the copies of calls. A start without Medusa makes none for custom all-reduce."""
    made = list(map(holes.copies, captured))
    plain = NATIVE.index("native")
    alike = any(graph.nodes for graph in made[plain].values())
    if not alike:
        made[plain] = made[0]
    part = Comparison()
    part.pairs = {process: pairs for process, pairs in c.pairs.items() if process != plain or alike}
    part.run(made, holes.copies(restored))
    c.differences += [f"{name} copy of a call: {difference}" for difference in part.differences]
    c.nodes, c.pointers = c.nodes + part.nodes, c.pointers + part.pointers


def compare_alone(c, name, files, _ranks):
    """As compare, for an artifact that was made alone, from processes whose files are ALONE. All nodes but the calls are compared with these, and with the
    native process, which ran with all ranks; the calls with the processes that did."""
    native, raw = {run: files[run].graphs() for run in (*NATIVE, *ALONE)}, files["restore"].graphs()
    restored = holes.splice(raw)
    made = [native[run] for run in (*ALONE[:2], "native", *ALONE[2:])]
    for of, calls in (made, False), ([native[run] for run in NATIVE], True):
        part = Comparison()
        part.run([holes.only(graphs, restored, calls) for graphs in of], holes.only(restored, restored, calls))
        c.differences += part.differences
        c.pointers += part.pointers
    c.graphs, c.nodes = c.graphs + part.graphs, c.nodes + part.nodes
    found = holes.calls(restored)
    if {holes.calls(native[run]) for run in NATIVE} != {found} or holes.calls(raw) or any(holes.calls(native[run]) for run in ALONE):
        c.differ(name, "collective calls:", {run: holes.calls(graphs) for run, graphs in native.items()}, "restored:", found, "not made anew:", holes.calls(raw))
    return found


def all_ranks(name, files, rank_of=compare):
    """files: of each rank; rank_of compares one. Returns the comparison, and the calls of all restored graphs."""
    c = Comparison()
    calls = sum(rank_of(c, f"{name} rank {rank}:", of, len(files)) for rank, of in enumerate(files))
    if not calls or not c.pointers:
        c.differ(name, "nothing was compared")
    return c, calls


def reports(output):
    """The reports that the ranks printed, in the order of ranks."""
    found = [json.loads(line) for line in output.splitlines() if line.startswith('{"device"')]
    return sorted(found, key=lambda report: report["rank"])


def told(c, name, native, restored, count):
    """Compares the kinds of start that the ranks report."""
    starts = [[report["start"] for report in of] for of in (native, restored)]
    if starts != [["native"] * count, ["restored"] * count]:
        c.differ(name, "starts:", *starts)


def placed(c, name, status, count, want="exact"):
    """Compares the addresses of each rank's memory, as its status tells them. status: the file of the start's. All ranks get rank 0's region. A rank that found it
    taken while it was recorded has another one in the artifact, and relocates."""
    for rank in range(count):
        with open(f"{status}.{rank}", encoding="utf-8") as f:
            told = json.load(f)
        if told["addresses"] != want and not (rank and told.get("relocated", "").startswith("base ")):
            c.differ(name, "rank", rank, "addresses:", told["addresses"], told.get("relocated"))


def finish(title, counts, done):
    """Prints the last line of a test, and ends it. counts: numbers of ranks, as text; done: results of all_ranks."""
    for c, _ in done:
        for d in c.differences[:20]:
            print("difference:", d)
    graphs, nodes, pointers = (sum(getattr(c, what) for c, _ in done) for what in ("graphs", "nodes", "pointers"))
    differences = sum(len(c.differences) for c, _ in done)
    print(
        f"{title}: {'FAIL' if differences else 'PASS'} device=simulated ranks={counts} graphs={graphs} nodes={nodes} "
        f"pointers={pointers} collectives={sum(calls for _, calls in done)} differences={differences}"
    )
    sys.exit(differences != 0)
