"""make demo ENGINE=vllm: unmodified vLLM tells stories on the simulated GPU, started natively and restored.

In: as run.py. Out: the stories, the stages of both starts, and a last line that begins with "demo: PASS" or "demo: FAIL". Fails: exit code 1 if a token of
the restored engine differs from the native one's, or from that of transformers on the CPU, if the restored start captures, or if a kernel was made by another
tool chain.
"""

import argparse
import json
import os
import sys

from case import Case, Failed, differing
from kept import begin
from tools import add_places, of_toolchain, settings

CASE = "story float32 V2 FULL_DECODE_ONLY"


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_places(p)
    p.add_argument("--sources", help="digest of the sources: the model of other ones is made anew")
    return p.parse_args()


def stages(path):
    """Seconds of each stage of a start, from its status. The last one has no end."""
    with open(path, encoding="utf-8") as f:
        told = json.load(f)
    phases = told["phases"]
    return told["status"], {a["name"]: b["began"] - a["began"] for a, b in zip(phases, phases[1:])}


class Demo(Case):
    def __init__(self, s):
        super().__init__(s, CASE)
        self.say = lambda line: print(line, flush=True)

    def model_told(self):
        """Trained once, by a seed."""
        if not os.path.exists(os.path.join(self.checkpoint, "expected.json")):
            print("== a small Llama learns to tell stories (story.txt), some minutes, once", flush=True)
            print(self.output("story", self.program("story.py")).splitlines()[-1], flush=True)
        with open(os.path.join(self.checkpoint, "expected.json"), encoding="utf-8") as f:
            return [case["tokens"] for case in json.load(f)]

    def texts(self, tokens):
        with open(self.path("tokens"), "w", encoding="utf-8") as f:
            json.dump(tokens, f)
        return self.output("tell", self.program("story.py", "--tell", self.path("tokens")))

    def begin(self, step, artifact):
        """An artifact that is not there makes a native start that Medusa times."""
        status = self.path(step + ".json")
        command = [self.settings.medusa, "restore", "--status", status, artifact, "--"]
        return self.start(step, command)["tokens"], *stages(status)

    def show(self):
        expected = self.model_told()
        print("== medusa materialize: record, compile and verify vLLM's graphs, once", flush=True)
        counts = self.materialize()
        print("== the same prompts, started natively and restored", flush=True)
        native, was_native, slow = self.begin("native", self.path("absent.medusa"))
        restored, was_restored, fast = self.begin("restored", self.artifact)
        if (was_native, was_restored) != ("native", "restored"):
            self.fail(f"the starts were {was_native} and {was_restored}")
        print("== stories, from a restored engine\n")
        print(self.texts(restored).replace("\n", "\n\n"))
        table(slow, fast)
        captures, others = self.captures("restored"), differing(restored, native)
        if others or captures or not self.captures("native"):
            self.fail(f"{others} tokens differ, {captures} captures")
        if different := differing(native, expected):
            self.fail(f"{different} tokens differ from those of transformers on the CPU")
        return f"device=simulated graphs={counts['graphs']} nodes={counts['nodes']} tokens={sum(map(len, restored))} identical captures={captures}"


def table(native, restored):
    rows = [("stage", "native s", "restored s")]
    rows += [(name, f"{native.get(name, 0):.1f}", f"{restored.get(name, 0):.1f}") for name in dict.fromkeys([*native, *restored])]
    rows.append(("total", f"{sum(native.values()):.1f}", f"{sum(restored.values()):.1f}"))
    for name, slow, fast in rows:
        print(f"{name:>12}{slow:>13}{fast:>13}")
    print()


def main():
    args = arguments()
    s = settings(args, "demo")
    begin(s.work, args.sources)
    try:
        line = Demo(s).show()
    except Failed as e:
        print("demo: FAIL", e)
        sys.exit(1)
    if not of_toolchain(s):
        print("demo: FAIL a kernel was made by another tool chain")
        sys.exit(1)
    print("demo: PASS", line)


if __name__ == "__main__":
    main()
