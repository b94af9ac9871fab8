"""One case of make test-tokens: the steps that docs/true-tokens.md lists.

In: the settings of run.py, the words of cases.py. Out: a line about each step, and a row of counts. Fails: Failed, at the first step with another result
than it has to have.
"""

import glob
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys

import controls
import extras
from calls import captured
from cases import BREAKABLE, BUNDLED, DEEPSEEK, SERVED, TRAFFIC
from kept import Kept
from options import MLA, flags, options

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from medusa_vllm import contract  # noqa: E402

SECONDS = 1800  # for each start of the engine
STEPS = 1000  # of a case with traffic
WAITS = 600  # seconds that a rank waits for another in a collective call: that one may compile a kernel
ADDRESSES = {"exact": "exact", "relocate": "relocated"}  # the command's argument, and the word that the status has to have
# The compilers' caches. A case that bundles them also restores in another folder, at other addresses and without the caches.
CACHES = {"TRITON_CACHE_DIR": "triton", "VLLM_CACHE_ROOT": "cache", "TORCHINDUCTOR_CACHE_DIR": os.path.join("cache", "inductor")}
ELSEWHERE = "restored-relocate"
DROPPED = "restored graphs are no longer used"
# The beginning of a refusal: verification has found the mistake. Another message is a failure of another kind.
REFUSED = 'verify graph "'
BUFFERS = 4  # saved buffers that are tried
NOTHING = 3  # the exit code of the program that makes mistakes, if the artifact has no place for this one


class Failed(Exception):
    """A step had another result than it has to have."""


def differing(got, want):
    """How many tokens of all requests differ."""
    return sum(a != b for one, other in itertools.zip_longest(got, want, fillvalue=()) for a, b in itertools.zip_longest(one, other))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def checkpoint(work, case):
    return os.path.join(work, "-".join(case.split()[:2]))


