"""Tests of the plug-in's decisions, with stand-ins for vLLM's objects. They need neither vLLM nor torch."""

import contextlib
import dataclasses
import enum
import json
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from medusa_vllm import factories, gate, identity, labels, metrics, platform, share, use, watched  # noqa: E402


class Mode(enum.Enum):
    NONE = 0
    PIECEWISE = 1
    FULL = 2
    FULL_DECODE_ONLY = (2, 0)
    FULL_AND_PIECEWISE = (2, 1)


def config(**changes):
    """A configuration that is supported; changes are given as path__to__value=..."""
    space = types.SimpleNamespace
    c = space(
        parallel_config=space(world_size=1, data_parallel_size=1, worker_cls="auto"),
        compilation_config=space(cudagraph_mode=Mode.FULL_DECODE_ONLY, cudagraph_capture_sizes=[1, 2], use_inductor_graph_partition=False),
        lora_config=None,
        speculative_config=None,
        kv_transfer_config=None,
        model_config=space(
            enforce_eager=False, enable_cumem_allocator=False, enable_sleep_mode=False, sleep_mode_backend="cumem", multimodal_config=None, runner_type="generate",
            is_hybrid=False, is_attention_free=False, is_encoder_decoder=False,
            max_model_len=256, dtype="bfloat16", model="org/name", revision="abc",
            hf_config=space(to_json_string=lambda: "{}"),
        ),
        cache_config=space(gpu_memory_utilization=0.9, block_size=16, cache_dtype="auto", kv_sharing_fast_prefill=False),
        scheduler_config=space(max_num_seqs=8, max_num_batched_tokens=512),
        load_config=space(load_format="dummy"),
        compute_hash=lambda: "hash",
    )  # fmt: skip
    for path, value in changes.items():
        *owners, last = path.split("__")
        owner = c
        for name in owners:
            owner = getattr(owner, name)
        setattr(owner, last, value)
    return c


class Share(unittest.TestCase):
    def test_asked(self):
        for setting, want in {"": (False, None), "elastic": (True, None), "elastic:4096": (True, 4096)}.items():
            self.assertEqual(share.asked(setting), want)
        for wrong in "fixed", "elastic:", "elastic:4k", "elastic:-1", ":1":
            with self.assertRaisesRegex(ValueError, "MEDUSA_VLLM_KV="):
                share.asked(wrong)


