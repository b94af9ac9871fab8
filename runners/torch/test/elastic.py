"""Restored starts of an engine with an elastic KV cache, with memory for parts of it.

In: a way to start the engine, an artifact. Out: the differences from the expected starts: a start that captured, memory that was not asked for,
by the device's log. Fails: as the starts do.
"""

import re

PERCENT = 5, 25, 60, 100


def mapped(calls):
    moved = re.findall(r"\t(cuMemMap|cuMemUnmap)\tCUDA_SUCCESS\t.*?bytes=(\d+)", calls)
    return sum(int(size) if name == "cuMemMap" else -int(size) for name, size in moved)


def differences(runs, restore, artifact, whole):
    """Each start has the part that it asks for, or has it at its end, after another size."""
    for percent in PERCENT:
        for addresses in "exact", "relocate":
            log, asked = runs.path(f"calls-{percent}-{addresses}"), whole * percent // 100
            runs.env["SIMGPU_CALL_LOG"] = log
            sizes = [whole - asked, asked] if addresses == "relocate" else [asked]
            got = runs.engine_run(f"restored-{percent}-{addresses}", [*restore, "--addresses", addresses, artifact, "--"], [f"--kv-mapped-bytes={n}" for n in sizes])
            del runs.env["SIMGPU_CALL_LOG"]
            with open(log, encoding="utf-8", errors="replace") as f:
                calls = f.read()
            has, least, page = (got[f"kv_{name}_bytes"] for name in ("mapped", "least", "page"))
            if got["start"] != "restored" or "\tcuStreamBeginCapture" in calls or not got["graphs"]:
                yield f"{percent} %, {addresses}: the start was {got['start']}"
            if not max(least, asked - page) <= has <= max(least, asked):
                yield f"{percent} %, {addresses}: {has} bytes are mapped, asked for {asked}"
            # At exact addresses, other memory is mapped as well.
            if addresses == "relocate" and mapped(calls) != has:
                yield f"{percent} %, {addresses}: the device's log has {mapped(calls)} bytes mapped, the engine {has}"
