"""make test-vllm-faults: with each fault that prevents a restored start, vLLM starts as it would without Medusa.

In: the output of `make vllm`. Out: a line about each start, and last the line with the counts. Fails: exit code 1 if a
start that should be native is not, gives no or another reason, makes other launches than stock vLLM, or takes Medusa
longer than it may.
"""

import concurrent.futures
import dataclasses
import functools
import glob
import json
import os
import shutil

from run import HERE, Case, arguments, installed, stop

LIMIT = 100.0  # milliseconds of wall time, disks included, that Medusa's own spans may take
# An artifact holds torch's workspace for cuBLAS, by default 32 MiB on this device. The time to read them would depend on the disk.
WORKSPACE = ":4096:1"
V1 = {"VLLM_USE_V2_MODEL_RUNNER": "0"}  # vLLM itself takes this one for LoRA and draft models


@dataclasses.dataclass
class Fault:
    name: str
    code: str  # in the status
    says: str  # part of the one line
    extra: list = dataclasses.field(default_factory=list)  # arguments, of the stock start as well
    variables: dict = dataclasses.field(default_factory=dict)  # environment, of the stock start as well
    spoil: object = None  # called with the case and a copy of the artifact; may return more variables
    late: bool = False  # found when graphs are restored: triggering forwards have run by then


