"""A case of make test-tokens in which one artifact serves several checkpoints of one configuration.

In: as case.py. Out: a line about each step, and a row of counts. Fails: Failed, if a restored token is not the native one of the same checkpoint, if two checkpoints have the
same tokens natively, or if the artifact is tied to its weights.
"""

import itertools
import json
import os

from case import ADDRESSES, HERE, Case, differing

# Of the checkpoints, which differ in their weights. The artifact is made with the first. They lie at different places: a plain one, one with a name that a shell or a codec
# may mistake, one behind a link.
PLACES = {4: "base", 5: "fine-tuné à côté", 6: "volume"}
BASE, LINKED = 4, 6
HOW = {4: ("exact",), 5: tuple(ADDRESSES), 6: ("exact",)}  # addresses of the restored starts


class CheckpointsCase(Case):
    shares = False

    def take(self, seed):
        self.checkpoint = self.path(PLACES[seed])

    def make(self, seed):
        folder, name = self.path(f"seed-{seed}"), f"{self.model}-{self.dtype}"
        self.take(seed)
        program = [self.settings.python, os.path.join(HERE, "checkpoint.py"), folder, "--make", name, "--bare", "--seed", str(seed)]
        self.say(f"seed {seed}: {self.output(f'checkpoint-{seed}', program).strip().splitlines()[-1]}")
        put = os.symlink if seed == LINKED else os.rename
        put(os.path.join(folder, name), self.checkpoint)

    def native_of(self, seed):
        self.take(seed)
        step = f"native-{seed}"
        started = self.start(step)
        if not self.captures(step):
            self.fail(f"{step}: no capture in the call log")
        told = self.judged(started["tokens"])
        return started["tokens"], {"vllm": started["vllm"], "reference": told, "distinct": len({t for request in started["tokens"] for t in request})}

    def materialize(self):
        self.take(BASE)
        counts = super().materialize()
        shape = json.loads(self.output("inspect", [self.settings.medusa, "inspect", "-o", "json", self.artifact]))
        if tied := shape["verification"].get("Tied") or shape["identity"].get("model.checkpoint"):
            self.fail(f"the artifact is tied to its weights: {tied}")
        return counts

    def restored_of(self, seed, addresses, native):
        self.take(seed)
        step = f"restored-{seed}-{addresses}"
        tokens = self.restore(step, self.artifact, addresses)
        count, different, captures = sum(map(len, tokens)), differing(tokens, native), self.captures(step)
        self.say(f"seed {seed}, restored, addresses {ADDRESSES[addresses]}: {count} tokens, {count - different} equal native ones, {captures} captures")
        if different or captures:
            self.fail(f"seed {seed}: {different} restored tokens differ from native ones, {captures} captures")
        return count, captures

    def compare(self):
        step, natives, rows = self.kept.step, {}, []
        for seed in PLACES:
            step(f"checkpoint {seed}", lambda x=seed: self.make(x))
            natives[seed], row = step(f"native {seed}", lambda x=seed: self.native_of(x))
            rows.append(row)
        apart = [differing(natives[a], natives[b]) for a, b in itertools.combinations(PLACES, 2)]
        if not all(apart):
            self.fail(f"tokens in which two checkpoints differ natively: {apart}")
        row = rows[0] | step("materialize", self.materialize)
        counts = [step(f"restored {s} {how}", lambda x=s, h=how: self.restored_of(x, h, natives[x])) for s in PLACES for how in HOW[s]]
        row |= {"tokens": sum(n for n, _ in counts), "captures": sum(n for _, n in counts), "changed": {}, "refused": {}}
        told = f"{row['reference']}; {len(PLACES)} checkpoints, of whose native tokens at least {min(apart)} differ"
        return row | {"reference": told, "identical": row["tokens"], "minutes": round(self.kept.minutes(), 1)}
