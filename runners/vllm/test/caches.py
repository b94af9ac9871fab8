"""make test-vllm-caches: the first restored start on another machine does not compile.

In: the output of `make vllm`. Out: a line about each start, and last the line with the counts. Fails: exit code 1 if a
start of stock vLLM does not compile, or if a restored start does. The restored start finds the model, the user's home
and the caches in other places than the recording.
"""

import json
import os
import shutil

from run import HERE, Engine, arguments, stop


class Machine(Engine):
    """An engine whose home, caches and model lie in a folder of their own."""

    def __init__(self, args, name):
        engine = [os.path.abspath(args.python), os.path.join(HERE, "engine.py")]
        super().__init__(args, name, engine)
        shutil.copytree(os.path.join(HERE, "models", "llama"), self.path("model"))
        self.command = [*engine, self.path("model"), "--graphs", "FULL_AND_PIECEWISE"]

    def environment(self, step):
        home = self.path("home")
        os.makedirs(home, exist_ok=True)
        # Parameters are not compared here, so padding keeps its contents.
        drop = "VLLM_CACHE_ROOT", "TRITON_CACHE_DIR", "XDG_CACHE_HOME", "CUDART_STACK"
        env = {k: v for k, v in super().environment(step).items() if k not in drop}
        return env | {"HOME": home, "MEDUSA_CACHE": self.path("medusa")}


def main():
    args = arguments()
    stock = Machine(args, "caches stock")
    native = stock.start("native")
    if not all(native["compiled"].values()):
        stop("stock vLLM compiled:", native["compiled"])

    recording = Machine(args, "caches recording")
    artifact = stock.path("model.medusa")
    shutil.move(recording.materialize(), artifact)
    shutil.rmtree(recording.folder)

    fresh = Machine(args, "caches fresh")
    status = fresh.path("status.json")
    restored = fresh.start("restored", [fresh.medusa, "restore", "--strict", "--status", status, artifact, "--"])
    if restored["start"] != "restored" or any(restored["compiled"].values()):
        stop("restored on another machine:", restored["start"], restored["compiled"])
    if restored["keys"] != native["keys"] or restored["launches"] != restored["steps"]:
        stop("restored on another machine: graphs", restored["keys"], "launches", restored["launches"])
    with open(status, encoding="utf-8") as f:
        graphs = json.load(f)["graphs"]
    print(f"test-vllm-caches: PASS device=simulated status=restored graphs={graphs} native={native['compiled']} restored={restored['compiled']}")


if __name__ == "__main__":
    main()
