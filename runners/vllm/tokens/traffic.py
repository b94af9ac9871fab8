"""Requests that come and go while others run.

In: an engine, how many steps it has to make, a seed. Out: the tokens of each request, and counts of events: requests that gave up their
place and began again, prompts that were computed in parts, prompts that began with tokens another one had left in the KV cache, requests
that were aborted. Fails: as the engine does.

Half of the requests choose the most likely token, half draw with a seed.
"""

import collections
import random

from vllm import SamplingParams

WAITING = 14  # requests at a time; eight of them run
PREFIXES, PREFIX = 3, 40


class Traffic:
    waiting = WAITING

    def __init__(self, llm, steps, seed=1):
        self.engine, self.steps, self.rng = llm.llm_engine, steps, random.Random(seed)
        self.core = self.engine.engine_core.engine_core
        self.config = self.engine.vllm_config
        self.words = self.config.model_config.get_vocab_size()
        self.prefixes = [self.draw(PREFIX) for _ in range(PREFIXES)]
        self.tokens, self.open, self.seen = {}, set(), collections.Counter(steps=0, preempted=0, parts=0, cached=0, aborted=0)
        self.observe()

    def draw(self, n):
        return [self.rng.randrange(3, self.words) for _ in range(n)]

    def observe(self):
        """Counts the scheduler's decisions."""
        scheduler = self.core.scheduler
        schedule = scheduler.schedule

        def counted(*args, **kwargs):
            decided = schedule(*args, **kwargs)
            self.seen["preempted"] += len(decided.preempted_req_ids or ())
            for new in decided.scheduled_new_reqs:
                self.seen["cached"] += new.num_computed_tokens > 0
                prompt = new.prefill_token_ids or new.prompt_token_ids
                self.seen["parts"] += new.num_computed_tokens + decided.num_scheduled_tokens[new.req_id] < len(prompt)
            return decided

        scheduler.schedule = counted

    def add(self):
        name = f"traffic-{len(self.tokens)}"
        prompt = (self.rng.choice(self.prefixes) if self.rng.random() < 0.5 else []) + self.draw(self.rng.randint(1, 60))
        count = self.rng.randint(8, self.config.model_config.max_model_len - 1 - len(prompt))
        # Without top-p: vLLM's kernel of it lacks a barrier, and the same seed draws other tokens (top_p.py).
        drawn = {"temperature": 0.8, "seed": len(self.tokens)} if self.rng.random() < 0.5 else {"temperature": 0}
        settings = SamplingParams(max_tokens=count, ignore_eos=True, detokenize=False, **drawn)
        self.tokens[name] = []
        self.open.add(name)
        self.engine.add_request(name, {"prompt_token_ids": prompt}, settings)

    def come_and_go(self):
        if not self.open or self.rng.random() < 0.2:
            for _ in range(self.rng.randint(1, self.waiting - len(self.open)) if len(self.open) < self.waiting else 0):
                self.add()
        if self.rng.random() < 0.01:
            name = self.rng.choice(sorted(self.open))
            self.engine.abort_request([name])
            self.open.remove(name)
            self.seen["aborted"] += 1

    def run(self):
        """The tokens of the requests, in the order in which they came, and the counts."""
        while self.seen["steps"] < self.steps or self.open:
            if self.seen["steps"] < self.steps:
                self.come_and_go()
            self.seen["steps"] += 1
            for request in self.engine.step():
                self.tokens[request.request_id] = list(request.outputs[0].token_ids)
                if request.finished:
                    self.open.discard(request.request_id)
        return list(self.tokens.values()), dict(self.seen)
