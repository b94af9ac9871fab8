"""An elastic KV cache changes its size while requests come and go.

In: an engine that has one, the requests of checkpoint.py's folder. Out: counts of events: resizes that grew and shrank the cache, that waited
for requests, steps and answers; the time of resizes by the bytes that they moved. Fails: AssertionError for a token that is not
transformers', a request that is lost, another size than was asked for, a resize that never ends.

Each request begins somewhere in an answer, so prompts have many lengths and share prefixes, and the next tokens are known. The blocks
with the highest numbers are handed out first, so that most smaller sizes meet requests that have blocks which are to go.
"""

import collections
import json
import os
import time

from traffic import Traffic
from vllm import SamplingParams

DONE, PENDING, FAILED = 200, 202, 500
STEPS = 2000  # in which a resize has to end
HELD = 64  # blocks of the least size that no request gets


class Crowd(Traffic):
    waiting = 96

    def __init__(self, llm, folder, seed=1):
        super().__init__(llm, None, seed)
        with open(os.path.join(folder, "expected.json"), encoding="utf-8") as f:
            self.cases = json.load(f)
        self.llm, self.want, self.aborted = llm, {}, set()
        self.seen = collections.Counter(dict.fromkeys(("steps", "preempted", "cached", "aborted", "answers", "grown", "shrunk", "waited"), 0))
        self.pool = self.core.scheduler.kv_cache_manager.block_pool
        self.times = []  # bytes moved, seconds
        self.highest()

    def highest(self):
        queue = self.pool.free_block_queue
        queue.append_n(sorted(queue.popleft_n(queue.num_free_blocks), key=lambda block: -block.block_id))

    def add(self):
        name = f"crowd-{len(self.want)}"
        case = self.rng.choice(self.cases)
        begin = self.rng.choice((0, self.rng.randrange(case["count"])))
        count = self.rng.randint((case["count"] - begin + 1) // 2, case["count"] - begin)
        self.want[name] = case["tokens"][begin : begin + count]
        self.open.add(name)
        settings = SamplingParams(temperature=0, max_tokens=count, ignore_eos=True, detokenize=False)
        self.engine.add_request(name, {"prompt_token_ids": case["prompt"] + case["tokens"][:begin]}, settings)

    def step(self, come=True):
        before = set(self.open)
        if come:
            self.come_and_go()
        self.aborted |= before - self.open
        self.seen["steps"] += 1
        for request in self.engine.step():
            if request.finished and request.request_id in self.open:
                got = list(request.outputs[0].token_ids)
                assert got == self.want[request.request_id], (request.request_id, got, self.want[request.request_id])
                self.open.remove(request.request_id)
                self.seen["answers"] += 1

    def ask(self, method, *args):
        (found,) = self.llm.collective_rpc(method, args=args)
        return found

    def size(self):
        status, size = self.ask("kv_cache_size")
        assert status == DONE, size
        return size

    def resize(self, size):
        """Asks again until the answer is final."""
        for asked in range(STEPS):
            before, began = self.size()["mapped_bytes"], time.perf_counter()
            status, answer = self.ask("resize_kv_cache", size)
            if status != PENDING:
                if status == DONE:
                    self.times.append((abs(answer["mapped_bytes"] - before), time.perf_counter() - began))
                    self.highest()
                self.seen["waited"] += asked > 0
                return status, answer
            self.step()
        raise AssertionError(f"no end of a resize to {size} bytes")

    def fits(self, size):
        """A resize that has to succeed."""
        status, now = self.resize(size)
        assert status == DONE, now
        assert now["mapped_bytes"] <= size < now["mapped_bytes"] + now["page_bytes"], (size, now)
        assert now["blocks"] == self.pool.num_gpu_blocks, (now, self.pool.num_gpu_blocks)

    def drained(self):
        """All requests are answered that were not aborted."""
        while self.open:
            self.step(come=False)
        assert self.seen["answers"] + len(self.aborted) == len(self.want), (self.seen, len(self.want))
        assert not self.pool.busy() and self.pool.get_num_free_blocks() == self.pool.num_gpu_blocks - 1
        moved = [(n, seconds) for n, seconds in self.times if n]
        pages, milliseconds = sum(n for n, _ in moved) >> 21, 1000 * sum(seconds for _, seconds in moved)
        return dict(self.seen) | {"pages of 2 MiB moved": pages, "milliseconds for that": round(milliseconds, 1)}

    def resized(self, resizes):
        now = self.size()
        least, most = now["least_bytes"], now["range_bytes"]
        for _ in range(resizes):
            before, size, held = self.size()["mapped_bytes"], self.rng.randrange(least, most + 1), []
            if small := self.rng.random() < 0.3:
                size = least + self.rng.randrange(now["page_bytes"])
            self.fits(size)
            if small:  # too small for all requests that run, so that some of them begin again
                held = self.pool.get_new_blocks(min(HELD, self.pool.get_num_free_blocks()))
            after = self.size()["mapped_bytes"]
            self.seen["grown"] += after > before
            self.seen["shrunk"] += after < before
            for _ in range(self.rng.randint(4, 8)):
                self.step()
            self.pool.free_blocks(held)
        return self.drained()

    def failed(self):
        """One call of a resize fails: the cache keeps its size, and the next attempt is done."""
        now = self.size()
        for _ in range(4):
            self.step()
        failed = 0
        for size in now["least_bytes"] + 2 * now["page_bytes"], now["least_bytes"]:
            before = self.size()
            status, answer = self.resize(size)
            if status != DONE:
                assert status == FAILED and "driver error 2" in answer["error"], answer
                assert self.size() == before, (self.size(), before)
                failed += 1
                for _ in range(4):
                    self.step()
                self.fits(size)
        assert failed == 1, failed
        return self.drained()
