"""The results of finished steps of make test-tokens, so that a run can go on after another one.

In: the work folder, a digest of the sources; a case's folder, its steps. Out: steps.json in each case's folder. Work of other sources is dropped, with the
compilers' caches. Fails: as the file system does, and as a step does, which is then not finished.
"""

import json
import os
import pathlib
import shutil
import time


def begin(work, sources):
    """Without a digest, the work of earlier runs is dropped."""
    noted = pathlib.Path(work, "sources")
    if not sources or not noted.exists() or noted.read_text() != sources:
        shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work, exist_ok=True)
    noted.write_text(sources or "")


class Kept:
    def __init__(self, folder, say):
        """say prints a line."""
        self.path, self.say, self.lines = pathlib.Path(folder, "steps.json"), say, []
        self.steps = json.loads(self.path.read_text()) if self.path.exists() else {}

    def told(self, line):
        self.lines.append(line)
        self.say(line)

    def step(self, name, make):
        """The result of the step, in this run or an earlier one. The lines of an earlier run are printed again."""
        if name not in self.steps:
            self.lines, began = [], time.monotonic()
            result = make()
            self.steps[name] = {"result": result, "lines": self.lines, "seconds": time.monotonic() - began}
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.steps))
            os.replace(new, self.path)
        else:
            for line in self.steps[name]["lines"]:
                self.say(line + " (an earlier run)")
        return self.steps[name]["result"]

    def minutes(self):
        return sum(step["seconds"] for step in self.steps.values()) / 60
