"""The case of make test-tokens without vLLM: the engine of runners/torch, its decode steps compiled by Inductor.

In: as case.py. Out: a line about each step, and a row of counts. Fails: Failed, at the first step that does not show what it has to show; if the restored
start elsewhere compiles anything.

`medusa materialize` finds no variable of the compilers, so the artifact bundles what they made. At the recorded addresses, this work's caches are
there. At others, the start is in another folder and has no cache but the artifact's.
"""

import json
import os
import pathlib
import sys

from case import HERE, Case
from cases import BATCHES

sys.path.insert(0, os.path.join(HERE, ".."))

from medusa_vllm import contract  # noqa: E402

CACHES = {"TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "cache"}
VERSION = "from importlib.metadata import version; print(version('vllm'))"  # of the environment; this engine has none of it
NATIVE, ELSEWHERE = "native", "restored-relocate"


class TorchCase(Case):
    def __init__(self, settings, text):
        super().__init__(settings, text)
        self.graph = f"decode-{BATCHES[-1]}"

    def engine(self):
        return self.program("torch_engine.py", ",".join(map(str, BATCHES)))

    def environment(self, step, mistake):
        made = super().environment(step, mistake)
        made |= {name: os.path.join(self.settings.work, folder) for name, folder in CACHES.items()}
        if step == NATIVE:  # the engine imports the plug-in, which medusa finds for other starts
            made["PYTHONPATH"] = os.path.join(HERE, "..", "..", "torch", "python")
        if step == ELSEWHERE or step.startswith(("materialize", "refused")):
            for name in CACHES:
                del made[name]
        return made | ({contract.ENV_CACHE: self.path("elsewhere")} if step == ELSEWHERE else {})

    def start(self, step, *args, **more):
        """As vLLM's, with the tokens of all batches, and of each request as many as it asks for."""
        started = super().start(step, *args, **more)
        rows = [row for batch in BATCHES for row in started["tokens"][str(batch)]]
        tokens = [row[: len(request["tokens"])] for row, request in zip(rows, self.expected(), strict=True)]
        return started | {"tokens": tokens, "vllm": self.output("version", [self.settings.python, "-c", VERSION]).strip()}

    def expected(self):
        """Each batch has the first requests of the folder."""
        requests = super().expected()
        return [request for batch in BATCHES for request in requests[:batch]]

    def restored(self, addresses, native):
        done = super().restored(addresses, native)
        if "restored-" + addresses == ELSEWHERE:
            self.compiled_nothing()
        return done

    def compiled_nothing(self):
        """Every kernel below the folder is one that the artifact brought."""
        shape = json.loads(self.output("inspect", [self.settings.medusa, "inspect", "-o", "json", self.artifact]))
        brought = sum(layer["files"] for layer in shape["layers"])
        found = sum(path.is_file() for path in pathlib.Path(self.path("elsewhere"), "unpacked").rglob("*"))
        self.say(f"restored elsewhere: {brought} files of compilers in the artifact, {found} afterwards")
        if not brought or found != brought:
            self.fail(f"{ELSEWHERE}: the artifact brought {brought} files of compilers, and there are {found}")
