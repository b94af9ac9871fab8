"""make test-vllm-wheel: Medusa as pip installs it. Starts of the unchanged `vllm serve`, which MEDUSA_ARTIFACT alone switches on, and starts without it.

In: a wheel (--wheel), the output of `make vllm` without its plug-ins. Out: a line about each start, and last the line with the counts. Fails: exit code 1 if a
start is not as it should be, or if pip leaves anything behind.
"""

import os
import shutil
import subprocess
import sys
import urllib.error

from run import HERE, arguments, stop
from serve import GRAPHS, MODEL, Server, check


class Plain(Server):
    """No command of Medusa's in front of the engine's. The wheel lies in a folder of its own, before the environment's packages."""

    site = ""

    def environment(self, step):
        env = super().environment(step)
        return env | {"PYTHONPATH": self.site, "PATH": os.path.join(self.site, "bin") + ":" + env["PATH"]}

    def serve(self, step, **variables):
        output = self.path(step + ".output")
        env = {k: v for k, v in (self.environment(step) | variables).items() if v is not None}
        with open(output, "w", encoding="utf-8") as out:
            server = subprocess.Popen(self.command, env=env, stdout=out, stderr=out)
        try:
            self.wait(step, server)
            metrics = self.get("/metrics")
        except urllib.error.URLError as e:
            stop(f"{step}: {e}")
        finally:
            server.terminate()
            server.wait(60)
        with open(output, encoding="utf-8") as out:
            lines = [line[line.index("medusa: ") :].strip() for line in out if "medusa: " in line]
        print(f"test-vllm-wheel: {step}: done", flush=True)
        return [line for line in metrics.splitlines() if line.startswith("medusa_")], lines


def keepers():
    """Processes of `medusa hold`: none is left when its engine has ended."""
    out = subprocess.run(["ps", "-eo", "args"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line for line in out.splitlines() if line.endswith("medusa hold")]


def install(python, wheel, site):
    """The whole life of the wheel in pip's hands, and then a folder with it."""
    venv = site + "-venv"
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([python, "-m", "venv", venv], check=True)
    pip = [os.path.join(venv, "bin", "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    before = files(venv)
    subprocess.run([*pip, "install", "--no-index", wheel], check=True)
    subprocess.run([*pip, "check"], check=True)
    version = subprocess.run([os.path.join(venv, "bin", "medusa"), "doctor"], stdout=subprocess.PIPE, text=True, check=False).stdout
    check("installed: doctor finds all parts", all(f"{part} ok" in " ".join(version.split()) for part in ("interposer", "libmedusa.so", "vLLM", "PyTorch")), version)
    subprocess.run([*pip, "uninstall", "--yes", "medusa-graphs"], check=True)
    check("uninstalled: nothing is left", files(venv) == before, sorted(files(venv) ^ before))
    shutil.rmtree(site, ignore_errors=True)
    subprocess.run([*pip, "install", "--no-index", "--target", site, wheel], check=True)


def files(folder):
    return {os.path.join(top, name) for top, _, names in os.walk(folder) for name in names if not name.endswith(".pyc")}


def main():
    at = sys.argv.index("--wheel")
    wheel = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at : at + 2]
    args = arguments()
    server = Plain(args, name="wheel")
    server.site = server.path("site")
    install(args.python, wheel, server.site)
    server.medusa = os.path.join(server.site, "bin", "medusa")
    artifact = server.materialize()
    folder = server.path("artifacts")
    os.mkdir(folder)
    os.link(artifact, os.path.join(folder, "model.medusa"))

    for place in (artifact, folder):
        step = "restored from a " + ("folder" if place == folder else "file")
        metrics, lines = server.serve(step, MEDUSA_ARTIFACT=place)
        check(f"{step}: metrics", 'medusa_starts_total{reason="",status="restored"} 1.0' in metrics, metrics, lines)
        check(f"{step}: lines", len(lines) == 1 and lines[0].startswith(f"medusa: restored {GRAPHS} graphs in "), lines)
        check(f"{step}: captures", not any(name.startswith("cuStreamBeginCapture") for name, _ in server.log(step)))

    metrics, lines = server.serve("without the variable")
    check("without the variable", not metrics and not lines, metrics, lines)
    check("without the variable: captures", any(name.startswith("cuStreamBeginCapture") for name, _ in server.log("without the variable")))

    for step, variables, reason in (
        ("switched off", {"MEDUSA_OFF": "1"}, "switched_off"),
        ("no such file", {"MEDUSA_ARTIFACT": "/nowhere.medusa"}, "artifact_missing"),
    ):
        metrics, lines = server.serve(step, **{"MEDUSA_ARTIFACT": artifact} | variables)
        check(f"{step}: metrics", f'medusa_starts_total{{reason="{reason}",status="native"}} 1.0' in metrics, metrics, lines)
        check(f"{step}: lines", len(lines) == 1 and lines[0].startswith(f"medusa: native start: {reason}: "), lines)

    # An engine in the process that reads the variable, or in one that is forked from it, cannot be preloaded any more.
    engine = [os.path.abspath(args.python), os.path.join(HERE, "engine.py"), MODEL, "--set", "enable_sleep_mode=true"]
    for step, more, variables in (
        ("offline in one process", [], {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}),
        ("offline in a forked process", ["--engine-process"], {"VLLM_WORKER_MULTIPROC_METHOD": "fork"}),
    ):
        server.run(step, [*engine, *more], MEDUSA_ARTIFACT=artifact, **variables)
        with open(server.path(step + ".output"), encoding="utf-8") as f:
            lines = [line for line in f if "medusa: " in line]
        check(f"{step}: lines", len(lines) == 1 and "native start: interposer_absent: " in lines[0], lines)

    other = server.path(os.path.join("lib", "python"))
    shutil.copytree(os.path.join(os.path.abspath(args.build), "lib", "python"), other)
    shutil.copy(os.path.join(os.path.abspath(args.build), "lib", "libmedusa.so"), server.path("lib"))
    (info,) = [name for name in os.listdir(other) if name.endswith(".dist-info")]
    path = os.path.join(other, info, "METADATA")
    with open(path, encoding="utf-8") as f:
        text = f.read().replace("\nVersion: ", "\nVersion: 9.")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    metrics, lines = server.serve("two versions", MEDUSA_ARTIFACT=artifact, PYTHONPATH=other + ":" + server.site)
    check("two versions: metrics", 'medusa_starts_total{reason="unsupported",status="native"} 1.0' in metrics, metrics)
    check("two versions: lines", len(lines) == 1 and "several versions of Medusa are installed: 9." in lines[0], lines)
    check("no process is left", not keepers(), keepers())
    print(f"test-vllm-wheel: PASS device=simulated graphs={GRAPHS} starts=8")


if __name__ == "__main__":
    main()
