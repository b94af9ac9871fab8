"""make vllm-identity: the page about the variables and settings of vLLM that an artifact depends on.

In: the plug-in's tables. Out: docs/vllm-identity.md. Fails: as reading the tables does.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from medusa_vllm import classes, gate  # noqa: E402

PAGE = os.path.join(HERE, "..", "..", "..", "docs", "vllm-identity.md")
HEAD = """# What an artifact of vLLM depends on

An artifact fits a start if code, shapes, memory and numbers of its graphs would be the same there. A variable or a setting of vLLM that can change one of them counts.
One that only belongs to the deployment does not. One that holds a path counts by what lies there. Each has one of three classes:

| class | effect |
|---|---|
| `counts` | the artifact has the value, under the name, unless it is vLLM's default. Another value is a native start, whose reason (`incompatible`) has the name and both values |
| `contents` | what it leads to counts, under the name in the table |
| `deployment` | another value is no difference |

The groups below come from `variables.txt` and `settings.txt` beside the plug-in, which it reads at each start. They have every variable in `vllm/envs.py` and every field of
the dataclasses in `vllm/config` of each supported release: RELEASES. If not all of these releases have a name, the releases follow it. `make vllm-fingerprint` fails for a
release with a name that no group has. At a start, such a name counts. Variables that a group calls "beyond vLLM's own key" do not belong to vLLM's key of compiled code.

Names are written `env.NAME` and `setting.PATH` in an artifact, the latter with the path of the attribute in vLLM's `VllmConfig`. If a name has the word KEY, TOKEN, SECRET or
PASSWORD, a text is replaced by eight digits of its SHA-256. `engine.defaults` is a hash of all defaults of what counts. It differs only if the sources of vLLM were changed.

    medusa identity --against llama.medusa -- vllm serve MODEL ...

starts the engine until it has stated its identity. It lists each difference with both values and what to change, and exits with 3 if the artifact does not fit. Several artifacts
and engines can be compared at once (`medusa identity --help`).

Of the machine and the process:

| | |
|---|---|
| GPU's name, compute capability, processors, memory | count (`gpu.*`). A MIG instance has another name, less memory and fewer processors than the whole GPU |
| driver | its CUDA version counts (`driver.version`), unless [`--relax`](../artifacts/README.md#identity) allows another one |
| number or UUID of the device in `CUDA_VISIBLE_DEVICES` | does not count |
| user, home, host name, time zone, addresses and keys, the model's path, caches, a read-only root, process 1, number of processors | do not count |

`make test-vllm-deployments` is the test of the last two rows: one artifact, restored with each of them changed.
"""


def render():
    lines = [HEAD.replace("RELEASES", ", ".join(gate.SUPPORTED))]
    for title, file in ("Variables", classes.VARIABLES), ("Settings", classes.SETTINGS):
        lines += [f"## {title}", "", "| class | why | names |", "|---|---|---|"]
        groups = {}
        for name, row in classes.table(file).items():
            groups.setdefault((row.kind, row.reason), []).append(f"`{name}`" + (f" ({row.releases})" if row.releases not in (classes.ALL, classes.NONE) else ""))
        lines += [f"| {kind} | {reason} | {', '.join(found)} |" for (kind, reason), found in groups.items()] + [""]
    return "\n".join(lines)


if __name__ == "__main__":
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(render())
