"""Compares natively captured graphs with restored ones, from the simulated GPU's own account of both processes.

In: for each process the ground truth that the device wrote (simgpu/README.md) and the places of its named tensors
as torch reports them. Out: counts and a list of differences. No data is read that Medusa recorded or derived.

Several native processes are given, so that bytes that no code ever wrote can be distinguished from values: they differ
between processes and are an address in none.
"""

import bisect
import dataclasses
import itertools
import json


@dataclasses.dataclass
class Node:
    kind: str
    facts: list  # these must be equal as they stand
    params: dict  # offset -> bytes


@dataclasses.dataclass
class Graph:
    flags: str
    handle: int
    nodes: list
    edges: list
    memory: "Memory"


class Memory:
    """Live allocations of one moment, and the tensors that lie in them."""

    def __init__(self, live, tensors):
        self.live = sorted(live)
        self.bases = [base for base, _, _ in self.live]
        self.tensors = sorted((addr, size, name) for name, (addr, size) in tensors.items())
        self.starts = [addr for addr, _, _ in self.tensors]

    def place(self, word):
        """The target of a word: ("tensor", name, offset), ("memory", allocation, offset, size), or None."""
        i = bisect.bisect_right(self.bases, word) - 1
        if i < 0:
            return None
        base, size, key = self.live[i]
        if word - base >= size:
            return None
        t = bisect.bisect_right(self.starts, word) - 1
        if t >= 0 and word - self.tensors[t][0] < self.tensors[t][1]:
            return ("tensor", self.tensors[t][2], word - self.tensors[t][0])
        return ("memory", key, word - base, size)


def side_by_side(live):
    """Mappings without a gap between them are one range, which tensors may span; a restored process has it in one piece. Only
    for processes whose mappings are all torch's: those of a region lie side by side by chance."""
    ranges = []
    for base, size, key in sorted(live):
        if ranges and key.startswith("vmm") and ranges[-1][2].startswith("vmm") and sum(ranges[-1][:2]) == base:
            ranges[-1] = (ranges[-1][0], ranges[-1][1] + size, ranges[-1][2])
        else:
            ranges.append((base, size, key))
    return ranges


def read(truth, places, expandable=False):
    """The graphs of one process by label, without those that have no label: the engine makes them in every start.
    Captured ones are instantiated in the engine's order, restored ones in any."""
    with open(places, encoding="utf-8") as f:
        named = json.load(f)
    graphs, live, globals_, events = [], {}, 0, {}
    with open(truth, encoding="utf-8") as f:
        for line in f:
            kind, *fields = line.rstrip("\n").split("\t")
            if kind == "alloc":
                _, index, what, base, size = fields
                if what == "global":
                    globals_ += 1
                    index = f"global {globals_}"
                live[int(base, 16)] = (int(size), f"{what} {index}")
            elif kind == "free":
                live.pop(int(fields[2], 16), None)
            elif kind == "instance":
                now = [(base, size, key) for base, (size, key) in live.items()]
                memory = Memory(side_by_side(now) if expandable else now, named["tensors"])
                graphs.append(Graph(fields[4], int(fields[5], 16), [], [], memory))
            elif kind == "instance-edge":
                graphs[-1].edges.append((fields[2], fields[3], fields[4]))
            elif kind == "event":
                events[fields[2]] = fields[1]
            elif kind == "instance-node":
                graphs[-1].nodes.append(node(fields[2], fields[3:], events))
    if named["restored"]:
        by_handle = {g.handle: g for g in graphs}
        return {label: by_handle[handle] for label, handle in named["restored"].items()}
    return {label: g for label, g in zip(named["captured"], graphs, strict=True) if label is not None}


def address(text):
    return int(text, 16).to_bytes(8, "little")