class Gate(unittest.TestCase):
    def test_elastic(self):
        one = config(parallel_config__distributed_executor_backend="uni")
        for release in "0.26.0", "0.26.0+cu129":
            self.assertIsNone(gate.elastic_reason(one, release))
        self.assertIn("mp", gate.elastic_reason(config(parallel_config__distributed_executor_backend="mp"), "0.26.0") or "")
        self.assertIn("0.33.0", gate.elastic_reason(one, "0.33.0") or "")
        for kind in "is_hybrid", "is_attention_free":
            states = config(parallel_config__distributed_executor_backend="uni", **{"model_config__" + kind: True})
            self.assertIn("state space", gate.elastic_reason(states, "0.26.0") or "")
        one.model_config.enable_cumem_allocator = True
        self.assertIn("sleep mode", gate.elastic_reason(one, "0.26.0") or "")

    def version(self, vllm, torch, differs=None, wanted=""):
        compared = []
        with mock.patch.object(gate, "SUPPORTED", {"0.9.0": "2.9", "0.26.0": "2.11"}):
            reason = gate.version_reason(vllm, torch, lambda release: compared.append(release) or differs, wanted)
        return reason, compared

    def test_versions(self):
        self.assertEqual(self.version("0.26.0", "2.11.0+cu130"), (None, ["0.26.0"]))
        self.assertEqual(self.version("0.26.0+cu129", "2.11.1"), (None, ["0.26.0"]))
        self.assertEqual(self.version("0.9.0", "2.9.1"), (None, ["0.9.0"]))
        for torch in "2.110.0", "2.1.0":
            self.assertIn(torch, self.version("0.26.0", torch)[0] or "")

    def test_releases_that_differ(self):
        """The reason names the difference, and how to try."""
        for release in "0.26.0", "0.27.0":
            reason, compared = self.version(release, "2.11.0", "a.py:f")
            self.assertEqual(compared, ["0.26.0"])
            for word in release, "a.py:f", "MEDUSA_VLLM=try":
                self.assertIn(word, reason or "")

    def test_a_release_that_is_the_same_is_taken_for_the_one_before_it(self):
        for release in "0.26.1", "0.27.0rc1", "1.0.0":
            self.assertEqual(self.version(release, "2.11.0"), (None, ["0.26.0"]))
        self.assertEqual(self.version("0.25.9", "2.9.0"), (None, ["0.9.0"]))
        for release in "0.8.5.post1", "dev":
            self.assertEqual(self.version(release, "2.9.0"), (None, ["0.9.0"]))
        self.assertIn("2.13.0", self.version("0.26.1", "2.13.0")[0] or "")

    def test_a_user_who_tries(self):
        self.assertEqual(self.version("0.27.0", "2.13.0", "a.py:f", "try"), (None, []))
        self.assertIn("MEDUSA_VLLM=1", self.version("0.26.0", "2.11.0", None, "1")[0] or "")

    def test_supported(self):
        self.assertIsNone(gate.config_reason(config()))
        for mode in (Mode.FULL_AND_PIECEWISE, Mode.PIECEWISE, Mode.FULL):
            self.assertIsNone(gate.config_reason(config(compilation_config__cudagraph_mode=mode)))
        for method in "ngram", "ngram_gpu", "eagle", "eagle3", "mtp":
            self.assertIsNone(gate.config_reason(config(speculative_config=types.SimpleNamespace(method=method))))
        self.assertIsNone(gate.config_reason(config(lora_config=types.SimpleNamespace(enable_tower_connector_lora=False))))
        self.assertIsNone(gate.config_reason(config(model_config__enable_sleep_mode=True, model_config__enable_cumem_allocator=True)))

    def test_each_reason(self):
        for change, word in [
            ({"parallel_config__enable_dbo": True}, "overlap"),
            ({"use_cumem_cudagraph_pool": True}, "sleep"),
            ({"cache_config__kv_sharing_fast_prefill": True}, "fast prefill"),
            ({"load_config__load_format": "ipc_cache"}, "another process"),
            ({"lora_config": types.SimpleNamespace(enable_tower_connector_lora=True)}, "adapters of an encoder"),
            ({"lora_config": object(), "model_config__enable_sleep_mode": True}, "LoRA in sleep mode"),
            ({"speculative_config": types.SimpleNamespace(method="dflash")}, "speculative decoding by dflash"),
            ({"speculative_config": types.SimpleNamespace(method="mtp", num_speculative_tokens_per_batch_size=[[1, 8, 2]])}, "depends on the batch"),
            ({"speculative_config": types.SimpleNamespace(method="mtp", enable_adaptive_verification=True)}, "adaptive verification"),
            ({"speculative_config": types.SimpleNamespace(method="mtp"), "lora_config": types.SimpleNamespace()}, "LoRA with a draft model"),
            ({"speculative_config": types.SimpleNamespace(method="mtp"), "model_config__enable_sleep_mode": True}, "a draft model in sleep mode"),
            ({"kv_transfer_config": object()}, "connector"),
            ({"model_config__enforce_eager": True}, "eager"),
            ({"model_config__enable_sleep_mode": True, "model_config__sleep_mode_backend": "other"}, "other"),
            ({"compilation_config__cudagraph_mm_encoder": True}, "graphs of an encoder"),
            ({"model_config__is_encoder_decoder": True}, "beside the decoder"),
            ({"model_config__runner_type": "pooling"}, "generate"),
            ({"compilation_config__use_inductor_graph_partition": True}, "partition"),
            ({"compilation_config__cudagraph_mode": Mode.NONE}, "NONE"),
            ({"compilation_config__cudagraph_mode": None}, "None"),
        ]:
            with self.subTest(change):
                self.assertIn(word, gate.config_reason(config(**change)) or "")

    def test_each_reason_of_ranks(self):
        def reason(vllm="0.26.0", **changes):
            changes = {"distributed_executor_backend": "mp", "world_size": 2, "pipeline_parallel_size": 1} | changes
            return gate.ranks_reason(config(**{f"parallel_config__{name}": value for name, value in changes.items()}), vllm)

        self.assertIsNone(reason())
        several = config(lora_config=object(), parallel_config__distributed_executor_backend="mp", parallel_config__world_size=2, parallel_config__pipeline_parallel_size=1)
        self.assertIn("LoRA on several ranks", gate.ranks_reason(several, "0.26.0") or "")
        self.assertIsNone(reason(world_size=1, distributed_executor_backend="uni", vllm="0.33.0"))
        for change, word in (
            ({"data_parallel_size": 2}, "data_parallel_size"),
            ({"pipeline_parallel_size": 2}, "pipeline_parallel_size"),
            ({"prefill_context_parallel_size": 2}, "prefill_context"),
            ({"decode_context_parallel_size": 2}, "decode_context"),
            ({"nnodes": 2}, "machines"),
            ({"distributed_executor_backend": "ray"}, "executor ray (supported: mp)"),
            ({"enable_eplb": True}, "eplb"),
            ({"vllm": "0.33.0"}, "0.33.0 (supported: 0.26.0)"),
        ):
            with self.subTest(change):
                self.assertIn(word, reason(**change) or "")
        fused = types.SimpleNamespace(fuse_allreduce_rms=True)
        for ranks, mode, word in (2, 3, "fuse_allreduce_rms"), (1, 3, "None"), (2, 0, "None"):
            together = config(
                parallel_config__world_size=ranks, parallel_config__distributed_executor_backend="mp", parallel_config__pipeline_parallel_size=1,
                compilation_config__pass_config=fused, compilation_config__mode=mode,
            )  # fmt: skip
            self.assertIn(word, str(gate.ranks_reason(together, "0.26.0")))
        drafts = config(parallel_config__world_size=2, parallel_config__distributed_executor_backend="mp", parallel_config__pipeline_parallel_size=1, speculative_config=types.SimpleNamespace(method="eagle"))
        self.assertIn("draft model", gate.ranks_reason(drafts, "0.26.0") or "")
        asleep = config(parallel_config__world_size=2, parallel_config__distributed_executor_backend="mp", parallel_config__pipeline_parallel_size=1, model_config__enable_sleep_mode=True)
        self.assertIn("sleep", gate.ranks_reason(asleep, "0.26.0") or "")

    def test_backends(self):
        self.assertIsNone(gate.backend_reason(["FLASH_ATTN", "TRITON_ATTN", "TRITON_MLA", "FLASH_ATTN_MLA", "MAMBA1_ATTN"]))
        for other in "FLASHINFER", "MAMBA2_ATTN":
            self.assertIn(other, gate.backend_reason(["FLASH_ATTN", other]))

    def test_graphs_within_a_model(self):
        base = type("ModelState", (), {"capture_inner_cudagraphs": lambda self: None})
        base.capture_inner_cudagraphs.__module__ = "vllm.v1.worker.gpu.model_states.interface"
        plain, own = type("Plain", (base,), {}), type("Own", (base,), {"capture_inner_cudagraphs": lambda self: None})
        runner = types.SimpleNamespace
        self.assertIsNone(gate.graphs_reason(runner()))  # of a release without such graphs
        self.assertIsNone(gate.graphs_reason(runner(model_state=plain())))
        self.assertIn("graphs within", gate.graphs_reason(runner(model_state=own())) or "")

    def test_descriptors(self):
        self.assertIsNone(gate.descriptor_reason(Desc, V1Desc, NewDesc))
        self.assertIn("shape", gate.descriptor_reason(Desc, dataclasses.make_dataclass("D", ["num_tokens", "shape"])) or "")

    def test_sizes_of_a_kv_cache(self):
        self.assertIsNone(gate.size_reason(1, 10))
        self.assertIsNone(gate.size_reason(10, 10))
        for size in 0, -1, 11:
            self.assertIn(str(size), gate.size_reason(size, 10) or "")

    def test_memory_that_captures_make(self):
        self.assertIsNone(gate.resources_reason([(0, "a")], [(0, "a")]))
        reason = gate.resources_reason([(0, "a")], [(0, "a"), (0, "b"), (1, "a")]) or ""
        self.assertTrue("'b'" in reason and "(1, 'a')" in reason and "(0, 'a')" not in reason, reason)

    def test_share_of_the_device(self):
        """As much as the artifact needs, never more than the user allows; afterwards, the user's share."""
        for needed, share in (1, 0.25), (4, 0.9), (None, 0.9):
            cache = types.SimpleNamespace(gpu_memory_utilization=0.9)
            with contextlib.suppress(ValueError), gate.asking(cache, needed, lambda: 4):
                self.assertEqual(cache.gpu_memory_utilization, share)
                raise ValueError("as vLLM does if too little is free")
            self.assertEqual(cache.gpu_memory_utilization, 0.9)


