"""What the engines of a served start tell about themselves, and how one of them is made to fail.

In: this folder in PYTHONPATH; Account as vLLM's `--worker-extension-cls`; ENGINE_FAILS="N error" or "N death": what engine N does when it identifies itself. Out: each engine's facts
in FILE.N. Fails: as vLLM's requests do.
"""

import json
import os
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
REQUESTS = {}  # of this process: how many tokens were sampled


class Account:
    """vLLM adds these methods to a worker's, and `/collective_rpc` calls them in each engine."""

    def account(self, path):
        """Writes where graphs and tensors lie, if the session does not, and what steps of made-up requests launch."""
        import captures
        import held
        import serving
        import torch

        index, medusa = self.parallel_config.data_parallel_index, getattr(self, "graphs", None)
        restored = bool(medusa and medusa.use.restored)
        if not restored:
            self.dump(f"{path}.places.{index}", held.places(self.model_runner) | {"process": os.getpid()})
        answered = REQUESTS.get("tokens", 0)
        serving.count(self.model_runner)
        launches = {batch: serving.serve(self, batch) for batch in (1, 3, 8)}
        self.dump(f"{path}.account.{index}", {
            "start": "restored" if restored else "native",
            "device": torch.cuda.current_device(),
            "process": os.getpid(),
            "captures": captures.made,
            "keys": held.keys(self.model_runner),
            "launches": launches,
            "steps": {batch: serving.expected(self.model_runner, batch) for batch in launches},
            "answered": answered,
        })  # fmt: skip

    def forget_warm_up(self):
        """Only tokens of requests count from now on."""
        REQUESTS.clear()

    @staticmethod
    def dump(path, facts):
        with open(path, "w", encoding="utf-8") as f:
            json.dump(facts, f)


def install():
    """vLLM's entry point, called in each of its processes."""
    if os.environ.get("ENGINE_ACCOUNTS"):
        sys.path.append(TESTS)
        import captures

        captures.count()
        known_tokens()
    if os.environ.get("ENGINE_FAILS"):
        fail(*os.environ["ENGINE_FAILS"].split())


def known_tokens():
    """Kernels compute no tokens here. Each step samples token 0 for each request, so answers end."""
    import torch
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    sample = GPUModelRunner.sample

    def zeros(runner, *args, **kwargs):
        out, sampled, rejected = sample(runner, *args, **kwargs)
        for found, value in ((out.sampled_token_ids, 0), (sampled, 1), (rejected, 0)):
            found.copy_(torch.full(found.shape, value, dtype=found.dtype))  # from the host
        REQUESTS["tokens"] = REQUESTS.get("tokens", 0) + len(sampled)
        return out, sampled, rejected

    GPUModelRunner.sample = zeros


def fail(engine, how):
    import medusa_graphs as medusa
    from medusa_graphs import contract

    identify = medusa.Session.identify

    def failing(session, factors):
        if os.environ.get(contract.ENV_ENGINE) != engine:
            return identify(session, factors)
        if how == "death":
            os._exit(9)
        raise RuntimeError("an engine that fails for a test")

    medusa.Session.identify = failing
