"""make vllm-fingerprint: compares the definitions of vLLM that the plug-in uses between a release and the supported ones.

In: a version, whose wheel is fetched into a temporary folder, or a folder that holds the package. Out: a line for each definition that is
missing or differs, and last the counts against the nearest supported release. Fails: if the wheel cannot be fetched, if a source cannot be
parsed, or if the release has a variable or a setting that no table of the plug-in has (names.py). Another difference is no failure. vLLM is not run.
"""

import argparse
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PLUGIN = os.path.join(HERE, "..", "medusa_vllm")
sys.path[:0] = [HERE, os.path.join(HERE, "..")]

import names  # noqa: E402
import page  # noqa: E402
import plugin  # noqa: E402
import symbols  # noqa: E402
from medusa_vllm import fingerprint, gate, source  # noqa: E402
from tree import Tree  # noqa: E402



def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--version", required=True)
    p.add_argument("--source", help="folder that holds the package vllm; without it, the version's wheel is fetched")
    p.add_argument("--keep", action="store_true", help="write the fingerprint that starts of this release are compared with")
    p.add_argument("--results", help="file that receives the result, beside those of other versions")
    p.add_argument("--page", help="page that is made of these results")
    return p.parse_args()


def fetch(version, folder):
    """Unpacks only the sources of the wheel, which also holds half a gigabyte of machine code."""
    options = "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:"
    subprocess.run([sys.executable, "-m", "pip", "download", *options, "-d", folder, f"vllm=={version}"], check=True)
    (wheel,) = glob.glob(os.path.join(folder, "vllm-*.whl"))
    with zipfile.ZipFile(wheel) as z:
        z.extractall(folder, [name for name in z.namelist() if name.startswith("vllm/") and name.endswith(".py")])
    os.unlink(wheel)
    return folder


Result = collections.namedtuple("Result", "same moved missing")


def now(tree, symbol):
    """The hash of a definition as it is now, or None."""
    file, name = symbol.split(":")
    module = tree.module(dotted("vllm/" + file))
    return module and source.digest(module.tree, name)


def others(tree, held):
    """The number of definitions that differ. Fingerprints hold different numbers of definitions."""
    return sum(now(tree, symbol) != known for kind in ("used", "called") for symbol, known in held[kind].items())


def compare(tree, held):
    """moved: (symbol, how) of each definition whose source differs, or which lies elsewhere. held: a fingerprint."""
    same, moved, missing, callers = 0, [], [], None
    for kind in "used", "called":
        for symbol, known in held[kind].items():
            name, found = symbol.split(":")[1], now(tree, symbol)
            # mutant: definition that is the same
            if found == known:
                same += 1
                continue
            if kind == "called" and callers is None:
                callers = symbols.collect(tree, plugin.uses(PLUGIN)).callers
            other = None if found else elsewhere(tree, name)
            by = (callers or {}).get(f"{other}:{name}" if other else symbol)
            of = f", called by {by}" if by else ""
            if found:
                moved.append((symbol, "its source differs" + of))
            elif other:
                moved.append((symbol, f"now in {other}{of}"))
            else:
                missing.append((symbol, "is missing"))
    return Result(same, moved, missing)


def dotted(file):
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def elsewhere(tree, name):
    """The file that defines a class or a function of this name, if exactly one does."""
    top = name.split(".")[0]
    found = []
    for folder, _, files in os.walk(os.path.join(tree.folder, "vllm")):
        for file in files:
            at = os.path.join(folder, file)
            with open(at, "rb") as f:
                content = f.read() if file.endswith(".py") else b""
            if any(word + top.encode() in content for word in (b"class ", b"def ")):
                relative = os.path.relpath(at, tree.folder)
                module = tree.module(dotted(relative))
                if module and source.digest(module.tree, name):
                    found.append(os.path.relpath(at, os.path.join(tree.folder, "vllm")))
    return found[0] if len(found) == 1 else None


def made(tree, torch):
    """The fingerprint of the sources at hand."""
    uses = plugin.uses(PLUGIN)
    s = symbols.collect(tree, uses)
    files = sorted({symbol.split(":")[0] for symbol in (*s.used, *s.called)})
    hashes = {}
    for file in files:
        with open(os.path.join(tree.folder, "vllm", file), "rb") as f:
            hashes[file] = fingerprint.hashed(f.read())
    return {"uses": uses.digest(), "torch": torch, "files": hashes, "used": s.used, "called": s.called}, s.unresolved


def write(path, value):
    """One line a key."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(of)}" for key, of in value.items()) + "\n}\n")
    os.replace(path + ".new", path)


def stored(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def main():
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="vllm-sources-") as folder:
        tree = Tree(args.source or fetch(args.version, folder))
        if args.keep:
            held, unresolved = made(tree, gate.SUPPORTED[args.version])
            if unresolved:
                sys.exit(f"fingerprint: keep {args.version}: names that lead nowhere: {', '.join(unresolved)}")
            write(fingerprint.path(args.version), held)
        known = {release: stored(fingerprint.path(release)) for release in gate.SUPPORTED}
        # A new row of SUPPORTED has no fingerprint yet.
        nearest = min((release for release in known if known[release]), key=lambda release: others(tree, known[release]))
        r = compare(tree, known[nearest])
        try:
            unclassed = names.wrong(tree, args.version, list(gate.SUPPORTED))
        except ValueError as e:
            unclassed = [str(e)]
    for what, found in ("moved", r.moved), ("missing", r.missing):
        for symbol, how in found:
            print(f"{what}: {symbol}: {how}")
    if args.results:
        rows = stored(args.results)
        rows[args.version] = {"against": nearest, "same": r.same, "moved": [symbol for symbol, _ in r.moved], "missing": [symbol for symbol, _ in r.missing]}
        write(args.results, dict(sorted(rows.items())))
        if args.page:
            with open(args.page, "w", encoding="utf-8") as f:
                f.write(page.render(stored(args.results)))
    print(f"vLLM {args.version} against {nearest}, {len(known)} supported")
    print(f"fingerprint: same={r.same} moved={len(r.moved)} missing={len(r.missing)}")
    if unclassed:
        sys.exit("\n".join(["fingerprint: the tables of variables and settings do not fit this release:", *unclassed]))


if __name__ == "__main__":
    main()