class Hashed(types.SimpleNamespace):
    """As vLLM's configuration, whose hash covers its fields."""

    def compute_hash(self):
        return "hash of " + self.model_config.model


class Drafting(types.SimpleNamespace):
    """The same of a draft model."""

    def compute_hash(self):
        return "hash of " + self.speculative_config.draft_model_config.model


class Identity(unittest.TestCase):
    def factors(self, environment="", **changes):
        return identity.factors(config(**changes), "0.26.0", "2.11.0", "13.0", {"VLLM_X": environment})

    def test_what_graphs_depend_on_counts(self):
        same = self.factors()
        self.assertEqual(same, self.factors())
        elsewhere = {"VLLM_X": "", "VLLM_CONFIG_ROOT": "/home/other/.config/vllm"}
        self.assertEqual(same, identity.factors(config(), "0.26.0", "2.11.0", "13.0", elsewhere))
        for change in [
            {"scheduler_config__max_num_seqs": 9},
            {"scheduler_config__max_num_batched_tokens": 1024},
            {"model_config__max_model_len": 512},
            {"cache_config__gpu_memory_utilization": 0.8},
            {"compilation_config__cudagraph_capture_sizes": [1, 2, 4]},
            {"compute_hash": lambda: "other"},
            {"model_config__revision": "def"},
            {"load_config__load_format": "auto"},
            {"model_config__enable_cumem_allocator": True},
            {"environment": "1"},
        ]:
            with self.subTest(change):
                self.assertNotEqual(same, self.factors(**change))
        self.assertTrue(all(isinstance(v, str) for v in same.values()))

    def test_settings_that_the_hash_of_vllm_leaves_out(self):
        speculative = [types.SimpleNamespace(method="ngram", num_speculative_tokens=n) for n in (2, 3)]
        self.assertNotEqual(*(self.factors(speculative_config=c) for c in speculative))
        files = [types.SimpleNamespace(language_model_only=False, limit_per_prompt={"image": n}, mm_processor_kwargs=None) for n in (1, 2)]
        self.assertNotEqual(*(self.factors(model_config__multimodal_config=c) for c in files))

    def test_where_a_model_lies_does_not_count(self):
        """vLLM's hash holds its path."""
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            plain = [vars(config(model_config__model=folder)) for folder in (a, b)]
            hashed = [Hashed(**{k: v for k, v in p.items() if k != "compute_hash"}) for p in plain]
            found = [identity.factors(c, "0.26.0", "2.11.0", "13.0", {}) for c in hashed]
            self.assertEqual([c.model_config.model for c in hashed], [a, b])
        self.assertEqual(*found)

    def test_draft_model(self):
        """Its configuration and its files count, its place does not."""
        def found(text, size):
            with tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, "a.safetensors"), "wb") as f:
                    f.write(bytes(size))
                draft = types.SimpleNamespace(hf_config=types.SimpleNamespace(to_json_string=lambda: text), model=folder, revision=None)
                drafts = types.SimpleNamespace(method="eagle", num_speculative_tokens=2, draft_model_config=draft)
                hashed = Drafting(**{k: v for k, v in vars(config(speculative_config=drafts)).items() if k != "compute_hash"})
                return identity.factors(hashed, "0.26.0", "2.11.0", "13.0", {})

        self.assertEqual(found("a", 1), found("a", 1))
        self.assertNotEqual(found("a", 1), found("b", 1))
        self.assertNotEqual(found("a", 1), found("a", 2))

    def test_checkpoint_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            empty = identity.checkpoint(folder, None)
            with open(os.path.join(folder, "a.safetensors"), "wb") as f:
                f.write(b"12")
            two = identity.checkpoint(folder, None)
            with open(os.path.join(folder, "a.safetensors"), "ab") as f:
                f.write(b"3")
            self.assertEqual(len({empty, two, identity.checkpoint(folder, None)}), 3)


