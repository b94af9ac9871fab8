"""make test-vllm-architectures: the outcome of each architecture that vLLM generates text with.

In: the output of `make vllm`. Out: a line about each start, the results, a page that is made of them, and last the line with the counts. An
architecture is restored, or starts natively for a reason, or vLLM does not start it here without Medusa either. Each result is stored once it is known. An
architecture that was shown before is not run again if the files that it depends on are the same (sources.py).
Fails: exit code 1 if a start ends in an exception of the plug-in's, or fails only with Medusa.

The plug-in's verdict on a configuration of two layers comes first (configurations.py). The architectures that it lets take part are materialized and restored.
"""

import collections
import json
import os
import re
import shutil
import subprocess
import sys

import sources
from run import HERE, ROOT, SECONDS, Engine, arguments, installed, results

TAKES_PART = "takes part"
EXPECTED, RESTORED, NATIVE, ABSENT = "expected", "restored", "native", "absent"
HEAD = """# Architectures

What becomes of each architecture that vLLM's registry generates text with, on the simulated GPU, with two layers, dummy weights and `FULL_DECODE_ONLY`. The backend is FLASH_ATTN, or TRITON_MLA
for latent attention. `make test-vllm-architectures VLLM_VERSION=x` makes the results and this page of them.

* `restored`: materialized, and restored in a new process. Graphs were not compared with those of a native start, as `make test-vllm` compares them.
* `native`: the start is native, with this reason. *Shown by* says whether a start said so, or the plug-in's verdict on vLLM's own configuration of the engine.
* `absent`: no such configuration could be made here, or vLLM does not take it without Medusa either, with this reason. Most often neither transformers nor
  vLLM has a configuration class, or a configuration of two layers does not fit together.
* `expected`: the plug-in's verdict lets it take part. It has not been started.

"""


def outcome(returncode, output):
    """The outcome of an architecture, by a run of `medusa materialize`; None if the run does not show it."""
    refused = re.findall(r"^medusa: record engine: (.*)", output, re.MULTILINE)
    # mutant: exception of the plug-in
    if any(f"/{package}/" in place for place in raised(output) for package in ("medusa_graphs", "medusa_vllm")):
        return {"outcome": "exception", "reason": exception(output)}
    if refused:
        return {"outcome": NATIVE, "reason": refused[-1]}
    return {"outcome": RESTORED} if returncode == 0 else None


def raised(output):
    """The files that exceptions were raised in: the last of each traceback. The plug-in's worker is further up in many."""
    found, last = [], None
    for frame, error in re.findall(r'^.*?File "([^"]+)", line|^((?:[A-Za-z_]+\.)*[A-Z][A-Za-z]*(?:Error|Exception)\b)', output, re.MULTILINE):
        found += [last] if error and last else []
        last = None if error else frame
    return found


def exception(output):
    """The last exception in an output, on one line."""
    found = re.findall(r"(?:^|\s)((?:[A-Za-z_]+\.)*[A-Z][A-Za-z]*(?:Error|Exception|Exit)\b:? ?.*)$", output, re.MULTILINE)
    return found[-1].strip()[:200] if found else "no exception in the output"


