"""The measurements of scripts/gpu-vllm for one shape, as rows of docs/results/vllm.md.

In: the folder that it filled; --starts: no tokens were served. Out: the rows. Fails: if a file is missing; exit code 1
if tokens differ or too few of them were compared.
"""

import argparse
import json
import os
import sys

FEWEST = 1000  # tokens compared for each batch size


def last_object(path):
    with open(path, encoding="utf-8") as f:
        return json.loads([line for line in f if line.startswith("{")][-1])


def starts(bench):
    print(f"| {bench['device']}, {bench['rounds']} rounds | " + " | ".join(s["mode"] for s in bench["starts"]) + " |")
    print("|---|" + "---|" * len(bench["starts"]))
    stages = {s["mode"]: {x["name"]: x["ms"] for x in s["stages"]} for s in bench["starts"]}
    for name in dict.fromkeys(name for found in stages.values() for name in found):
        print(f"| {name}, ms | " + " | ".join(f"{found[name]:.0f}" if name in found else "–" for found in stages.values()) + " |")
    print("| to /health, ms | " + " | ".join(f"{s['total']['ms']:.0f}" for s in bench["starts"]) + " |")
    print("| native / this | " + " | ".join(f"{s['native_over_this']:.2f} ± {s['ratio_spread']:.2f}" for s in bench["starts"]) + " |")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folder")
    p.add_argument("--starts", action="store_true")
    args = p.parse_args()
    folder = args.folder
    with open(os.path.join(folder, "starts.json"), encoding="utf-8") as f:
        starts(json.load(f))
    if args.starts:
        return
    native, restored = (last_object(os.path.join(folder, f"tokens-{mode}.json")) for mode in ("native", "restored"))
    bad = native.keys() != restored.keys()
    for batch, n in native.items():
        r = restored[batch]
        pairs = [(a, b) for x, y in zip(n["tokens"], r["tokens"], strict=True) for a, b in zip(x, y, strict=True)]
        differ = sum(a != b for a, b in pairs)
        bad |= differ > 0 or len(pairs) < FEWEST
        print(
            f"| batch {batch}: first token, ms; token, ms; tokens that differ | {n['ttft_ms']:.1f}; {n['tpot_ms']:.3f} | "
            f"{r['ttft_ms']:.1f}; {r['tpot_ms']:.3f}; {differ} of {len(pairs)} |"
        )
    sys.exit(bad)


if __name__ == "__main__":
    main()
