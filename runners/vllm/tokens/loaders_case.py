"""A case of make test-tokens in which several loaders read the same weights.

In: as case.py; an environment with the loaders. Out: a line about each step, and a row of counts. Fails: Failed, if a token is not the native one, if an artifact does not serve
the loader that it was made with, or safetensors if it was made with vLLM's default.
"""

import json

from case import ADDRESSES, Case, differing

# vLLM's default takes the same loader as safetensors does. The others have memory of their own on the device while they load.
DEFAULT, SAME, OTHERS = "auto", "safetensors", ("fastsafetensors", "runai_streamer")
REASON = "sequence_mismatch"  # of a start whose loader makes other allocations


class LoadersCase(Case):
    loader = DEFAULT

    def engine(self):
        return [*super().engine(), "--loader", self.loader]

    def made(self, loader):
        """An artifact of this loader's, which serves it at both kinds of addresses."""
        self.loader, self.artifact = loader, self.path(loader + ".medusa")
        return self.materialize()

    def served_by(self, artifact, loader, native):
        """How a start with this loader goes with the artifact of another one: its tokens are the native ones in any case."""
        self.loader, self.artifact = loader, self.path(artifact + ".medusa")
        step = f"{artifact}-by-{loader}"
        status = self.path(step + ".json")
        started = self.start(step, [self.settings.medusa, "restore", "--status", status, self.artifact, "--"])
        with open(status, encoding="utf-8") as f:
            told = json.load(f)
        how, different, captures = started["start"], differing(started["tokens"], native), self.captures(step)
        outcome = "restored" if how == "restored" else f"native ({told.get('reason')})"
        self.say(f"artifact of {artifact}, loaded by {loader}: {outcome}, {different} tokens differ, {captures} captures")
        if different or (captures > 0) != (how == "native") or outcome not in ("restored", f"native ({REASON})"):
            self.fail(f"{step}: {outcome}, {different} tokens differ, {captures} captures")
        return outcome

    def own(self, loader, addresses, native):
        self.loader, self.artifact = loader, self.path(loader + ".medusa")
        return self.restored(addresses, native)

    def compare(self):
        step = self.kept.step
        native, row = step("native", self.native)
        counts = []
        for loader in (DEFAULT, *OTHERS):
            row |= step(f"materialize {loader}", lambda x=loader: self.made(x))
            counts += [step(f"restored {loader} {how}", lambda x=loader, h=how: self.own(x, h, native)) for how in ADDRESSES]
        served = {x: step(f"{DEFAULT} by {x}", lambda x=x: self.served_by(DEFAULT, x, native)) for x in (SAME, *OTHERS)}
        if served[SAME] != "restored":
            self.fail(f"an artifact of {DEFAULT} does not serve {SAME}: {served[SAME]}")
        told = ", ".join(f"{loader} {outcome}" for loader, outcome in served.items())
        row |= {"tokens": sum(n for n, _ in counts), "captures": sum(n for _, n in counts), "changed": {}, "refused": {}}
        return row | {"reference": f"{row['reference']}; an artifact of {DEFAULT}: {told}", "identical": row["tokens"], "minutes": round(self.kept.minutes(), 1)}
