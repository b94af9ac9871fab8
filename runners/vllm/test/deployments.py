"""make test-vllm-deployments: an artifact that was made in one place is restored in others, and each variable that counts is a difference with a name.

In: the output of `make vllm`; root, for namespaces. Out: a line about each place, and last the line with the counts. Fails: exit code 1 if a place is not restored, if
one of its graphs differs from the recorded ones by the device's account, or if a difference goes without its name.
"""

import dataclasses
import json
import os
import shutil
import subprocess
import sys

from recipe import Recipe, Wrong
from run import HERE, NATIVE, PROCESSES, ROOT, TORCH, Case, arguments, installed

sys.path.insert(0, os.path.join(TORCH, "test"))

from compare import Comparison  # noqa: E402

KEYS = 2  # starts by the recipe, each with another key

OTHER_USER = 54321
UUIDS = [f"GPU-73696d75-6c61-7465-642d-6770752d3{n}00" for n in range(2)]  # of the simulated devices: the text of their names
POD = {  # what belongs to a pod, and changes from one to the next
    "VLLM_API_KEY": "sk-of-this-start", "VLLM_HOST_IP": "127.0.0.1", "VLLM_LOOPBACK_IP": "127.0.0.1", "VLLM_NIXL_SIDE_CHANNEL_PORT": "5999", "VLLM_PROCESS_NAME_PREFIX": "pod-7",
    "VLLM_ENGINE_READY_TIMEOUT_S": "1200", "VLLM_LORA_RESOLVER_CACHE_DIR": "/nowhere", "VLLM_SYSTEM_START_DATE": "2026-01-01", "VLLM_USAGE_SOURCE": "production-docker-image",
    "NVCC_THREADS": "3", "VLLM_LOGGING_LEVEL": "WARNING", "VLLM_LOGGING_PREFIX": "[pod] ", "VLLM_LOG_STATS_INTERVAL": "5", "VLLM_PLUGINS": "medusa", "VLLM_IMAGE_TAG": "v1",
    "TZ": "Asia/Kathmandu", "VLLM_SERVICE_HOST": "10.0.0.9", "HOSTNAME": "pod-7", "POD_IP": "10.1.2.3",
}  # fmt: skip


def stop(*what):
    print("test-vllm-deployments: FAIL", *what)
    sys.exit(1)


@dataclasses.dataclass
class Place:
    """Where and how a start is made."""

    name: str
    variables: dict = dataclasses.field(default_factory=dict)
    model: str = ""  # the folder's name, if it is another
    namespaces: bool = False  # a mount, host name and process tree of its own, behind a shell as process 1
    read_only: bool = False  # the root, with a fresh /tmp
    user: int = 0
    processors: str = ""