@dataclasses.dataclass(frozen=True)
class Desc:
    cg_mode: Mode
    num_tokens: int
    num_reqs: int
    uniform_token_count: int = 1
    num_active_loras: int = 0


@dataclasses.dataclass(frozen=True)
class V1Desc:
    num_tokens: int
    num_reqs: int
    uniform: bool = True
    num_active_loras: int = 0


@dataclasses.dataclass(frozen=True)
class NewDesc(Desc):
    """As of newer releases."""

    max_query_len: int | None = None
    num_ubatches: int = 1


class Graph:
    def __init__(self, desc):
        self.label, self.good = labels.label(desc), True

    def usable(self):
        return self.good


def restored(*descs):
    return [Graph(d) for d in descs]


class Labels(unittest.TestCase):
    one, two = Desc(Mode.FULL, 1, 1), Desc(Mode.FULL, 2, 2)

    def test_match(self):
        graphs = restored(self.two, self.one)
        found = labels.match(map(labels.label, [self.one, self.two]), graphs)
        self.assertIs(found[labels.label(self.two)], graphs[0])
        self.assertIs(found[labels.label(self.one)], graphs[1])

    def test_any_difference_is_refused(self):
        for graphs in (restored(self.one), restored(self.one, self.two, Desc(Mode.FULL, 4, 4)), restored(self.one, Desc(Mode.FULL, 2, 1))):
            with self.assertRaises(labels.KeysDiffer):
                labels.match([labels.label(self.one), labels.label(self.two)], graphs)

    def test_descriptors_of_the_v1_runner(self):
        one, two = V1Desc(1, 1), V1Desc(2, 2)
        self.assertNotEqual(labels.label(one), labels.label(self.one))
        parts = {name(i, desc) for name in (labels.piece, labels.segment) for i, desc in ((0, one), (1, one), (0, two))}
        self.assertEqual(len({labels.label(one), labels.label(two)} | parts), 8)

    def test_fields_of_newer_releases(self):
        descs = [NewDesc(Mode.FULL, 2, 2), NewDesc(Mode.FULL, 2, 2, max_query_len=2), NewDesc(Mode.FULL, 2, 2, num_ubatches=2)]
        self.assertEqual(len(set(map(labels.label, descs))), 3)
        self.assertEqual(labels.label(self.two), "FULL tokens=2 requests=2 uniform=1 loras=0")
        self.assertLess(len(labels.label(NewDesc(Mode.FULL, 99999, 99999, 99999, 99999, 99999, 99999))), 128)

    def test_a_label_fits_into_the_interface(self):
        self.assertLess(len(labels.piece(9999, V1Desc(99999, 99999))), 128)


