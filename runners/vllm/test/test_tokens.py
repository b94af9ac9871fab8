"""Tests of the decisions of make test-tokens without an engine: which cases, and which of their steps are finished."""

import json
import os
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tokens"))

import calls  # noqa: E402
import case  # noqa: E402
import cases  # noqa: E402
from kept import Kept, begin  # noqa: E402


class TestCases(unittest.TestCase):
    def test_default_has_every_pair(self):
        self.assertLessEqual(len(cases.DEFAULT), 12)
        self.assertLessEqual(set(cases.DEFAULT), set(cases.every()))
        self.assertEqual(cases.pairs(cases.every()) - cases.pairs(cases.DEFAULT), set())

    def test_a_missing_case_is_a_missing_pair(self):
        self.assertIn(("llama", "V1"), {tuple(v for _, v in pair) for pair in cases.pairs(["llama float32 V1 PIECEWISE"])})
        self.assertTrue(cases.pairs(cases.every()) - cases.pairs(cases.DEFAULT[:-1]))

    def test_a_case_without_all_steps_is_no_pair(self):
        self.assertEqual(cases.pairs(["llama float32 V1 PIECEWISE traffic"]), set())

    def test_pairs_of_a_model_and_a_mode_are_left_out(self):
        self.assertNotIn(("llama", "PIECEWISE"), {tuple(v for _, v in pair) for pair in cases.pairs(["llama float32 V1 PIECEWISE"])})

    def test_select(self):
        self.assertEqual(cases.select(None), [*cases.DEFAULT, *cases.WORK, *cases.FEATURES, cases.TORCH, *cases.RANKED])
        self.assertEqual(cases.select("all"), [*cases.every(), cases.TORCH])
        self.assertEqual(cases.select(cases.TORCH), [cases.TORCH])
        self.assertEqual(cases.select(" opt  float32 V1 PIECEWISE, llama float32 V1 PIECEWISE"), ["opt float32 V1 PIECEWISE", "llama float32 V1 PIECEWISE"])
        for how in "traffic", "served":
            self.assertEqual(cases.select(f"opt float32 V1 PIECEWISE {how}"), [f"opt float32 V1 PIECEWISE {how}"])
        for wrong in "llama", "llama float32 V3 PIECEWISE", "opt float32 V1 PIECEWISE jam", "opt float32 V2 PIECEWISE ranks2", cases.TORCH + " served", cases.TORCH + " ranks4", ",":
            self.assertRaises(ValueError, cases.select, wrong)

    def test_absent_cases_say_why(self):
        for name, why in cases.ABSENT.items():
            self.assertNotIn(name, cases.every())
            self.assertRaisesRegex(ValueError, why, cases.select, name)


class TestCalls(unittest.TestCase):
    def log(self, *captures):
        lines, launch = [], "0\t9\t0\tcuLaunchKernel\tCUDA_SUCCESS\tstream=6\tkernel={}\tgrid=1,1,1\tshared=0\tcapture={}\n"
        for number, kernels in enumerate(captures, 1):
            lines += [f"0\t9\t0\tcuStreamBeginCapture_v2\tCUDA_SUCCESS\tstream=6\tcapture={number}\tmode=0\n"]
            lines += [launch.format(kernel, number) for kernel in kernels]
            lines += [f"0\t9\t0\tcuStreamEndCapture\tCUDA_SUCCESS\tstream=6\tcapture={number}\tnodes={len(kernels)}\tedges=0\n"]
        return "".join(lines) + "0\t9\t0\tcuLaunchKernel\tCUDA_SUCCESS\tstream=6\tkernel=nccl_step\tgrid=1,1,1\n"

    def test_a_call_alone_is_no_graph(self):
        step, gemm, custom = "nccl_step", "gemm", "_ZN4vllm26cross_device_reduce_1stageIfLi2EEEvPN"
        for captures, want in (
            ([[gemm, step, gemm, step]], (1, 2)),
            ([[step], [step]], (0, 2)),
            ([[gemm], [step]], (1, 1)),
            ([[step, step]], (1, 2)),
            ([["copy", custom], ["copy", gemm]], (1, 1)),
            ([[]], (1, 0)),
        ):
            self.assertEqual(calls.captured(self.log(*captures)), want)