class Case:
    shares = True  # the checkpoint with other cases of the model and type

    def __init__(self, settings, text):
        self.settings, self.text = settings, text
        self.model, self.dtype, self.runner, self.graphs, *how = text.split()
        self.traffic, self.served, self.breakable = TRAFFIC in how, SERVED in how, BREAKABLE in how
        self.feature = next((word for word in how if word in extras.ALL), None)
        self.ranks = extras.RANKS.get(self.feature, 1)
        self.bundles = text in BUNDLED
        self.port = free_port() if self.served else None
        self.folder = os.path.join(settings.work, text.replace(" ", "-"))
        self.checkpoint = checkpoint(settings.work, text)
        self.artifact, self.traces = self.path("model.medusa"), self.path("traces")
        # Most steps replay the graph that gets the mistakes: the largest one, or a piece in the middle of it.
        part = "SEGMENT" if self.breakable else "PIECE"
        self.graph = f"{part} 1 tokens=8" if self.graphs == "PIECEWISE" else "FULL tokens=8"
        # N-grams do not always propose all drafts, and eight requests hardly ever at the same time.
        other = {
            extras.NGRAM: f"FULL tokens={1 + extras.DRAFTS}",
            extras.EAGLE: "draft decode FULL tokens=8",
            extras.LORA: f"FULL tokens=8 loras={1 + len(extras.ADAPTERS)}",
        }
        self.graph = other.get(self.feature, self.graph)
        os.makedirs(self.path("elsewhere") if self.bundles else self.folder, exist_ok=True)
        self.kept = Kept(self.folder, lambda line: print(f"{settings.title}: {text}: {line}", flush=True))
        self.say = self.kept.told

    def path(self, name):
        return os.path.join(self.folder, name)

    def fail(self, what):
        raise Failed(f"{self.text}: {what}")

    def environment(self, step, mistake):
        s = self.settings
        process = {} if self.served else {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
        if self.served or self.ranks > 1:
            process["PYTHONPATH"] = os.path.join(HERE, "served")
        if self.ranks > 1:
            process |= {"SIMGPU_DEVICES": str(self.ranks), "VLLM_NCCL_SO_PATH": os.path.join(s.libraries, "libnccl.so.2"), "VLLM_ALLREDUCE_USE_SYMM_MEM": "0"}
            process["NCCL_STANDIN_SECONDS"] = str(WAITS)
        own = {"TOKENS_MISTAKE": mistake, "TOKENS_SPOIL": s.spoil, "TOKENS_GRAPH": self.graph} if mistake else {}
        return dict(
            {name: value for name, value in os.environ.items() if name not in CACHES},
            **process,
            **own,
            **self.compilers(step),
            LD_LIBRARY_PATH=s.libraries + ":" + os.path.join(s.build, "simulated"),
            CUDART_STACK="clean" if step == "native" else "addresses",
            SIMGPU_MACHINE_CODE="refuse",
            SIMGPU_COMPUTE_CAPABILITY="8.0",
            SIMGPU_CALL_LOG=self.path(step + ".calls") + (".%p" if self.ranks > 1 else ""),
            TRITON_LIBDEVICE_PATH=os.path.join(s.tools, "libdevice.bc"),
            TRITON_F32_DEFAULT="ieee",  # Triton's products would round operands to TF32, which moves logits by a thousandth
            TORCHINDUCTOR_COMPILE_THREADS="1",
            VLLM_USE_FLASHINFER_SAMPLER="0",
            VLLM_USE_BREAKABLE_CUDAGRAPH=str(int(self.breakable)),
            VLLM_USE_V2_MODEL_RUNNER=str(int(self.runner == "V2")),
            VLLM_NO_USAGE_STATS="1",
            HF_HUB_OFFLINE="1",
            PYTHONDONTWRITEBYTECODE="1",
        )

    def elsewhere(self, step):
        return self.bundles and step == ELSEWHERE

    def compilers(self, step):
        """Their caches and Triton's assembler. If `medusa materialize` finds no variable of theirs, the artifact bundles their output, and starts use that:
        kernels name the folder in which Inductor has written their sources, so kernels from another folder are different. Elsewhere, the assembler has no device
        library beside it, and refuses: the start fails if it compiles. Code that requests compile later is no part of the start."""
        tools, caches = self.settings.tools, {name: os.path.join(self.settings.work, folder) for name, folder in CACHES.items()}
        if self.elsewhere(step):
            tools = self.path("elsewhere")
            shutil.copy(os.path.join(self.settings.tools, "ptxas"), tools)
            caches = {contract.ENV_CACHE: os.path.join(tools, "cache"), "TOKENS_LATER": os.path.join(self.settings.tools, "ptxas")}
        elif self.bundles and step != "native":
            caches = {contract.ENV_CACHE: self.path("caches")}
        return caches | dict.fromkeys(("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"), os.path.join(tools, "ptxas"))

    def run(self, step, command, starts=1, mistake=None):
        """The finished process. Its output is kept."""
        for path in self.logs(step):
            os.remove(path)
        try:
            done = subprocess.run(
                command,
                env=self.environment(step, mistake),
                cwd=self.path("elsewhere") if self.elsewhere(step) else None,
                capture_output=True,
                text=True,
                check=False,
                timeout=starts * SECONDS,
            )
        except subprocess.TimeoutExpired:
            self.fail(f"{step}: no end after {starts * SECONDS} seconds")
        with open(self.path(step + ".output"), "w", encoding="utf-8") as f:
            f.write(done.stdout + done.stderr)
        return done

    def output(self, step, command, **more):
        done = self.run(step, command, **more)
        if done.returncode:
            self.fail(f"{step}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def program(self, name, *more):
        return [self.settings.python, os.path.join(HERE, name), self.checkpoint, *more]

    def engine(self):
        if self.served:
            vllm = os.path.join(os.path.dirname(self.settings.python), "vllm")
            return [vllm, "serve", self.checkpoint, "--host", "127.0.0.1", "--port", str(self.port), *flags(options(self.dtype, self.graphs))]
        more = ["--steps", str(STEPS)] if self.traffic else ["--feature", self.feature] if self.feature else []
        more += ["--backend", MLA] if self.model == DEEPSEEK else []
        return self.program("engine.py", "--graphs", self.graphs, "--dtype", self.dtype, *more)

    def start(self, step, before=(), **more):
        stream = self.program("stream.py", str(self.port), "--") if self.served else []
        out = self.output(step, [*stream, *before, *self.engine()], **more)
        started = self.report([json.loads(line) for line in out.splitlines() if line.startswith('{"device"')])
        with open(self.path(step + ".output"), encoding="utf-8") as f:
            if DROPPED in f.read():
                self.fail(f"{step}: {DROPPED}")
        drafts = started.get("drafts")
        return started | {"tokens": started["tokens"] + drafts} if drafts else started

    def report(self, printed):
        """Of the lines that the engine has printed."""
        return printed[-1]

    def restore(self, *args, **more):
        return self.begun(*args, **more)["tokens"]

    def begun(self, step, artifact, addresses="exact", **more):
        """The report that a restored start prints."""
        status = self.path(step + ".json")
        command = [self.settings.medusa, "restore", "--strict", "--addresses", addresses, "--status", status, artifact, "--"]
        started = self.start(step, command, **more)
        with open(status, encoding="utf-8") as f:
            told = json.load(f)
        was = started.get("start", told["status"]), told["addresses"]
        if was != ("restored", ADDRESSES[addresses]):
            self.fail(f"{step}: the start was {was[0]}, its addresses {was[1]}")
        return started

    def expected(self):
        """The requests, with transformers' answers."""
        try:
            return extras.expected(self.feature, self.checkpoint)
        except FileNotFoundError as e:
            self.fail(f"no checkpoint: {e}")

    def captures(self, step):
        """Captured graphs, of all ranks. Each start captures as many collective calls as a native one."""
        graphs, calls = self.captured(step)
        if self.ranks > 1:
            native = self.captured("native")[1]
            self.say(f"{step}: {calls} collective calls captured")
            if calls != native or not calls:
                self.fail(f"{step}: {calls} collective calls captured, natively {native}")
        return graphs

    def captured(self, step):
        logs = []
        for path in self.logs(step):
            with open(path, encoding="utf-8", errors="replace") as f:
                logs.append(f.read())
        whole = [calls for calls in logs if "\tcuDevicePrimaryCtxRetain\t" in calls and "\tcuGraphLaunch\t" in calls]
        if len(whole) != self.ranks:
            self.fail(f"{step}: {len(whole)} of {len(logs)} call logs are those of a whole rank, not {self.ranks}")
        graphs, calls = zip(*map(captured, logs), strict=True)
        return sum(graphs), sum(calls)

    def logs(self, step):
        return glob.glob(glob.escape(self.path(step + ".calls")) + "*")

    def native(self):
        """The tokens of a native start, and its part of the row."""
        started = self.start("native")
        tokens, captures = started["tokens"], self.captures("native")
        if not captures:
            self.fail("native: no capture in the call log")
        self.say(f"native: {captures} captures")
        reference = self.happened(started["seen"]) if self.traffic else self.judged(tokens)
        return tokens, {"vllm": started["vllm"], "reference": reference, "distinct": len({t for request in tokens for t in request})}

    def happened(self, seen, step="native"):
        """The events that requests which come and go have met, as text. Each event has to have happened."""
        text = ", ".join(f"{n} {name}" for name, n in seen.items())
        self.say(f"{step}: {text}")
        if not all(seen.values()):
            self.fail(f"{step}: not all of this has happened")
        return text

    def judged(self, tokens):
        """Compares the tokens with those of transformers. Returns the result as text."""
        requests = self.expected()
        tokens, drafts = tokens[: len(requests)], tokens[len(requests) :]
        if drafts:
            self.say(f"native: {sum(map(len, drafts))} tokens proposed in {len(drafts)} steps")
        different = differing(tokens, [request["tokens"] for request in requests])
        if self.dtype == "float32":
            margin = min(m for request in requests for m in request["margins"])
            reference = f"equal, smallest margin {margin:.2g}"
            if different:
                self.fail(f"native: {different} tokens differ from those of transformers on the CPU, {reference}")
        else:
            with open(self.path("native.tokens"), "w", encoding="utf-8") as f:
                json.dump(tokens, f)
            judged = self.output("judge", self.program("checkpoint.py", "--judge", self.path("native.tokens"), "--requests", extras.requests(self.feature)))
            told = json.loads(judged.splitlines()[-1])
            reference = f"{told['others']} not the best, furthest {told['furthest']} of the bound, {told['candidates']} tokens a step within it"
            if "clear" in told:
                reference += f", experts chosen by {told['clear']} of it at least"
        self.say(f"native, held against transformers: {reference}")
        return reference

    def materialize(self):
        shutil.rmtree(self.traces, ignore_errors=True)
        command = [self.settings.medusa, "materialize", "--keep-traces", self.traces, "-o", self.artifact, "--", *self.engine()]
        self.output("materialize", command, starts=6)
        shape = json.loads(self.output("inspect", [self.settings.medusa, "inspect", "-o", "json", self.artifact]))
        counts = {name: shape[name] for name in ("graphs", "nodes", "pointers")}
        self.say("materialized: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
        return counts

    def restored(self, addresses, native):
        step = "restored-" + addresses
        tokens = self.restore(step, self.artifact, addresses)
        own = tokens[: len(self.expected())] if self.feature else tokens  # without drafts
        count, different, captures = sum(map(len, own)), differing(tokens, native), self.captures(step)
        where = " elsewhere, without caches," if self.elsewhere(step) else ","
        self.say(f"restored{where} addresses {ADDRESSES[addresses]}: {count} tokens, {count - different} equal native ones, {captures} captures")
        if different or captures:
            self.fail("restored tokens differ from native ones, or the start captured")
        return count, captures

    def changes(self, mistake, native):
        """How many tokens a mistake changes; None if the artifact has no place for it. A saved buffer may be scratch, whose bytes matter to no token: then the next
        one has the mistake."""
        for i in range(BUFFERS if mistake == controls.CONTENT else 1):
            changed = self.changed(mistake, f"{mistake}:{i}" if i else mistake, native)
            if changed != 0:
                return changed
        if mistake == controls.CONTENT:
            return self.say(f"mistake {mistake}: no token depends on a saved byte")
        return self.fail(f"no token shows the mistake {mistake}")

    def changed(self, mistake, made, native):
        artifact, what = self.artifact, "each step finds the metadata of another batch"
        if mistake != controls.METADATA:
            artifact = self.path(mistake + ".medusa")
            done = self.run("spoil-" + mistake, [self.settings.spoil, self.artifact, artifact, made, self.graph])
            if done.returncode == NOTHING:
                return self.say(f"mistake {mistake}: no place for it ({done.stderr.strip().rpartition('.medusa: ')[2]})")
            if done.returncode:
                self.fail(f"mistake {mistake}: {done.stderr.strip()}")
            what = done.stdout.strip()
        changed = differing(self.restore("control-" + mistake, artifact, mistake=mistake), native)
        self.say(f"mistake: {what}: {changed} tokens change")
        return changed

    def refused(self, mistake):
        """Verification finds the mistake, and leaves no artifact."""
        step, artifact = "refused-" + mistake, self.path(f"refused-{mistake}.medusa")
        done = self.run(step, [self.settings.medusa, "materialize", "--resume", self.traces, "-o", artifact, "--", *self.engine()], 6, mistake)
        why = next((line[line.index(REFUSED) :] for line in done.stderr.splitlines() if REFUSED in line), None)
        if not done.returncode or os.path.exists(artifact) or not why:
            self.fail(f"materialize did not refuse the mistake {mistake}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        self.say(f"mistake {mistake}: materialize refuses: {why}")
        return why

    def compare(self):
        """The row of this case."""
        step = self.kept.step
        native, row = step("native", self.native)
        row |= step("materialize", self.materialize)
        counts = [step("restored " + addresses, lambda a=addresses: self.restored(a, native)) for addresses in ADDRESSES]
        row |= {"tokens": sum(n for n, _ in counts), "captures": sum(n for _, n in counts)}
        mistakes = [] if self.traffic or self.served else [*self.settings.controls, *(controls.COLLECTIVE if self.ranks > 1 else ())]
        row["changed"] = {m: step("changes " + m, lambda m=m: self.changes(m, native)) for m in mistakes}
        made = [m for m, changed in row["changed"].items() if changed is not None]
        row["refused"] = {m: step("refused " + m, lambda m=m: self.refused(m)) for m in made}
        if set(self.settings.controls) == set(controls.ALL):
            shutil.rmtree(self.traces, ignore_errors=True)
        return row | {"identical": row["tokens"], "minutes": round(self.kept.minutes(), 1)}
