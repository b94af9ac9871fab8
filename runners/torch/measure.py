"""Native starts against restored ones, for several shapes: outputs, stages of every mode, replay. A step of `make gpu-kit`.

In: a folder with medusa, its libraries and the engine; an interpreter that has torch; a list of shapes. Out: in a folder,
the reports and the output of every start, machine.txt, report.json; and a short table. Fails: exit code 1 if a step
fails or restored outputs are not those of native capture. Steps for which there was no time are named, and are no failure.

Uses the standard library only. Starts of two modes that are compared take turns, so that both meet the same machine.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

MODES = ("native", "async", "kv-only", "no-graphs", "restored")
LOADING = ("structure", "weights", "tokenizer", "kv_cache", "capture")


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("out")
    p.add_argument("--bundle", required=True, help="folder with medusa, lib and engine")
    p.add_argument("--python", required=True, help="interpreter that has torch")
    p.add_argument("--shape", action="append", required=True, help="PRESET[:OPTION=VALUE...], options of the engine; repeatable, the first matters most")
    p.add_argument("--traces", help="folder for the traces of each materialize, kept also if it is stopped")
    p.add_argument("--rounds", type=int, default=3, help="starts of native and restored, in turns; one of every other mode")
    p.add_argument("--replays", type=int, default=64, help="decode steps to time at each batch size")
    p.add_argument("--tokens", type=int, default=4)
    p.add_argument("--budget", type=float, default=570, help="seconds after which no further start begins")
    return p.parse_args()


class OutOfTime(Exception):
    pass


class Failed(Exception):
    pass


class Shape:
    """The starts of one shape. Each leaves NAME.json and NAME.log in the shape's folder."""

    def __init__(self, run, text):
        self.run = run
        self.name, *options = text.split(":")
        options = dict(o.split("=", 1) for o in options)
        self.folder = os.path.join(run.out, self.name)
        os.makedirs(self.folder, exist_ok=True)
        self.model = os.path.join(self.folder, "model")
        self.artifact = os.path.join(self.folder, self.name + ".medusa")
        self.starts = {mode: [] for mode in MODES}
        self.seconds = {}
        small = [x for key in ("layers", "vocabulary") if key in options for x in ("--" + key, options.pop(key))]
        self.make = [run.engine("checkpoint.py"), self.model, "--preset", self.name, "--no-weights", *small]
        self.engine = [
            run.args.python, run.engine("engine.py"), "--model", self.model,
            *(x for key, value in options.items() for x in ("--" + key, value)),
            "--tokens", str(run.args.tokens),
        ]
        self.note = " ".join(f"{k}={v}" for k, v in zip(small[::2], small[1::2])).replace("--", "")

    def command(self, name, command):
        left = self.run.left()
        if left <= 0:
            raise OutOfTime(f"{self.name}: {name}")
        began = time.monotonic()
        try:
            done = subprocess.run(command, env=self.run.env, capture_output=True, text=True, check=False, timeout=left + 60)
        except subprocess.TimeoutExpired as e:
            raise OutOfTime(f"{self.name}: {name} (begun, and stopped)") from e
        self.seconds[name] = round(time.monotonic() - began, 3)
        for end, text in (("log", done.stderr), ("txt", done.stdout)):
            with open(os.path.join(self.folder, f"{name}.{end}"), "w", encoding="utf-8") as f:
                f.write(text)
        if done.returncode:
            raise Failed(f"{self.name}: {name}: exit code {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
        print(f"gpu-torch: {self.name}: {name}: {self.seconds[name]:.1f} s", flush=True)
        return done.stdout

    def prepare(self):
        self.command("model", [self.run.args.python, *self.make])
        self.command("materialize", [self.run.medusa, "materialize", "-o", self.artifact, *self.run.traces(self.name), "--", *self.engine])

    def start(self, mode):
        number = len(self.starts[mode]) + 1
        engine = [*self.engine, "--replays", str(self.run.args.replays)]
        if mode == "restored":
            engine = [self.run.medusa, "restore", "--strict", self.artifact, "--", *engine]
        elif mode == "kv-only":
            if not self.starts["native"]:
                raise OutOfTime(f"{self.name}: {mode}-{number}")  # its cache has the size of a native start's
            engine += ["--mode", mode, "--kv-bytes", str(self.starts["native"][0]["kv_bytes"])]
        else:
            engine += ["--mode", mode]
        report = json.loads(self.command(f"{mode}-{number}", engine).splitlines()[-1])
        if report["start"] != mode:
            raise Failed(f"{self.name}: {mode}-{number}: it started {report['start']}")
        self.starts[mode].append(report)

    def outputs(self):
        """How many batch sizes give the same logits, bit for bit, natively twice and restored, and the same tokens eagerly."""
        native = self.starts["native"][0]
        sizes = list(native["logits"])

        def same(mode, what, which=-1):
            starts = self.starts[mode]
            return sum(starts[which][what][b] == native[what][b] for b in sizes) if starts else None

        return {
            "sizes": len(sizes),
            "native_again_bitwise": same("native", "logits") if len(self.starts["native"]) > 1 else None,
            "restored_bitwise": min((same("restored", "logits", i) for i in range(len(self.starts["restored"]))), default=None),
            "restored_tokens": min((same("restored", "tokens", i) for i in range(len(self.starts["restored"]))), default=None),
            "eager_tokens": same("no-graphs", "tokens"),
        }

    def stages(self, mode):
        """Medians over the mode's starts: the seconds of each stage, and of loading from the first to the last."""
        out = {}
        for stage in LOADING:
            took = [s["ended"] - s["began"] for r in self.starts[mode] for s in r["stages"] if s["name"] == stage]
            out[stage] = statistics.median(took) if took else 0.0
        ends = [
            max(s["ended"] for s in r["stages"]) - min(s["began"] for s in r["stages"] if s["name"] in LOADING)
            for r in self.starts[mode]
        ]
        out["loading"] = statistics.median(ends)
        return out

    def replay(self):
        """The median over batch sizes of a restored step's time over a native one's; each the fastest of its rounds."""
        if not self.starts["native"] or not self.starts["restored"]:
            return None
        best = {
            mode: {b: min(r["replays"][b] for r in self.starts[mode]) for b in self.starts[mode][0]["replays"]} for mode in ("native", "restored")
        }
        return statistics.median(best["restored"][b] / best["native"][b] for b in best["native"])

    def report(self):
        present = [m for m in MODES if self.starts[m]]
        return {
            "shape": self.name, "smaller": self.note, "engine": self.engine[2:],
            "graphs": self.starts["native"][0]["graphs"], "kv_bytes": self.starts["native"][0]["kv_bytes"],
            "outputs": self.outputs(), "stages": {m: self.stages(m) for m in present}, "replay": self.replay(),
            "starts": {m: len(self.starts[m]) for m in present}, "seconds": self.seconds,
        }


class Run:
    def __init__(self, args):
        self.args = args
        self.began = time.monotonic()
        self.out = os.path.abspath(args.out)
        self.bundle = os.path.abspath(args.bundle)
        self.medusa = os.path.join(self.bundle, "medusa")
        self.env = dict(os.environ, HF_HUB_OFFLINE="1")
        plugin = os.path.join(self.bundle, "lib", "python")
        self.env["PYTHONPATH"] = os.pathsep.join(p for p in (plugin, os.environ.get("PYTHONPATH")) if p)
        os.makedirs(self.out, exist_ok=True)

    def engine(self, file):
        return os.path.join(self.bundle, "engine", file)

    def traces(self, name):
        if not self.args.traces:
            return []
        folder = os.path.join(os.path.abspath(self.args.traces), name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        return ["--keep-traces", folder]

    def left(self):
        return self.args.budget - (time.monotonic() - self.began)

    def machine(self):
        lines = [time.strftime("%Y-%m-%d", time.gmtime()), platform.platform()]
        for command in (["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv"], ["nvidia-smi"]):
            try:
                lines.append(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
            except OSError as e:
                lines.append(str(e))
        versions = "import torch, transformers; print('torch', torch.__version__, 'transformers', transformers.__version__, 'device', torch.cuda.get_device_name(0))"
        done = subprocess.run([self.args.python, "-c", versions], env=self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"import torch and transformers: {done.stderr[-1000:]}")
        lines.append(done.stdout)
        with open(os.path.join(self.out, "machine.txt"), "w", encoding="utf-8") as f:
            f.write("\n".join(lines))

    def shapes(self):
        """Each shape is started in each mode before any is started again. So if time runs out, no shape is left out."""
        shapes, missing = [Shape(self, text) for text in self.args.shape], []
        plan = []
        for s in shapes:
            plan.append((s.prepare,))
            plan += [(s.start, mode) for mode in ("native", "restored", "no-graphs", "async", "kv-only")]
        plan += [(s.start, mode) for _ in range(self.args.rounds - 1) for s in shapes for mode in ("native", "restored")]
        for step, *args in plan:
            try:
                step(*args)
            except OutOfTime as e:
                missing.append(str(e))
        return shapes, missing


def table(reports):
    """Seconds of each stage in each mode, and how loading compares with native."""
    head = ["shape", "mode", *LOADING, "loading", "native/mode"]
    rows = [head]
    for r in reports:
        native = r["stages"]["native"]["loading"]
        for mode, stages in r["stages"].items():
            rows.append([r["shape"], mode, *(f"{stages[k]:.3f}" for k in (*LOADING, "loading")), f"{native / stages['loading']:.2f}"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return "\n".join("  ".join(x.ljust(w) if i < 2 else x.rjust(w) for i, (x, w) in enumerate(zip(row, widths))) for row in rows)


def verdict(reports, missing, simulated):
    """One line a shape about outputs, capture and replay; and whether all compared outputs are equal, those of the first shape among them. On the
    simulated GPU torch's kernels are no-ops: outputs are old contents of memory, and are not compared."""
    lines, equal = [], bool(reports)
    for r in reports:
        o, n = r["outputs"], r["outputs"]["sizes"]
        if "restored" not in r["stages"]:
            lines.append(f"{r['shape']}: not restored")
            equal = equal and r is not reports[0]  # the first matters; for the others, time may not have sufficed
            continue
        outputs = "outputs not compared (kernels compute nothing here)"
        if not simulated:
            equal = equal and o["restored_tokens"] == n and o["restored_bitwise"] == n and o["eager_tokens"] in (n, None)
            outputs = (
                f"of {n} batch sizes {o['restored_bitwise']} restored bit for bit ({o['native_again_bitwise']} native again), "
                f"{o['restored_tokens']} token for token, {o['eager_tokens']} as eager"
            )
        capture = {m: r["stages"][m]["capture"] for m in ("native", "restored")}
        lines.append(
            f"{r['shape']}{' (' + r['smaller'] + ')' if r['smaller'] else ''}: {r['graphs']} graphs; {outputs}; "
            f"capture {capture['native']:.3f} s, restored {capture['restored']:.3f} s "
            f"({capture['native'] / capture['restored']:.1f} times); replay restored/native {r['replay']:.3f}"
        )
    lines += [f"no time left for {m}" for m in missing]
    return lines, equal


def main():
    args = arguments()
    run = Run(args)
    try:
        run.machine()
        shapes, missing = run.shapes()
    except Failed as e:
        sys.exit(f"gpu-torch: {e}")
    complete = [s for s in shapes if s.starts["native"]]
    reports = [s.report() for s in complete]
    first = complete[0].starts["native"][0] if complete else {"device": "none", "torch": "?"}
    with open(os.path.join(run.out, "report.json"), "w", encoding="utf-8") as f:
        json.dump({"device": first["device"], "torch": first["torch"], "missing": missing, "shapes": reports}, f, indent=1)
    simulated = first["device"] == "Simulated GPU"
    lines, equal = verdict(reports, missing, simulated)
    text = "\n".join([table(reports), "", *lines])
    device = "simulated" if simulated else first["device"]
    last = f"gpu-torch: {'PASS' if equal else 'FAIL'} device={device} torch={first['torch']} shapes={len(reports)} seconds={time.monotonic() - run.began:.0f}"
    print(text, last, sep="\n")
    with open(os.path.join(run.out, "table.txt"), "w", encoding="utf-8") as f:
        f.write(text + "\n" + last + "\n")
    sys.exit(not equal)


if __name__ == "__main__":
    main()
