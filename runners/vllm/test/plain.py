"""make test-vllm-plain: `vllm serve MODEL` with no option but an address, materialized and restored by its unchanged command line.

In: the output of `make vllm`; RANKS=2 adds `--tensor-parallel-size 2`. Out: a line about each step, and last the line with the number of graphs. Fails: exit code 1
if the start is not restored, or captures a graph.

All else is vLLM's default: the mode of graphs and their sizes, the compiler, the attention backend, the model runner, the share of the device. The checkpoint has
two layers, a tokenizer and random weights.
"""

import glob
import os
import sys

from run import HERE, arguments, installed
from serve import Server, check

TOKENS = os.path.join(HERE, "..", "tokens")
MAKER = os.path.join(TOKENS, "checkpoint.py")
sys.path.append(TOKENS)

from calls import captured  # noqa: E402

CHECKPOINT = "llama-bfloat16"


class Plain(Server):
    def __init__(self, args, ranks):
        super().__init__(args, name=f"plain-{ranks}")
        self.ranks = ranks
        self.run("checkpoint", [os.path.abspath(args.python), MAKER, self.folder, "--make", CHECKPOINT], LD_LIBRARY_PATH=os.path.abspath(args.libraries))
        vllm = os.path.join(os.path.dirname(os.path.abspath(args.python)), "vllm")
        self.command = [vllm, "serve", self.path(CHECKPOINT), "--host", "127.0.0.1", "--port", str(self.port)]
        self.command += ["--tensor-parallel-size", str(ranks)] if ranks > 1 else []

    def environment(self, step):
        env = {name: value for name, value in super().environment(step).items() if name != "VLLM_USE_V2_MODEL_RUNNER"}
        nccl = os.path.join(os.path.abspath(self.args.libraries), "libnccl.so.2")
        return env | {"SIMGPU_DEVICES": str(self.ranks), "VLLM_NCCL_SO_PATH": nccl, "SIMGPU_CALL_LOG": self.path(step + ".calls.%p")}

    def captures(self, step):
        """The captured graphs of all processes."""
        graphs = 0
        for path in glob.glob(glob.escape(self.path(step + ".calls.")) + "*"):
            with open(path, encoding="utf-8", errors="replace") as f:
                graphs += captured(f.read())[0]
        return graphs


def main():
    args, ranks = arguments(), int(os.environ.get("RANKS") or 1)
    server = Plain(args, ranks)
    artifact = server.materialize()
    status, metrics, lines = server.serve("restored", artifact)
    check("restored server: status", status["status"] == "restored" and status["graphs"] > 0, status)
    check("restored server: metrics", f"medusa_graphs {float(status['graphs'])}" in metrics, metrics)
    check("restored server: lines", len(lines) == 1 and "medusa: restored " in lines[0], lines)
    graphs = server.captures("materialize"), server.captures("restored")
    check("graphs captured by materialize, and restored:", graphs[0] > 0 and graphs[1] == 0, graphs)
    each = [server.status(server.path(f"restored.json.{rank}")) for rank in range(ranks)] if ranks > 1 else [status]
    check("restored server: ranks", all(one["status"] == "restored" and one["graphs"] == status["graphs"] for one in each), each)
    print(f"test-vllm-plain: PASS device=simulated vllm={installed(args.python)} ranks={ranks} status=restored graphs={status['graphs']}")


if __name__ == "__main__":
    main()