def node(at, fields, events):
    """at: the node's place. In an embedded graph it begins with the parent's place. Events are compared by their number."""
    kind = fields[0]
    if kind == "kernel":
        name, module, grid, block, shared, params = fields[1:7]
        values = {int(k): bytes.fromhex(v) for k, v in (p.split(":") for p in params.split(",") if p)}
        windows = [f for f in fields[7:] if f.startswith("window ")]
        values |= {WINDOW: address(f.split()[1]) for f in windows}
        return Node(kind, [name, module, grid, block, shared, *(f for f in fields[7:] if f not in windows), at], values)
    if kind == "memset":
        return Node(kind, [*fields[2:], at], {0: address(fields[1])})
    if kind == "memcpy":
        dst, across, src, along, *size = fields[1:]
        return Node(kind, [across, along, *size, at], {0: address(dst), 8: address(src)})
    if kind in ("event-record", "event-wait"):
        return Node(kind, [events.get(fields[1]), at], {})
    return Node(kind, [*fields, at], {})


WINDOW = 1 << 20  # the base of an access-policy window has this place among the parameters: after all others


def by_medusa(natives):
    """The items of the recorded processes, from a list with one item for each native process."""
    return [*natives[:2], *natives[3:]]


class Comparison:
    """natives[0] and natives[1] are the recorded processes that were compiled, natives[2] ran without Medusa. Any further ones were
    recorded, too, and compared with the compiled ones."""

    def __init__(self):
        self.differences = []
        self.graphs = self.nodes = self.third_party = self.pointers = self.constants = self.unwritten = 0
        self.pairs = {}  # by number of a native process: its allocations and the restored one's, in both directions

    def differ(self, *what):
        self.differences.append(" ".join(str(w) for w in what))

    def run(self, natives, restored):
        if any(n.keys() != restored.keys() for n in natives):
            self.differ("graphs:", [sorted(n) for n in natives], "native,", sorted(restored), "restored")
            return
        for label, r in restored.items():
            self.graph(f"graph {label}", [n[label] for n in natives], r)

    def graph(self, where, natives, r):
        self.graphs += 1
        for n in natives:
            if n.flags != r.flags:
                self.differ(where, "flags", n.flags, r.flags)
            if sorted(n.edges) != sorted(r.edges):
                self.differ(where, "edges", len(n.edges), len(r.edges))
            if len(n.nodes) != len(r.nodes):
                self.differ(where, "nodes", len(n.nodes), len(r.nodes))
                return
        memories = [n.memory for n in natives]
        for i, node in enumerate(r.nodes):
            self.node(f"{where} node {i}", [n.nodes[i] for n in natives], memories, node, r.memory)

    def node(self, where, natives, memories, z, memory):
        self.nodes += 1
        self.third_party += z.kind == "kernel" and not z.facts[0].startswith("medusa_")
        layout = {k: len(v) for k, v in z.params.items()}
        for x in natives:
            if (x.kind, x.facts) != (z.kind, z.facts):
                self.differ(where, x.kind, x.facts, z.kind, z.facts)
                return
            if {k: len(v) for k, v in x.params.items()} != layout:
                self.differ(where, x.facts, "parameter layout")
                return
        for offset in z.params:
            name = f"{where} {z.facts[0][:60] if z.facts else z.kind} parameter at {offset}"
            self.parameter(name, offset, [x.params[offset] for x in natives], memories, z.params[offset], memory)

    def parameter(self, where, offset, natives, memories, z, memory):
        if len(z) == 8 and self.host_address(natives, memories, z, memory):
            self.unwritten += 8
            return
        at = 0
        while at < len(z):
            n = 8 if (offset + at) % 8 == 0 and at + 8 <= len(z) else 1
            self.piece(f"{where}+{at}", [x[at : at + n] for x in natives], memories, z[at : at + n], memory)
            at += n

    @staticmethod
    def host_address(natives, memories, z, memory):
        """A parameter that is another word in each native process, and a device address in none, can be an address of the host's memory.
        Then the restored word is no device address either, and not zero, because a kernel may test for zero."""
        words = [int.from_bytes(x, "little") for x in natives]
        nowhere = all(m.place(word) is None for word, m in zip(words, memories))
        restored = int.from_bytes(z, "little")
        return nowhere and len(set(words)) == len(words) > 1 and restored != 0 and memory.place(restored) is None

    def piece(self, where, natives, memories, z, memory):
        """An aligned word, or a byte that is part of no aligned word."""
        places = [m.place(int.from_bytes(x, "little")) if len(x) == 8 else None for x, m in zip(natives, memories)]
        restored = memory.place(int.from_bytes(z, "little")) if len(z) == 8 else None
        recorded, seen = places[:2], by_medusa(places)
        if None in places and (restored is None or not self.agree(recorded)):
            # No pointer: one that the engine passes leads somewhere in every process.
            stale = recorded[0] is not None and (recorded[0][0] == "memory" or not self.agree(seen))
            if restored is None and self.agree(recorded) and stale and not any(z):
                self.unwritten += len(z)  # an old address of free memory, or one that a process lacks, is left out whole
            elif restored is None:
                self.plain(where, natives, z)
            else:
                self.differ(where, natives, places, z, restored)
            return
        if restored is None and len(seen) > 2 and not any(self.agree(two) for two in itertools.combinations(seen, 2)):
            # Live addresses that no two recorded processes have in common are left out whole, or but for bytes that are equal by chance.
            if any(z):
                self.plain(where, natives, z)
            else:
                self.unwritten += len(z)
            return
        if restored is None and self.agree(recorded) and not self.agree(seen) and not any(z):
            self.unwritten += len(z)  # another recorded process has another address there
            return
        if restored is None and len(seen) > 2 and not self.agree(recorded) and {p[0] for p in seen} == {"memory"} and not any(z):
            self.unwritten += len(z)  # both compiled recordings lead to memory without a name, and not to the same
            return
        if restored is None or not self.agree(recorded):
            self.differ(where, natives, places, z, restored or "leads nowhere")
            return
        if self.agree(places):
            self.pointers += 1
        elif not self.agree(seen):
            self.differ(where, natives, places, z, restored)
            return
        else:
            self.unwritten += len(z)  # equal remains in the recorded processes: restored as the pointer that they seem to be
        for process, native in enumerate(places if self.agree(places) else recorded):
            self.place(where, process, native, restored)

    @staticmethod
    def agree(places):
        """Whether a word points to the same place in several native processes. Memory without a name has another number in each."""
        if None in places:
            return False
        return len({p if p[0] == "tensor" else (p[0], *p[2:]) for p in places}) == 1

    def place(self, where, process, native, restored):
        """The places have to be the same byte of the same tensor. In memory without a name: the same byte of an allocation of the same
        size, and always of the same allocation."""
        if native is None or restored is None or "tensor" in (native[0], restored[0]):
            if native != restored:
                self.differ(where, native, restored)
            return
        _, a, offset_a, size_a = native
        _, b, offset_b, size_b = restored
        if (offset_a, size_a) != (offset_b, size_b):
            self.differ(where, native, restored)
        forward, backward = self.pairs.setdefault(process, ({}, {}))
        if forward.setdefault(a, b) != b or backward.setdefault(b, a) != a:
            self.differ(where, a, "is", forward[a], "and", b)

    def plain(self, where, natives, z):
        """Bytes that are equal in all native processes are constants. Other bytes were never written: the restored byte is
        the one that all recorded processes had in common, or zero."""
        for i, byte in enumerate(z):
            values = [x[i] for x in natives]
            if len(set(values)) > 1:
                self.unwritten += 1
            else:
                self.constants += 1
            if byte != (values[0] if len(set(by_medusa(values))) == 1 else 0):
                self.differ(where, f"byte {i}", [f"{v:02x}" for v in values], f"{byte:02x}")
