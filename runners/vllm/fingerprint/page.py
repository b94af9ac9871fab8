"""The page about the differences between releases of vLLM and the supported ones.

In: the results of runs, by version. Out: Markdown. Fails: never.
"""

import collections

HEAD = """# What releases of vLLM have otherwise

The plug-in uses some definitions of vLLM: it imports, subclasses, overrides, calls or reads them. They, and what they call within vLLM, are
compared with those of the nearest supported release. Comments, documentation and the order of lines in a file do not
count. `make vllm-fingerprint VERSION=x` compares one release, from its wheel, without running anything of vLLM. With `STORE=1` it stores the
result in `vllm-fingerprint.json` and makes this page of it. A release of which all is the same starts restored. Any other starts natively, with a
definition that differs as the reason, unless `MEDUSA_VLLM=try` is set ([vLLM](../vllm.md#releases)).

`moved` means that the source of a definition differs, or that it lies in another file.

"""


def render(results):
    lines = ["| vLLM | against | same | moved | missing |", "|---|---|---:|---:|---:|"]
    for version, r in results.items():
        lines.append(f"| {version} | {r['against']} | {r['same']} | {len(r['moved'])} | {len(r['missing'])} |")
    for version, r in results.items():
        if r["moved"] or r["missing"]:
            lines += ["", f"## {version}", *by_file("Missing", r["missing"]), *by_file("Moved", r["moved"])]
    return HEAD + "\n".join(lines) + "\n"


def by_file(title, symbols):
    found = collections.defaultdict(list)
    for symbol in symbols:
        file, name = symbol.split(":")
        found[file].append(f"`{name}`")
    return ["", title + ":", "", *(f"* `{file}`: {', '.join(names)}" for file, names in found.items())] if symbols else []