class TestStart(unittest.TestCase):
    def start(self, **printed):
        """The tokens of a case whose engine prints this."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "output")
            open(path, "w", encoding="utf-8").close()
            output = json.dumps({"device": "Simulated GPU", **printed})
            one = types.SimpleNamespace(served=False, engine=list, path=lambda _: path, output=lambda *_: output, report=lambda lines: lines[-1], fail=self.fail)
            return case.Case.start(one, "native")["tokens"]

    def test_drafts_are_compared_as_tokens(self):
        self.assertEqual(self.start(tokens=[[1], [2]], drafts=[[3]]), [[1], [2], [3]])
        self.assertEqual(self.start(tokens=[[1]], drafts=[]), [[1]])

    def test_another_engine_has_no_drafts(self):
        self.assertEqual(self.start(tokens={"2": [[1], [2]]}), {"2": [[1], [2]]})


class TestKept(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work, self.said = os.path.join(folder.name, "work"), []
        self.begin("a")
        self.kept().step("native", lambda: [1, "x"])

    def begin(self, sources):
        begin(self.work, sources)
        os.makedirs(os.path.join(self.work, "case"), exist_ok=True)

    def kept(self):
        return Kept(os.path.join(self.work, "case"), self.said.append)

    def again(self, sources):
        """The steps that a run of these sources makes."""
        self.begin(sources)
        made, kept = [], self.kept()
        for name in "native", "materialize":
            kept.step(name, lambda name=name: made.append(name))
        return made

    def test_the_same_sources_go_on(self):
        self.assertEqual(self.again("a"), ["materialize"])
        self.assertEqual(self.kept().step("native", lambda: None), [1, "x"])

    def test_other_sources_begin_anew(self):
        self.assertEqual(self.again("b"), ["native", "materialize"])

    def test_no_digest_begins_anew(self):
        for _ in range(2):
            self.assertEqual(self.again(None), ["native", "materialize"])

    def test_a_step_that_fails_is_not_finished(self):
        self.assertRaises(ZeroDivisionError, self.kept().step, "restored", lambda: 1 / 0)
        self.assertEqual(self.kept().step("restored", lambda: 2), 2)

    def test_lines_are_printed_again(self):
        kept = self.kept()
        kept.step("restored", lambda: kept.told("12 tokens"))
        self.kept().step("restored", lambda: None)
        self.assertEqual(self.said, ["12 tokens", "12 tokens (an earlier run)"])


class Scheduler:
    """Two requests run. The first step of a request computes half of its prompt; each later one makes a token. Every 50th step another begins again."""

    def __init__(self):
        self.waiting, self.running, self.steps = [], [], 0

    def schedule(self):
        self.steps += 1
        lost = [self.running.pop()] if self.steps % 50 == 0 and self.running else []
        self.waiting += lost
        new = self.waiting[: 2 - len(self.running)]
        self.waiting, self.running = self.waiting[len(new) :], self.running + new
        return types.SimpleNamespace(
            preempted_req_ids={r.req_id for r in lost} or None,
            scheduled_new_reqs=new,
            num_scheduled_tokens={r.req_id: (len(r.prompt_token_ids) + 1) // 2 for r in new},
        )


class Engine:
    def __init__(self, scheduler):
        self.engine_core = types.SimpleNamespace(engine_core=types.SimpleNamespace(scheduler=scheduler))
        model = types.SimpleNamespace(get_vocab_size=lambda: 100, max_model_len=128)
        self.scheduler, self.vllm_config, self.settings = scheduler, types.SimpleNamespace(model_config=model), {}

    def add_request(self, name, prompt, settings):
        self.settings[name] = settings
        self.scheduler.waiting.append(
            types.SimpleNamespace(req_id=name, prompt_token_ids=prompt["prompt_token_ids"], prefill_token_ids=None, num_computed_tokens=len(self.settings) % 2, made=[])
        )

    def abort_request(self, names):
        for where in self.scheduler.waiting, self.scheduler.running:
            where[:] = [r for r in where if r.req_id not in names]

    def step(self):
        self.scheduler.schedule()
        for r in self.scheduler.running:
            r.made.append(len(r.made))
            finished = len(r.made) == self.settings[r.req_id].max_tokens
            yield types.SimpleNamespace(request_id=r.req_id, outputs=[types.SimpleNamespace(token_ids=r.made)], finished=finished)
            if finished:
                self.scheduler.running.remove(r)
                break


class TestTraffic(unittest.TestCase):
    def run_all(self, steps):
        vllm = types.SimpleNamespace(SamplingParams=lambda **settings: types.SimpleNamespace(**settings))
        with unittest.mock.patch.dict(sys.modules, vllm=vllm):
            from traffic import Traffic
        engine = Engine(Scheduler())
        return engine, *Traffic(types.SimpleNamespace(llm_engine=engine), steps).run()

    def test_all_are_answered_or_aborted(self):
        engine, tokens, seen = self.run_all(2000)
        self.assertGreaterEqual(seen["steps"], 2000)
        self.assertEqual(engine.scheduler.steps, seen["steps"])
        cut = sum(len(t) < s.max_tokens for t, s in zip(tokens, engine.settings.values(), strict=True))
        self.assertEqual(cut, seen["aborted"])
        self.assertTrue(all(seen.values()), seen)

    def test_the_same_again(self):
        self.assertEqual(self.run_all(300)[1:], self.run_all(300)[1:])


if __name__ == "__main__":
    unittest.main()
