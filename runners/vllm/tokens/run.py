"""make test-tokens: unmodified vLLM computes on the simulated GPU, natively and restored, and its tokens are compared.

In: a virtual environment with vLLM, the runtime and the stand-ins of its libraries, the tool chain. Out: a line about each step, and last the line
with the counts. Fails: exit code 1 if vLLM's tokens differ from those of transformers on the CPU, restored ones from native ones, a
restored start captures, a mistake changes no token, or a kernel was made by NVIDIA's tools.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

import controls

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
SECONDS = 1800  # for each start of the engine
GRAPH = "FULL tokens=8 "  # mistakes are made in this one: most steps replay it


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--python", required=True, help="interpreter of the virtual environment that holds vLLM")
    p.add_argument("--libraries", required=True, help="folder of the runtime and the stand-ins")
    p.add_argument("--build", required=True, help="folder that holds medusa, tokens, lib/, simulated/ and toolchain/")
    p.add_argument("--work", required=True, help="folder for what the runs leave")
    p.add_argument("--cases", default="llama float32 V1 FULL_DECODE_ONLY", help="MODEL TYPE RUNNER MODE, several separated by commas")
    p.add_argument("--controls", default="kernel,pointer,content,key,metadata", help="mistakes that have to change tokens")
    return p.parse_args()


def stop(*what):
    print("test-tokens: FAIL", *what)
    sys.exit(1)


class Case:
    """A model, its type, vLLM's model runner and its mode of graphs."""

    def __init__(self, args, text):
        self.args, self.text = args, text
        self.model, self.dtype, self.runner, self.graphs = text.split()
        self.work, self.build = os.path.abspath(args.work), os.path.abspath(args.build)
        self.folder = os.path.join(self.work, text.replace(" ", "-"))
        self.checkpoint = os.path.join(self.work, f"{self.model}-{self.dtype}")
        self.medusa = os.path.join(self.build, "medusa")
        self.artifact = self.path("model.medusa")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, step):
        tools = os.path.join(self.build, "toolchain")
        return dict(
            os.environ,
            LD_LIBRARY_PATH=os.path.abspath(self.args.libraries) + ":" + os.path.join(self.build, "simulated"),
            CUDART_STACK="clean" if step == "native" else "addresses",
            SIMGPU_MACHINE_CODE="refuse",
            SIMGPU_COMPUTE_CAPABILITY="8.0",
            SIMGPU_CALL_LOG=self.path(step + ".calls"),
            TRITON_PTXAS_PATH=os.path.join(tools, "ptxas"),
            TRITON_PTXAS_BLACKWELL_PATH=os.path.join(tools, "ptxas"),
            TRITON_LIBDEVICE_PATH=os.path.join(tools, "libdevice.bc"),
            TRITON_F32_DEFAULT="ieee",  # Triton's products would round operands to TF32, which moves logits by a thousandth
            TRITON_CACHE_DIR=os.path.join(self.work, "triton"),
            VLLM_CACHE_ROOT=os.path.join(self.work, "cache"),
            TORCHINDUCTOR_COMPILE_THREADS="1",
            VLLM_ENABLE_V1_MULTIPROCESSING="0",
            VLLM_USE_FLASHINFER_SAMPLER="0",
            VLLM_USE_V2_MODEL_RUNNER=str(int(self.runner == "V2")),
            VLLM_NO_USAGE_STATS="1",
            HF_HUB_OFFLINE="1",
            PYTHONDONTWRITEBYTECODE="1",
        )

    def run(self, step, command, starts=1):
        """The command's output."""
        try:
            done = subprocess.run(
                command, env=self.environment(step), capture_output=True, text=True, check=False, timeout=starts * SECONDS
            )
        except subprocess.TimeoutExpired:
            stop(f"{self.text}: {step}: no end after {starts * SECONDS} seconds")
        with open(self.path(step + ".output"), "w", encoding="utf-8") as f:
            f.write(done.stdout + done.stderr)
        if done.returncode:
            stop(f"{self.text}: {step}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def say(self, *what):
        print(f"test-tokens: {self.text}:", *what, flush=True)

    def engine(self, *more):
        program = [os.path.abspath(self.args.python), os.path.join(HERE, "engine.py"), self.checkpoint]
        return [*program, "--graphs", self.graphs, "--dtype", self.dtype, *more]

    def start(self, step, before=(), *more):
        out = self.run(step, [*before, *self.engine(*more)])
        return json.loads([line for line in out.splitlines() if line.startswith('{"device"')][-1])

    def restore(self, step, artifact, *more):
        started = self.start(step, [self.medusa, "restore", "--strict", artifact, "--"], *more)
        if started["start"] != "restored":
            stop(f"{self.text}: {step}: the start was {started['start']}")
        return started["tokens"]

    def expected(self):
        if not os.path.exists(os.path.join(self.checkpoint, "expected.json")):
            program = [os.path.abspath(self.args.python), os.path.join(HERE, "checkpoint.py"), self.checkpoint]
            self.say(self.run("checkpoint", [*program, "--model", self.model, "--dtype", self.dtype]).strip().splitlines()[-1])
        with open(os.path.join(self.checkpoint, "expected.json"), encoding="utf-8") as f:
            return [case["tokens"] for case in json.load(f)]

    def captures(self, step):
        with open(self.path(step + ".calls"), encoding="utf-8", errors="replace") as f:
            return sum("\tcuStreamBeginCapture" in line for line in f)

    def native(self):
        expected = self.expected()
        started = self.start("native")
        different = sum(a != b for got, want in zip(started["tokens"], expected, strict=True) for a, b in zip(got, want, strict=True))
        if different and self.dtype == "float32":
            stop(f"{self.text}: native: {different} tokens differ from those of transformers on the CPU")
        captures = self.captures("native")
        if not captures:
            stop(f"{self.text}: native: no capture in the call log")
        self.say(f"native: {different} tokens differ from those of transformers, {captures} captures, {started['replaced']} operators replaced")
        return started

    def control(self, mistake, native):
        """How many tokens the mistake changes."""
        artifact, more = self.artifact, []
        if mistake == "metadata":
            more, what = ["--control", mistake], "each step finds the lengths of another batch"
        else:
            artifact = self.path(mistake + ".medusa")
            what = self.run("spoil-" + mistake, [os.path.join(self.build, "tokens"), self.artifact, artifact, mistake, GRAPH]).strip()
        tokens = self.restore("control-" + mistake, artifact, *more)
        changed = sum(a != b for got, want in zip(tokens, native) for a, b in zip(got, want, strict=True))
        self.say(f"mistake: {what}: {changed} tokens change")
        if not changed:
            stop(f"{self.text}: no token shows the mistake: {what}")

    def compare(self):
        """The number of tokens, of equal ones, and the restored start's captures."""
        native = self.native()
        self.run("materialize", [self.medusa, "materialize", "-o", self.artifact, "--", *self.engine()], starts=6)
        self.say("materialized")
        restored = self.restore("restored", self.artifact)
        pairs = [(a, b) for got, want in zip(restored, native["tokens"], strict=True) for a, b in zip(got, want, strict=True)]
        identical, captures = sum(a == b for a, b in pairs), self.captures("restored")
        self.say(f"restored: {len(pairs)} tokens, {identical} equal native ones, {captures} captures")
        if identical != len(pairs) or captures:
            stop(f"{self.text}: restored tokens differ from native ones, or the start captured")
        for mistake in filter(None, self.args.controls.split(",")):
            self.control(mistake, native["tokens"])
        self.vllm = native["vllm"]
        return len(pairs), identical, captures


def toolchain(args):
    """Every kernel of Triton's in the caches, which this test began without, was made by the project's tools."""
    work = os.path.abspath(args.work)
    check = os.path.join(ROOT, "simgpu", "toolchain", "check_use.py")
    library = os.path.join(os.path.abspath(args.build), "toolchain", "libdevice.bc")
    done = subprocess.run([sys.executable, check, library, os.path.join(work, "triton"), os.path.join(work, "cache")], check=False)
    if done.returncode:
        stop("a kernel was made by another tool chain")


def main():
    args = arguments()
    shutil.rmtree(args.work, ignore_errors=True)
    cases = [Case(args, text.strip()) for text in args.cases.split(",")]
    counts = [case.compare() for case in cases]
    toolchain(args)
    tokens, identical, captures = (sum(c) for c in zip(*counts))
    print(
        f"test-tokens: PASS device=simulated vllm={cases[0].vllm} cases={len(cases)} tokens={tokens} identical={identical} captures={captures}"
    )


if __name__ == "__main__":
    main()