def cut(case, artifact):
    os.truncate(artifact, os.path.getsize(artifact) // 2)


def flip(case, artifact):
    with open(artifact, "r+b") as f:
        f.seek(os.path.getsize(artifact) // 2)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 1]))


def another_version(case, artifact):
    """A release newer than the installed one, by its metadata, in which a method that the plug-in uses has another source. All other files are links."""
    folder = case.path("newer")
    (package,) = glob.glob(os.path.join(os.path.dirname(case.args.python), "..", "lib", "python*", "site-packages", "vllm"))
    for part in "", "v1", "v1/worker":
        os.makedirs(os.path.join(folder, "vllm", part))
        for name in os.listdir(os.path.join(package, part)):
            if os.path.join(part, name) not in ("v1", "v1/worker", "v1/worker/workspace.py"):
                os.symlink(os.path.abspath(os.path.join(package, part, name)), os.path.join(folder, "vllm", part, name))
    with open(os.path.join(package, "v1/worker/workspace.py"), encoding="utf-8") as f:
        changed = f.read().replace("self._locked = True", "self._locked = not False")
    with open(os.path.join(folder, "vllm", "v1/worker/workspace.py"), "w", encoding="utf-8") as f:
        f.write(changed)
    release = installed(case.args.python) + ".1"
    os.makedirs(os.path.join(folder, f"vllm-{release}.dist-info"))
    with open(os.path.join(folder, f"vllm-{release}.dist-info", "METADATA"), "w", encoding="utf-8") as f:
        f.write(f"Metadata-Version: 2.1\nName: vllm\nVersion: {release}\n")
    return {"PYTHONPATH": folder}


def fail(call):
    """A call of the driver fails: SIMGPU_FAIL of simgpu."""
    return lambda case, artifact: {"SIMGPU_FAIL": call}


def smaller(case):
    """A model of another shape."""
    folder = case.path("smaller")
    os.makedirs(folder)
    with open(os.path.join(HERE, "models", "llama", "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config | {"intermediate_size": config["intermediate_size"] // 2}, f)
    return folder


def argument(name, value):
    return ["--set", f"{name}={json.dumps(value)}"]


def faults(case):
    spec = {"method": "draft_model", "model": os.path.join(HERE, "models", "llama"), "num_speculative_tokens": 2}
    return [
        Fault("artifact cut short", "artifact_corrupt", "corrupt", spoil=cut),
        Fault("artifact with a flipped bit", "artifact_corrupt", "corrupt", spoil=flip),
        Fault("no artifact", "artifact_missing", "", spoil=lambda case, artifact: os.remove(artifact)),
        Fault("another release", "unsupported", "WorkspaceManager", spoil=another_version),
        Fault("another GPU", "incompatible", "gpu.memory", variables={"SIMGPU_MEMORY": "6G"}),
        Fault("another model", "incompatible", "model.config", argument("model", smaller(case))),
        Fault("changed arguments", "incompatible", "setting.scheduler_config.max_num_seqs", argument("max_num_seqs", 16)),
        Fault("another batch limit", "incompatible", "setting.scheduler_config.max_num_batched_tokens", argument("max_num_batched_tokens", 256)),
        Fault("LoRA", "incompatible", "setting.lora_config", [*argument("enable_lora", True), "--no-requests"], V1),
        Fault("speculative decoding", "unsupported", "speculative", [*argument("speculative_config", spec), "--no-requests"], V1),
        Fault("eager", "unsupported", "enforce_eager", argument("enforce_eager", True)),
        Fault("sleep mode", "incompatible", "setting.model_config.enable_sleep_mode", [*argument("enable_sleep_mode", True), "--no-requests"]),
        Fault("another set of graphs", "engine", "vLLM would capture", ["--other-keys"], late=True),
        Fault("driver failure", "driver_error", "cuGraphInstantiate", spoil=fail("cuGraphInstantiateWithFlags:2:CUDA_ERROR_INVALID_VALUE"), late=True),
        Fault("plug-in switched off", "no_session", "without a session", spoil=lambda case, artifact: {"VLLM_PLUGINS": ""}),
    ]


def launches(case, step):
    """The launches of a process, in order: kernels with their shapes, and graphs by their size. Second, how many launches came before each capture."""
    keep = ("kernel=", "grid=", "block=", "shared=", "nodes=")
    found, captures = [], []
    for function, facts in case.log(step):
        if function.startswith("cuStreamBeginCapture"):
            captures.append(len(found))
        if function.startswith(("cuLaunch", "cuGraphLaunch")):
            found.append((function, *(f for f in facts if f.startswith(keep))))
    return found, captures


class Test:
    def __init__(self, case, pool):
        self.case, self.pool, self.wrong, self.stock, self.milliseconds, self.slow = case, pool, [], {}, [0.0], []
        self.profiles = case.runner == "V1" or [int(n) for n in installed(case.args.python).split(".")[:2]] >= [0, 29]

    def expect(self, what, good, *seen):
        if not good:
            self.wrong.append(" ".join([what, *(str(s) for s in seen)]))
            print("difference:", self.wrong[-1][:2000], flush=True)
        return good

    def native(self, f):
        """The stock start with the same arguments: its step, and its future result. Several faults share one."""
        key = json.dumps([f.extra, f.variables])
        if key not in self.stock:
            step = f"stock-{len(self.stock)}"
            self.stock[key] = step, self.pool.submit(self.case.start, step, extra=f.extra, PYTHONPATH="", **f.variables)
        return self.stock[key]

    def run_all(self, found, artifact):
        """Submits all stock starts first. So no start holds a place in the pool while its stock start waits for one."""
        for f in found:
            self.native(f)
        steps = [self.pool.submit(self.run, f, artifact) for f in found]
        steps.append(self.pool.submit(too_little_memory, self.case, artifact))
        steps.append(self.pool.submit(self.after_ready, self.case, artifact))
        steps.append(self.pool.submit(self.device_lost, artifact))
        steps.append(self.pool.submit(self.draft_model))
        pieces = [self.pool.submit(self.pieces, runner) for runner in ("V2", "V1")]
        for step in steps + pieces:
            step.result()
        return len(steps) + 2 * len(pieces)

    def run(self, f, artifact):
        step = f.name.replace(" ", "-")
        copy, status = self.case.path(step + ".medusa"), self.case.path(step + ".json")
        shutil.copy(artifact, copy)
        more = f.spoil(self.case, copy) if f.spoil else None
        stock, native = self.native(f)
        native = native.result()
        before = [self.case.medusa, "restore", "--status", status, copy, "--"]
        start = functools.partial(self.case.start, step, before, f.extra, **f.variables, **(more or {}))
        started = start()
        with open(self.case.path(step + ".output"), encoding="utf-8") as out:
            lines = [line for line in out if "medusa: native start" in line]  # a progress bar may come before it in the line
        self.expect(f"{f.name}: lines:", len(lines) == 1 and f.says in lines[0], lines)
        self.expect(f"{f.name}: start:", started["start"] == "native", started["start"])
        self.expect(f"{f.name}: graph keys:", started["keys"] == native["keys"], started["keys"], native["keys"])
        self.expect(f"{f.name}: graph launches:", started["launches"] == native["launches"], started["launches"])
        self.launched(f.name, step, stock, f.late)
        self.status(f, status, start)

    def launched(self, name, step, stock, late=False):
        (here, captured), (there, all_captured) = (launches(self.case, s) for s in (step, stock))
        # Stock vLLM captures while it profiles, too: on the V1 runner, and from 0.29 on. Those captures come first.
        more = len(all_captured) - len(captured)
        if late and self.expect(f"{name}: captures:", captured and (more > 0 if self.profiles else more == 0), len(captured), len(all_captured)):
            here, there = here[captured[0] :], there[all_captured[-len(captured)] :]
        at = next((i for i, pair in enumerate(zip(here, there)) if pair[0] != pair[1]), min(len(here), len(there)))
        self.expect(f"{name}: launches from {at}:", here == there and here, len(here), len(there), here[at : at + 2], there[at : at + 2])

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as out:
            return json.load(out)

    def status(self, f, path, again):
        status = self.read(path)
        self.expect(f"{f.name}: status:", (status["status"], status.get("reason")) == ("native", f.code), status["status"], status.get("reason"))
        if status["milliseconds"] <= LIMIT:
            self.milliseconds.append(status["milliseconds"])
        else:
            self.slow.append((f.name, path, again))
        phases = [p["name"] for p in status["phases"] or ()]
        self.expect(f"{f.name}: phases:", len(phases) == len(set(phases)), phases)

    def repeat_slow(self):
        """Wall time depends on what runs beside it: starts that took too long are made again, one at a time."""
        for name, path, again in self.slow:
            again()
            status = self.read(path)
            self.milliseconds.append(status["milliseconds"])
            self.expect(f"{name}: milliseconds:", status["milliseconds"] <= LIMIT, status["milliseconds"], status["spans"])

    def after_ready(self, case, artifact):
        """Restored graphs are used until weights move, and not afterwards."""
        how = "reload"
        started = case.start(how, [case.medusa, "restore", artifact, "--"], ["--then-reload"])
        with open(case.path(how + ".output"), encoding="utf-8") as out:
            lines = [line for line in out if "medusa: restored graphs are no longer used" in line]
        name = f"{case.name}: {how}"
        self.expect(f"{name}: lines:", len(lines) == 1, lines)
        self.expect(f"{name}: start:", started["start"] == "restored", started["start"])
        self.expect(f"{name}: launches before:", started["launches"] == started["steps"], started["launches"])
        self.expect(f"{name}: launches after:", started["later"] and not any(started["later"].values()), started["later"])

    def pieces(self, runner):
        """A compiled model, whose pieces have graphs of their own: a set of graphs that does not fit, and graphs that are gone."""
        case = Case(self.case.args, "llama", "FLASH_ATTN", runner, "FULL_AND_PIECEWISE", folder=f"faults-{runner}")
        case.command = case.plain
        artifact = case.materialize()
        fault = Fault("another set of pieces", "engine", "vLLM would capture", ["--other-keys"], late=True)
        test = self.alone(case, fault, artifact)
        test.after_ready(case, artifact)
        self.add(test)

    def draft_model(self):
        """A draft model of another shape than the artifact's."""
        drafts = {"method": "eagle", "model": "llama", "num_speculative_tokens": 3}
        case = Case(self.case.args, "llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", f"speculative_config={json.dumps(drafts)}", folder="faults-draft")
        case.command = case.plain
        fault = Fault("another draft model", "incompatible", "model.draft", argument("speculative_config", drafts | {"model": smaller(case)}))
        self.add(self.alone(case, fault, case.materialize()))

    @staticmethod
    def alone(case, fault, artifact):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:  # the caller may hold the last place in the other pool
            test = Test(case, pool)
            test.run(fault, artifact)
        return test

    def add(self, test):
        self.wrong += test.wrong
        self.milliseconds += test.milliseconds
        self.slow += test.slow

    def device_lost(self, artifact):
        """A restored graph fails for good after `ready`: the process ends, and another starts natively, as stock vLLM."""
        step, status = "device-lost", self.case.path("device-lost.json")
        copy = self.case.path(step + ".medusa")
        shutil.copy(artifact, copy)
        before = [self.case.medusa, "restore", "--status", status, copy, "--"]
        lost = {"SIMGPU_FAIL": "cuGraphLaunch:5:CUDA_ERROR_ILLEGAL_ADDRESS", "SIMGPU_FAIL_ONCE": self.case.path("device-lost.failed")}
        stock, native = self.native(Fault(step, "", ""))
        native = native.result()
        started = self.case.start(step, before, **lost)
        with open(self.case.path(step + ".output"), encoding="utf-8") as out:
            lines = [line for line in out if "medusa: " in line]
        self.expect(f"{step}: lines:", len(lines) == 2 and "only a new process" in lines[0] and "native start" in lines[1], lines)
        self.expect(f"{step}: status:", self.read(status)["status"] == "sticky")
        self.expect(f"{step}: artifact:", os.path.exists(copy + ".aside") and not os.path.exists(copy))
        self.expect(f"{step}: start:", (started["start"], started["launches"]) == ("native", native["launches"]), started)
        self.launched(step, step, stock)


def too_little_memory(case, artifact):
    """vLLM itself does not start if others have the memory that it is to take. It reports this with and without Medusa."""
    occupied, says = [*case.plain, "--occupy", str(7 << 30)], "Free memory on device"
    case.run("memory taken by others, stock", occupied, fails=says, PYTHONPATH="")
    case.run("memory taken by others", [case.medusa, "restore", artifact, "--", *occupied], fails=says)


def main():
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = WORKSPACE
    # vLLM frees the places of requests in the order of a set of strings. The kernel that clears a request's drafts depends on its place.
    os.environ["PYTHONHASHSEED"] = "0"
    case = Case(arguments(), "llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", folder="faults")
    case.command = case.plain
    artifact, found = case.materialize(), faults(case)
    with concurrent.futures.ThreadPoolExecutor(case.args.at_once) as pool:
        test = Test(case, pool)
        count = test.run_all(found, artifact)
    test.repeat_slow()
    if test.wrong:
        stop(f"{len(test.wrong)} differences")
    longest = max(test.milliseconds)
    print(f"test-vllm-faults: PASS device=simulated faults={count} native={len(found) + 3} longest_ms={longest:.1f} differences=0")


if __name__ == "__main__":
    main()