class Session:
    """One that restores, and notes the calls that it gets."""

    restoring = True

    def __init__(self, *descs):
        self.found, self.told = restored(*descs), []

    def graphs(self):
        return self.found

    def __getattr__(self, name):
        return lambda *said: self.told.append((name, *said)) or "why"


class Uses(unittest.TestCase):
    one, two = Desc(Mode.FULL, 1, 1), Desc(Mode.FULL, 2, 2)

    def restore(self, *descs):
        session = Session(self.one, self.two)
        u = use.Use(session)
        return session, u, u.restore(lambda: map(labels.label, descs), self.installed.append)

    def setUp(self):
        self.installed = []

    def test_restored_graphs_are_used_until_dropped(self):
        session, u, restored = self.restore(self.one, self.two)
        self.assertTrue(restored and u.restored and u.usable())
        self.assertEqual([found.keys() for found in self.installed], [{labels.label(self.one), labels.label(self.two)}])
        with mock.patch("sys.stderr"):
            u.drop("sleep")
            u.drop("sleep")
        self.assertFalse(u.usable())
        self.assertEqual(session.told, [("phase", "capture"), ("invalidate", "sleep")])

    def test_asleep_they_are_not_used_and_not_dropped(self):
        session, u, _ = self.restore(self.one, self.two)
        u.asleep = True
        session.found[0].good = False
        self.assertFalse(u.usable())
        u.asleep, session.found[0].good = False, True
        self.assertTrue(u.usable() and session.told == [("phase", "capture")])

    def test_what_they_refer_to_is_gone(self):
        session, u, _ = self.restore(self.one, self.two)
        session.found[0].good = session.found[1].good = False
        with mock.patch("sys.stderr"):
            self.assertFalse(u.usable())
        self.assertEqual(session.told[1:], [("reason",), ("invalidate", "why")])

    def test_other_graphs_are_refused(self):
        session, u, restored = self.restore(self.one)
        self.assertFalse(restored or u.restored or u.graphs or self.installed)
        self.assertEqual([name for name, *_ in session.told], ["phase", "refuse"])

    def test_what_cannot_be_installed_is_refused(self):
        session = Session(self.one)
        u = use.Use(session)
        self.assertFalse(u.restore(lambda: [labels.label(self.one)], lambda graphs: [][0]) or u.restored or u.graphs)
        self.assertEqual([name for name, *_ in session.told], ["phase", "refuse"])

    def test_phase_begins_once(self):
        """A restore that cannot be used is followed by captures."""
        session, u, restored = self.restore(self.one)
        self.assertFalse(restored)
        u.begin_capture()
        self.assertEqual([said for said in session.told if said[0] == "phase"], [("phase", "capture")])

    def test_nothing_is_restored(self):
        """The phase then begins with the captures, and the session is not asked for graphs."""
        session = Session(self.one)
        session.restoring = False
        u = use.Use(session)
        self.assertFalse(u.restore([labels.label(self.one)], self.installed.append) or self.installed or session.told)

    def test_captured_graphs_are_used(self):
        self.assertTrue(use.Use(Session()).usable())


