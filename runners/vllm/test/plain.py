"""make test-vllm-plain: `vllm serve MODEL` with no option but an address, materialized and restored by its unchanged command line.

In: the output of `make vllm`. Out: a line about each step, and last the line with the number of graphs. Fails: exit code 1 if the start is not restored, or captures.

All else is vLLM's default: the mode of graphs and their sizes, the compiler, the attention backend, the model runner, the share of the device. The checkpoint has
two layers, a tokenizer and random weights.
"""

import os

from run import HERE, arguments, installed
from serve import Server, check

MAKER = os.path.join(HERE, "..", "tokens", "checkpoint.py")
CHECKPOINT = "llama-bfloat16"


class Plain(Server):
    def __init__(self, args):
        super().__init__(args, name="plain")
        self.run("checkpoint", [os.path.abspath(args.python), MAKER, self.folder, "--make", CHECKPOINT], LD_LIBRARY_PATH=os.path.abspath(args.libraries))
        vllm = os.path.join(os.path.dirname(os.path.abspath(args.python)), "vllm")
        self.command = [vllm, "serve", self.path(CHECKPOINT), "--host", "127.0.0.1", "--port", str(self.port)]

    def environment(self, step):
        return {name: value for name, value in super().environment(step).items() if name != "VLLM_USE_V2_MODEL_RUNNER"}


def main():
    args = arguments()
    server = Plain(args)
    artifact = server.materialize()
    status, metrics, lines = server.serve("restored", artifact)
    check("restored server: status", status["status"] == "restored" and status["graphs"] > 0, status)
    check("restored server: metrics", f"medusa_graphs {float(status['graphs'])}" in metrics, metrics)
    check("restored server: lines", not lines, lines)
    check("restored server: captures", not any(name.startswith("cuStreamBeginCapture") for name, _ in server.log("restored")))
    print(f"test-vllm-plain: PASS device=simulated vllm={installed(args.python)} status=restored graphs={status['graphs']}")


if __name__ == "__main__":
    main()
