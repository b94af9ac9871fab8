"""The cases of make test-tokens without vLLM: the engine of runners/torch, one process or several ranks, its decode steps compiled by Inductor.

In: as case.py. Out: a line about each step, and a row of counts. Fails: Failed, at the first step with another result than expected.
"""

import os

from case import HERE, Case
from cases import BATCHES

VERSION = "from importlib.metadata import version; print(version('vllm'))"  # of the environment; this engine has none of it


class TorchCase(Case):
    def __init__(self, settings, text):
        super().__init__(settings, text)
        self.graph = f"decode-{BATCHES[-1]}"

    def engine(self):
        return self.program("torch_engine.py", ",".join(map(str, BATCHES)), str(self.ranks))

    def report(self, printed):
        """With the tokens of all ranks, one rank after another."""
        if len(printed) != self.ranks:
            self.fail(f"{len(printed)} ranks have printed tokens")
        rows = [row for rank in sorted(printed, key=lambda line: line["rank"]) for batch in BATCHES for row in rank["tokens"][str(batch)]]
        return printed[-1] | {"start": ", ".join(sorted({rank["start"] for rank in printed})), "tokens": rows}

    def environment(self, step, mistake):
        # The engine imports the plug-in. If medusa starts the engine, it finds the plug-in.
        plugin = {"PYTHONPATH": os.path.join(HERE, "..", "..", "torch", "python")} if step == "native" else {}
        return super().environment(step, mistake) | plugin

    def start(self, step, *args, **more):
        """As vLLM's, with the tokens of all batches, and of each request as many as it asks for."""
        started = super().start(step, *args, **more)
        tokens = [row[: len(request["tokens"])] for row, request in zip(started["tokens"], self.expected(), strict=True)]
        return started | {"tokens": tokens, "vllm": self.output("version", [self.settings.python, "-c", VERSION]).strip()}

    def expected(self):
        """Each batch has the first requests of the folder, on each rank."""
        requests = super().expected()
        return [request for batch in BATCHES for request in requests[:batch]] * self.ranks