class Factories(unittest.TestCase):
    def test_as_vllm_calls_them(self):
        """Twice for each whole step and for breakable graphs, once for pieces; whole steps last; and no forward runs."""
        called = []

        def create(desc, warmup):
            called.append((desc.cg_mode.name, desc.num_tokens, warmup))
            return lambda mode: self.fail("a forward")

        descs = {m: [Desc(m, 2, 2), Desc(m, 1, 1)] for m in (Mode.FULL, Mode.PIECEWISE)}
        factories.call(descs, create)
        pieces = [("PIECEWISE", 2, True), ("PIECEWISE", 1, True)]
        whole = [("FULL", 2, True), ("FULL", 2, False), ("FULL", 1, True), ("FULL", 1, False)]
        self.assertEqual(called, [*pieces, *whole])
        called.clear()
        factories.call(descs, create, breakable=True)
        self.assertEqual(called, [("PIECEWISE", *more) for _, *more in whole] + whole)

    def test_one_mode(self):
        called = []
        factories.call({Mode.PIECEWISE: [Desc(Mode.PIECEWISE, 1, 1)]}, lambda desc, warmup: called.append(warmup))
        self.assertEqual(called, [True])


class Watches(unittest.TestCase):
    def test_what_changes(self):
        held = {"weight": b"1", "length": b"1", "flag": b"1"}
        w = watched.Watched({name: name for name in held}, held.get)
        w.look()
        self.assertEqual(w.changed, set())
        for flag in (b"2", b"1"):  # as it was, in the end
            held["flag"] = flag
            w.look()
        self.assertEqual(w.changed, {"flag"})

    def test_what_has_changed_before(self):
        held = {"length": b"1"}
        w = watched.Watched({"length": "length"}, held.get)
        held["length"] = b"2"
        w.look()
        w.changed.clear()
        w.look()
        self.assertEqual(w.changed, set())
        held["length"] = b"3"
        w.hold()
        w.look()
        self.assertEqual(w.changed, set())


class Point:
    def __init__(self, name, answer):
        self.name, self.answer = name, answer

    def load(self):
        return lambda: self.answer