# torch needs a name for a user that no file of users has, with and without Medusa.
PLACES = [
    Place("pod", POD),
    Place("other folders", {"HOME": "{folder}/home of /ünïcode"}, "a mödel with späces"),
    Place("process 1", namespaces=True, processors="0"),
    Place("read-only root, other user", POD | {"USER": "pod"}, namespaces=True, read_only=True, user=OTHER_USER),
    Place("device by number", {"SIMGPU_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "1"}),
    Place("device by UUID", {"SIMGPU_DEVICES": "2", "CUDA_VISIBLE_DEVICES": UUIDS[1]}),
]


def behind(covered, path):
    return path.startswith(covered + "/")


def namespace(place, keep, writable):
    """The command that runs another one in namespaces of its own. keep: folders that stay visible."""
    cover = ["/tmp"] if place.read_only else []
    # Another user cannot enter the folder of a root's own interpreter.
    cover += ["/root"] if place.user and any(behind("/root", k) for k in keep) else []
    lines = ["set -e", "hostname pod-7", "mount --make-rprivate /"]
    lines += ["mount -t tmpfs none /mnt"] if cover else []
    held = [k for k in keep if any(behind(c, k) for c in cover)]
    for i, folder in enumerate(held):
        lines += [f"mkdir /mnt/{i}", f"mount --rbind '{folder}' /mnt/{i}"]
    lines += [f"mount -t tmpfs -o mode=1777 none {c}" for c in cover]
    for i, folder in enumerate(held):
        lines += [f"mkdir -p '{folder}'", f"mount --rbind /mnt/{i} '{folder}'"]
    if place.read_only:
        lines += [f"mount --bind '{writable}' '{writable}'", "mount -o remount,bind,ro /"]
    prefix = f"setpriv --reuid {place.user} --regid {place.user} --clear-groups " if place.user else ""
    lines += [f'{prefix}"$@"', "exit $?"]
    return ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "\n".join(lines), "sh"]


class Here(Case):
    """The place of the recording. Caches are bundled, so that no other place has to share them."""

    def __init__(self, args, name="here"):
        super().__init__(args, "llama", "FLASH_ATTN", "V2", "FULL_DECODE_ONLY", folder="deployment " + name)

    def environment(self, step):
        found = super().environment(step)
        if step == "native":
            return found
        os.makedirs(self.path("home"), exist_ok=True)
        kept = {k: v for k, v in found.items() if k not in ("VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR")}
        return kept | {"HOME": self.path("home"), "MEDUSA_CACHE": self.path("medusa")}


class There(Here):
    """A start in another place, from the artifact of the first."""

    def __init__(self, args, place, artifact):
        super().__init__(args, place.name)
        self.place, self.artifact = place, artifact
        if place.model:
            engine, program, model, *rest = self.plain
            self.plain = [engine, program, self.path(place.model), *rest]
            shutil.copytree(model, self.path(place.model))
            self.command = [*self.command[:3], *self.plain]

    def environment(self, step):
        found = super().environment(step) | {name: value.replace("{folder}", self.folder) for name, value in self.place.variables.items()}
        os.makedirs(found["HOME"], exist_ok=True)
        return found

    def restore(self):
        before = [self.medusa, "restore", "--status", self.path("status.json"), self.artifact, "--"]
        if self.place.processors:
            before = ["taskset", "--cpu-list", self.place.processors, *before]
        if self.place.namespaces:
            self.environment("restored")
            keep = [os.path.abspath(ROOT), *(os.path.realpath(p) for p in (sys.base_prefix, os.path.join(os.path.dirname(self.args.python), "..")))]
            if self.place.user:
                subprocess.run(["chown", "-R", str(self.place.user), self.folder], check=True)
            before = [*namespace(self.place, keep, self.folder), *before]
        found = self.start("restored", before)
        with open(self.path("status.json"), encoding="utf-8") as f:
            status = json.load(f)
        if (status["status"], found["start"]) != ("restored", "restored"):
            stop(f"{self.place.name}: {status['status']} {status.get('reason', '')}: {status.get('detail', '')}")
        return found


class Refused(There):
    """A start that must not be restored, for a reason with a name."""

    def refuse(self, name, values):
        status = self.path("status.json")
        command = [self.medusa, "restore", "--strict", "--status", status, self.artifact, "--", *self.plain]
        self.run("refused", command, fails=name)
        with open(status, encoding="utf-8") as f:
            found = json.load(f)
        if found["reason"] != "incompatible" or any(word not in found["detail"] for word in (name, *values)):
            stop(f"{self.place.name}: {found}")


def counted(case):
    """Each variable that counts, changed alone, is a factor with its name, and no variable of the deployment is one: by vLLM's own functions."""
    out = case.run("variables", [case.plain[0], os.path.join(HERE, "each_variable.py")], PYTHONPATH=os.path.join(os.path.abspath(case.args.build), "lib", "python"))
    return json.loads(out.splitlines()[-1])


def main():
    args = arguments()
    if os.geteuid():
        stop("places need root (namespaces of mounts and users)")
    here = Here(args)
    variables = counted(here)
    artifact = here.materialize()
    here.start("native")
    c = Comparison()
    recorded = [here.graphs(name) for name in PROCESSES]
    assert recorded[NATIVE]
    for place in PLACES:
        there = There(args, place, artifact)
        there.restore()
        c.pairs = {}
        c.run(recorded, there.graphs("restore"))
        print(f"test-vllm-deployments: {place.name}: restored, {len(c.differences)} differences so far", flush=True)
    try:
        recipe = Recipe(args, artifact)
        for _ in range(KEYS):
            status = recipe.run_server()
            if status["status"] != "restored":
                stop("recipe:", status)
            print("test-vllm-deployments: recipe of docs/serve.md: restored", flush=True)
    except Wrong as e:
        stop(e)
    changes = [
        (Place("a variable", {"VLLM_DISABLED_KERNELS": "a_kernel"}), (), "env.VLLM_DISABLED_KERNELS", ('want the default, got "a_kernel"',)),
        (Place("a variable of a library", {"NVIDIA_TF32_OVERRIDE": "0"}), (), "env.NVIDIA_TF32_OVERRIDE", ('want the default, got "0"',)),
        (Place("a setting"), ("--set", "max_num_seqs=4"), "setting.scheduler_config.max_num_seqs", ('want "8", got "4"',)),
    ]
    for place, more, name, values in changes:
        start = Refused(args, place, artifact)
        start.plain += more
        start.refuse(name, values)
        print(f"test-vllm-deployments: {place.name}: native, {name}", flush=True)
    for d in c.differences[:20]:
        print("difference:", d)
    verdict = "FAIL" if c.differences else "PASS"
    native, restored = variables["counted"] + len(changes), len(PLACES) + KEYS
    print(
        f"test-vllm-deployments: {verdict} device=simulated vllm={installed(args.python)} places={restored} restored={restored} differences={len(c.differences)} "
        f"counted={native} native={native}"
    )
    sys.exit(verdict != "PASS")


if __name__ == "__main__":
    main()
