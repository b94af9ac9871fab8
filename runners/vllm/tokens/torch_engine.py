"""The engine of runners/torch on the simulated GPU, with its decode steps compiled by Inductor.

    torch_engine.py MODEL 2,16 RANKS

In: a folder of checkpoint.py, batch sizes, how many ranks. Out: a line of JSON from each rank: the tokens that follow the first prompts of the folder, for each batch size; how
it started. Fails: as the engine does; if a kernel of machine code is needed; if an operator of the host is captured.

Attention is products and a softmax, which cuBLAS's stand-in and Inductor's kernels compute. ATen's fused kernels are machine code.
"""

import gc
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The engine's own modules come first: both folders have an engine.py.
sys.path[:0] = [os.path.join(HERE, "..", "..", "torch"), HERE]

import torch  # noqa: E402

import aten  # noqa: E402
import controls  # noqa: E402
import engine  # noqa: E402
import parallel  # noqa: E402
from medusa_graphs import contract  # noqa: E402


def command(folder, batches):
    with open(os.path.join(folder, "expected.json"), encoding="utf-8") as f:
        cases = json.load(f)
    tokens = max(len(case["tokens"]) for case in cases)
    length = tokens + max(len(case["prompt"]) for case in cases)
    yield from ("--model", folder, "--dtype", "float32", "--compile", "--batch-sizes", batches)
    yield from ("--tokens", str(tokens), "--max-length", str(length))
    for case in cases:  # the words of the test's tokenizer are numbers
        yield from ("--prompt", " ".join(map(str, case["prompt"])))


def main():
    *arguments, ranks = sys.argv[1:]
    if "RANK" not in os.environ:
        controls.of_candidate()
        if int(ranks) > 1:
            sys.exit(parallel.main(ranks, sys.executable, *sys.argv))
    controls.of_replays()
    aten.install()
    cuda = torch.backends.cuda
    for fused in cuda.enable_flash_sdp, cuda.enable_mem_efficient_sdp, cuda.enable_cudnn_sdp:
        fused(False)
    sys.argv[1:] = command(*arguments)
    if os.environ.get("TOKENS_MISTAKE") == controls.METADATA and os.environ.get(contract.ENV_RUN) == contract.RUN_RESTORE:
        controls.of_steps(engine.Engine)
    gc.freeze()  # as in engine.py of this folder
    engine.main()


if __name__ == "__main__":
    main()