class Platform(unittest.TestCase):
    def choose(self, chosen, run="restore"):
        """The worker class, and why Medusa stays out."""
        p, said = types.SimpleNamespace(worker_cls=chosen), []
        with mock.patch.dict(os.environ, {"MEDUSA_RUN": run}):
            platform.choose_worker(p, said.append)
        return p.worker_cls, " ".join(said)

    def test_auto_takes_the_worker(self):
        self.assertEqual(self.choose("auto"), (platform.WORKER, ""))

    def test_the_users_worker_stays(self):
        worker, said = self.choose("their.Worker")
        self.assertEqual(worker, "their.Worker")
        self.assertIn("their.Worker", said)

    def test_nothing_is_said_where_nothing_was_asked(self):
        self.assertEqual(self.choose("their.Worker", run=""), ("their.Worker", ""))

    def test_rival(self):
        own = Point(platform.NAME, "medusa")
        self.assertIsNone(platform.rival([own, Point("idle", None)]))
        self.assertIn("theirs", platform.rival([own, Point("theirs", "x.Y")]))

    def test_absent_without_medusa(self):
        with mock.patch.dict(os.environ, {"MEDUSA_RUN": "", "MEDUSA_STATUS": ""}):
            self.assertIsNone(platform.activate())


class Family:
    """As prometheus_client's metrics and families: every value that anything was set to."""

    values = []

    def __init__(self, name, text, names=(), labels=(), value=None, multiprocess_mode=""):
        self.name, self.now = name, ()
        if value is not None:
            self.values.append((name, (), value))

    def labels(self, *values):
        self.now = values
        return self

    def add_metric(self, labels, value):
        self.values.append((self.name, tuple(labels), value))

    def inc(self, value=1):
        self.values.append((self.name, self.now, value))

    set = inc


class Metrics(unittest.TestCase):
    native = {"status": "native", "reason": "memory", "milliseconds": 1.5, "graphs": 0, "memory": {"free": 10, "total": 20, "verified_native_free": 8}}
    values = [("medusa_starts", ("native", "memory"), 1), ("medusa_start_milliseconds", (), 1.5), ("medusa_graphs", (), 0),
              ("medusa_device_memory_free_bytes", ("ready",), 10), ("medusa_device_memory_free_bytes", ("verified_native",), 8)]

    def setUp(self):
        Family.values = []
        client = types.ModuleType("prometheus_client")
        client.Counter = client.Gauge = Family
        client.core = types.ModuleType("prometheus_client.core")
        client.core.CounterMetricFamily = client.core.GaugeMetricFamily = Family
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "status.json")
        several = {"MEDUSA_STATUS": self.path, "PROMETHEUS_MULTIPROC_DIR": folder.name}
        for patch in (mock.patch.dict(sys.modules, {"prometheus_client": client, client.core.__name__: client.core}), mock.patch.dict(os.environ, several)):
            patch.start()
            self.addCleanup(patch.stop)

    def write(self):
        with open(self.path, "w", encoding="utf-8") as f:
            json.dump(self.native, f)

    def test_scrape(self):
        collector = metrics.Collector(self.path)
        self.assertEqual(list(collector.collect()), [])
        self.write()
        list(collector.collect())
        self.assertEqual(Family.values, self.values)

    def test_several_processes_count_once(self):
        metrics.count()
        self.assertEqual(Family.values, [])
        self.write()
        metrics.count()
        metrics.count()
        self.assertEqual(Family.values, self.values)

    def test_size_of_an_elastic_cache(self):
        size = {"range_bytes": 4, "least_bytes": 1, "mapped_bytes": 2, "blocks": 3}
        told = [(f"medusa_kv_{name}", (), value) for name, value in size.items()]
        metrics.gauge.cache_clear()
        metrics.resized({**size, "page_bytes": 1})
        self.assertEqual(Family.values, told)
        with mock.patch.dict(os.environ):
            del os.environ["PROMETHEUS_MULTIPROC_DIR"]
            metrics.resized({**size, "page_bytes": 1})
        self.write()
        Family.values = []
        list(metrics.Collector(self.path).collect())
        self.assertEqual(Family.values, self.values + told)

    def test_a_restored_start_has_a_status(self):
        for run, wanted in (("restore", True), ("record", False)):
            with mock.patch.dict(os.environ, {"MEDUSA_RUN": run, "MEDUSA_STATUS": ""}):
                self.assertEqual(bool(metrics.place()), wanted)


if __name__ == "__main__":
    unittest.main()