def backend(folder):
    """Latent attention has its own backends: each model that has it states the rank of its latent vectors."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        return "TRITON_MLA" if '"kv_lora_rank"' in f.read() else "FLASH_ATTN"


class Architecture(Engine):
    def __init__(self, args, name, folder):
        command = [os.path.abspath(args.python), os.path.join(HERE, "engine.py"), folder, "--no-requests", "--backend", backend(folder)]
        super().__init__(args, "architecture " + name, command)

    def environment(self, step):
        # All architectures share the cache of vLLM's findings about classes of models.
        return super().environment(step) | {"VLLM_CACHE_ROOT": os.path.join(os.path.abspath(self.args.work), "architectures", "cache")}

    def go(self, step, *command, **variables):
        with open(self.path(step + ".output"), "w+", encoding="utf-8", errors="replace") as out:
            try:
                code = subprocess.run(command, env=self.environment(step) | variables, stdout=out, stderr=out, check=False, timeout=2 * SECONDS).returncode
            except subprocess.TimeoutExpired:
                code = None
            out.seek(0)
            return code, out.read()

    def result(self):
        artifact, status = self.path("model.medusa"), self.path("status.json")
        code, output = self.go("materialize", self.medusa, "materialize", "-o", artifact, "--", *self.command)
        found = outcome(code, output)
        if found is None:
            return self.without(output)
        if found["outcome"] == RESTORED:
            code, output = self.go("restored", self.medusa, "restore", "--strict", "--status", status, artifact, "--", *self.command)
            if code:
                return {"outcome": "exception", "reason": exception(output)}
            with open(status, encoding="utf-8") as f:
                found["graphs"] = json.load(f)["graphs"]
        return found

    def without(self, output):
        """An engine that cannot be materialized, and has not said why, has to fail without Medusa as well. If it does not, verification may have refused it."""
        code, stock = self.go("stock", *self.command, PYTHONPATH="")
        if code:
            return {"outcome": ABSENT, "reason": exception(stock)}
        says = [line for line in output.splitlines() if line.startswith("medusa: ") and "does not travel" not in line]
        failed = "Traceback" in output or not says
        return {"outcome": "exception", "reason": exception(output)} if failed else {"outcome": NATIVE, "reason": says[-1].removeprefix("medusa: ")}


def verdicts(args, folder):
    command = [os.path.abspath(args.python), os.path.join(HERE, "configurations.py"), folder]
    env = Engine(args, "architectures", command).environment("restored")
    env |= {"PYTHONPATH": os.path.join(os.path.abspath(args.build), "lib", "python"), "VLLM_LOGGING_LEVEL": "ERROR"}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def of_verdict(said):
    if said == TAKES_PART:
        return {"outcome": EXPECTED}
    return {"outcome": ABSENT, "reason": said.removeprefix("vLLM: ")} if said.startswith("vLLM: ") else {"outcome": NATIVE, "reason": said}


def render(held):
    cases = held["cases"]
    counts = collections.Counter(row["outcome"] for row in cases.values())
    versions = ", ".join(f"{name} {version}" for name, version in held["versions"].items())
    lines = [f"{versions}: {', '.join(f'{n} {what}' for what, n in sorted(counts.items()))}.", ""]
    lines += ["| architecture | outcome | shown by | date | reason |", "|---|---|---|---|---|"]
    for name, row in sorted(cases.items()):
        reason = row.get("reason", "").replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {name} | {row['outcome']} | {row['by']} | {row['date']} | {reason} |")
    return HEAD + "\n".join(lines) + "\n"


def write_page(path):
    with open(path, encoding="utf-8") as f:
        page = render(json.load(f))
    with open(path.removesuffix(".json") + ".md", "w", encoding="utf-8") as f:
        f.write(page)


def known(args, path, folder, stamp):
    """The versions, and a row for each architecture: of earlier starts, or of verdicts."""
    rows = results.rows(path, lambda _: stamp["key"])
    if rows and os.path.isdir(folder):
        return results.versions(path), rows
    shutil.rmtree(folder, ignore_errors=True)
    said = verdicts(args, folder)
    rows = {name: of_verdict(word) | {"by": "configuration"} for name, word in said["verdicts"].items()} | {name: row for name, row in rows.items() if row["by"] == "start"}
    results.store(path, said["versions"], rows, **stamp)
    write_page(path)
    return said["versions"], rows


def main():
    args = arguments()
    folder = os.path.join(os.path.abspath(args.work), "architectures", "configurations")
    path = args.results or os.path.join(args.work, "architectures.json")
    stamp = {"commit": args.commit, "key": sources.key(ROOT, installed(args.python), "")}
    versions, rows = known(args, path, folder, stamp)
    for name in [name for name, row in rows.items() if row["outcome"] == EXPECTED]:
        rows[name] = Architecture(args, name, os.path.join(folder, name)).result() | {"by": "start"}
        print(f"test-vllm-architectures: {name}: {rows[name]['outcome']} {rows[name].get('reason', '')}".rstrip(), flush=True)
        results.store(path, versions, {name: rows[name]}, **stamp)
        write_page(path)
    counts = collections.Counter(row["outcome"] for row in rows.values())
    verdict = "FAIL" if counts["exception"] or not counts[RESTORED] else "PASS"
    print(
        f"test-vllm-architectures: {verdict} device=simulated vllm={versions['vllm']} architectures={len(rows)} "
        + " ".join(f"{what}={counts[what]}" for what in (RESTORED, NATIVE, ABSENT, "exception"))
    )
    sys.exit(verdict != "PASS")


if __name__ == "__main__":
    main()
