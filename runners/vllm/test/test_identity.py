"""Tests of the identity of an engine. They need neither vLLM nor torch."""

import dataclasses
import os
import sys
import tempfile
import types
import typing
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from doubles import Mode  # noqa: E402
from medusa_vllm import classes, contents, identity, named  # noqa: E402


class Wrapped:
    """As pydantic's FieldInfo, in which vLLM's dataclasses keep defaults."""

    def __init__(self, default=dataclasses.MISSING, default_factory=None):
        self.default, self.default_factory = default, default_factory


def configuration(name, **fields):
    """One of vLLM's dataclasses, by its name."""
    return dataclasses.make_dataclass(name, [(k, typing.Any, v) for k, v in fields.items()])


Draft = configuration("ModelConfig", model="", revision=None, max_model_len=128, hf_config=None)
Speculative = configuration("SpeculativeConfig", method=None, num_speculative_tokens=None, target_model_config=None, draft_model_config=None)
Model = configuration("ModelConfig", model="", revision=None, max_model_len=None, served_model_name=None, hf_token=None, hf_config=None, enable_cumem_allocator=False)
Cache = configuration("CacheConfig", block_size=16, gpu_memory_utilization=0.9, num_gpu_blocks=None)
Scheduler = configuration("SchedulerConfig", max_num_seqs=Wrapped(128), max_num_batched_tokens=2048, policy="fcfs")
Load = configuration("LoadConfig", load_format="auto")
Connector = configuration("KVTransferConfig", kv_connector=None, kv_ip="127.0.0.1")
Compilation = configuration("CompilationConfig", cudagraph_mode=None, cudagraph_capture_sizes=None, inductor_compile_config=dataclasses.field(default_factory=dict), cache_dir="")
Whole = configuration(
    "VllmConfig", model_config=None, cache_config=dataclasses.field(default_factory=Cache), scheduler_config=dataclasses.field(default_factory=Scheduler),
    load_config=dataclasses.field(default_factory=Load), compilation_config=dataclasses.field(default_factory=Compilation),
    speculative_config=None, kv_transfer_config=None, instance_id="", additional_config=None, brand_new=0,
)  # fmt: skip


def hf(text="{}"):
    return types.SimpleNamespace(to_json_string=lambda: text)


def config(**changes):
    c = Whole(Model("org/name", "abc", hf_config=hf()), scheduler_config=Scheduler(128))
    for path, value in changes.items():
        owner, _, last = path.rpartition("__")
        setattr(getattr(c, owner) if owner else c, last, value)
    return c


GETTERS = {
    "VLLM_BATCH_INVARIANT": lambda: bool(int(os.getenv("VLLM_BATCH_INVARIANT", "0"))),
    "VLLM_USE_AOT_COMPILE": lambda: os.getenv("VLLM_USE_AOT_COMPILE", str(int("VLLM_BATCH_INVARIANT" not in os.environ))),
    "VLLM_API_KEY": lambda: os.getenv("VLLM_API_KEY"),
    "VLLM_HOST_IP": lambda: os.getenv("VLLM_HOST_IP", ""),
    "VLLM_OF_A_NEW_RELEASE": lambda: os.getenv("VLLM_OF_A_NEW_RELEASE"),
    "VLLM_NEW_SECRET": lambda: os.getenv("VLLM_NEW_SECRET"),
}


class Identity(unittest.TestCase):
    def factors(self, environment=(), **changes):
        with mock.patch.dict(os.environ, dict(environment)):
            return identity.factors(config(**changes), "0.26.0", "2.11.0", "13.0", GETTERS)

    def named(self, **changes):
        """The factors that a change changes, without the digests of the model."""
        before, after = self.factors(), self.factors(**changes)
        return {name: value for name, value in after.items() if before.get(name) != value}

    def test_settings_count_by_name(self):
        for change, name, value in [
            ({"scheduler_config__max_num_seqs": 9}, "scheduler_config.max_num_seqs", "9"),
            ({"model_config__max_model_len": 512}, "model_config.max_model_len", "512"),
            ({"cache_config__gpu_memory_utilization": 0.8}, "cache_config.gpu_memory_utilization", "0.8"),
            ({"compilation_config__cudagraph_capture_sizes": [1, 2, 4]}, "compilation_config.cudagraph_capture_sizes", "[1, 2, 4]"),
            ({"compilation_config__cudagraph_mode": Mode.PIECEWISE}, "compilation_config.cudagraph_mode", "PIECEWISE"),
            ({"compilation_config__inductor_compile_config": {"b": 1, "a": Mode}}, "compilation_config.inductor_compile_config", '{"a": "Mode", "b": "1"}'),
            ({"model_config__enable_cumem_allocator": True}, "model_config.enable_cumem_allocator", "True"),
            ({"kv_transfer_config": Connector()}, "kv_transfer_config", "KVTransferConfig"),
            ({"additional_config": {"gdn_prefill_backend": "triton"}}, "additional_config", '{"gdn_prefill_backend": "triton"}'),
            ({"brand_new": 1}, "brand_new", "1"),
        ]:
            with self.subTest(change):
                self.assertEqual(self.named(**change), {"setting." + name: value})

    def test_the_deployment_does_not_count(self):
        for change in [
            {"model_config__served_model_name": "other"},
            {"model_config__hf_token": "s3cret"},
            {"cache_config__num_gpu_blocks": 7},
            {"scheduler_config__policy": "priority"},
            {"compilation_config__cache_dir": "/elsewhere"},
            {"instance_id": "pod-7"},
            {"environment": {"VLLM_API_KEY": "s3cret", "VLLM_HOST_IP": "10.1.2.3", "VLLM_SERVICE_HOST": "10.9.9.9"}},
        ]:
            with self.subTest(change):
                self.assertEqual(self.named(**change), {})
        there, other = ({"kv_transfer_config": Connector("OffloadingConnector", ip)} for ip in ("10.1.2.3", "10.1.2.4"))
        self.assertEqual(self.factors(**there), self.factors(**other))

    def test_variables_count_by_name(self):
        self.assertEqual(self.named(environment={"VLLM_OF_A_NEW_RELEASE": "1"}), {"env.VLLM_OF_A_NEW_RELEASE": "1"})
        self.assertEqual(self.named(environment={"NVIDIA_TF32_OVERRIDE": "0"}), {"env.NVIDIA_TF32_OVERRIDE": "0"})
        self.assertEqual(self.named(environment={"VLLM_BATCH_INVARIANT": "1"}), {"env.VLLM_BATCH_INVARIANT": "1", "env.VLLM_USE_AOT_COMPILE": "0"})

    def test_a_default_that_is_written_out_is_the_default(self):
        self.assertEqual(self.named(environment={"VLLM_USE_AOT_COMPILE": "1"}), {})
        self.assertNotIn("env.VLLM_USE_AOT_COMPILE", self.factors())
        self.assertEqual(self.named(environment={"VLLM_OF_A_NEW_RELEASE": "None"}), {})

    def test_reading_defaults_leaves_the_environment(self):
        with mock.patch.dict(os.environ, {"VLLM_BATCH_INVARIANT": "1"}):
            identity.factors(config(), "0.26.0", "2.11.0", "13.0", GETTERS)
            self.assertEqual(os.environ["VLLM_BATCH_INVARIANT"], "1")

    def test_secrets_are_not_written(self):
        first, second = (self.named(environment={"VLLM_NEW_SECRET": s, "VLLM_OF_A_NEW_RELEASE": "x"}) for s in ("s3cret", "other"))
        self.assertTrue(first["env.VLLM_NEW_SECRET"].startswith("hidden, "))
        self.assertNotIn("s3cret", str(first))
        self.assertNotEqual(first, second)
        nested = self.named(additional_config={"api_key": "s3cret", "max_tokens": "7"})["setting.additional_config"]
        self.assertTrue("s3cret" not in nested and '"max_tokens": "7"' in nested, nested)

    def test_defaults_of_changed_sources(self):
        other = configuration("CacheConfig", block_size=32, gpu_memory_utilization=0.9, num_gpu_blocks=None)
        plain, changed = self.factors(), self.factors(cache_config=other())
        self.assertEqual({name for name in plain if plain[name] != changed.get(name)}, {"engine.defaults"})

    def test_loaders_of_the_same_files(self):
        files = [self.factors(load_config__load_format=name) for name in ("auto", "safetensors", "fastsafetensors")]
        self.assertEqual(files[0], files[1])
        self.assertEqual(files[0], files[2])
        self.assertNotEqual(files[0], self.factors(load_config__load_format="dummy"))

    def test_where_a_model_lies_does_not_count(self):
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            self.assertEqual(*(self.factors(model_config__model=folder) for folder in (a, b)))

    def test_draft_model(self):
        """Its configuration and its settings count, its place does not."""

        def found(text, folder, length=64):
            return self.factors(speculative_config=Speculative("eagle", 2, config().model_config, Draft(folder, None, length, hf(text))))

        self.assertEqual(found('{"a": 1}', "/models/a"), found('{"a": 1}', "org/b"))
        one, other = found('{"a": 1}', "/models/a"), found('{"a": 2}', "/models/a")
        self.assertEqual({name for name in other if other[name] != one.get(name)}, {"model.draft"})
        self.assertEqual(one["setting.speculative_config.draft_model_config.max_model_len"], "64")

    def test_revision_of_a_hub(self):
        self.assertEqual(self.factors(), self.factors(model_config__revision="def"))

    def test_compiled_code_is_found_by_model_settings_and_variables(self):
        plain = identity.chosen(self.factors())
        self.assertEqual(plain, identity.chosen(self.factors(model_config__revision="def")))
        for change in {"scheduler_config__max_num_seqs": 9}, {"model_config__hf_config": hf('{"other": 1}')}, {"environment": {"VLLM_BATCH_INVARIANT": "1"}}:
            self.assertNotEqual(plain, identity.chosen(self.factors(**change)))


class Text(unittest.TestCase):
    def test_objects(self):
        class Pass:
            def uuid(self):
                return "abc"

        self.assertEqual(named.text([Pass(), {2, 1}, Mode.FULL, None, 0.5]), "[abc, [1, 2], FULL, None, 0.5]")
        self.assertEqual(named.text(object()), "object")

    def test_secrets_by_name(self):
        for name in "VLLM_API_KEY", "hf_token", "client_secret", "PASSWORD":
            self.assertTrue(named.shown(name, "x").startswith("hidden"), name)
        for name in "max_num_batched_tokens", "kv_buffer_device", "VLLM_MAX_TOKENS_PER_EXPERT_FP4_MOE":
            self.assertEqual(named.shown(name, "x"), "x")


class Contents(unittest.TestCase):
    def test_plugins(self):
        def point(name, dist, version="1.0"):
            return types.SimpleNamespace(name=name, dist=types.SimpleNamespace(name=dist, version=version))

        points = [point("medusa", "medusa_graphs"), point("lora_filesystem_resolver", "vllm"), point("b", "their-plugin", "2.1"), point("a", "other")]
        self.assertEqual(contents.plugins(None, points), "a (other 1.0), b (their-plugin 2.1)")
        self.assertEqual(contents.plugins("medusa,b", points), "b (their-plugin 2.1)")
        self.assertEqual(contents.plugins("", points), "")

    def test_toolkit(self):
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            os.mkdir(os.path.join(b, "include"))
            for path, text in (os.path.join(a, "version.json"), '{"cuda": {"version": "13.0.2"}}'), (os.path.join(b, "include", "cuda.h"), "#define CUDA_VERSION 12090\n"):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
            self.assertEqual([contents.toolkit({"CUDA_HOME": d, "PATH": ""}) for d in (a, b, os.path.join(a, "none"))], ["13.0.2", "12.9", ""])

    def test_tuned_settings(self):
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            for folder in a, b:
                with open(os.path.join(folder, "E=8.json"), "w", encoding="utf-8") as f:
                    f.write("{}")
            self.assertEqual(contents.tuned(a), contents.tuned(b))
            with open(os.path.join(b, "E=8.json"), "w", encoding="utf-8") as f:
                f.write("[]")
            self.assertNotEqual(contents.tuned(a), contents.tuned(b))
            self.assertNotEqual(contents.tuned(os.path.join(a, "none")), contents.tuned(None))


class Tables(unittest.TestCase):
    def test_every_name_has_one_class_and_a_reason(self):
        for file in classes.VARIABLES, classes.SETTINGS:
            rows = classes.table(file)
            self.assertTrue(all(row.kind in classes.CLASSES and row.reason for row in rows.values()))
            self.assertGreater(len(rows), 300)

    def test_deployments_do_not_count(self):
        rows = classes.table(classes.VARIABLES)
        for name in (
            "VLLM_API_KEY", "VLLM_HOST_IP", "VLLM_PORT", "VLLM_LOOPBACK_IP", "VLLM_NIXL_SIDE_CHANNEL_PORT", "VLLM_PROCESS_NAME_PREFIX", "VLLM_LOGGING_LEVEL", "VLLM_LOG_STATS_INTERVAL",
            "VLLM_ENGINE_READY_TIMEOUT_S", "VLLM_LORA_RESOLVER_CACHE_DIR", "VLLM_SYSTEM_START_DATE", "VLLM_USAGE_SOURCE", "NVCC_THREADS", "VLLM_PLUGINS", "CUDA_HOME",
        ):  # fmt: skip
            self.assertFalse(classes.counts(rows, name), name)

    def test_each_setting_changed_alone(self):
        for name, row in classes.table(classes.SETTINGS).items():
            owner, field = name.split(".")
            one = configuration(owner, **{field: "default"})
            found, _ = named.settings(one("other")) if name not in contents.FILES else ({}, {})
            self.assertEqual(list(found), [named.SETTING + field] if row.kind == classes.COUNTS else [], name)

    def test_lines_of_no_table(self):
        for lines in ["  A"], ["maybe a reason", "  A"], ["counts"], ["counts x", "  A A"], ["counts x", "  A", "contents y", "  A"]:
            with self.assertRaisesRegex(ValueError, "read table"):
                classes.parse(lines)

    def test_releases_of_a_name(self):
        releases = ["0.26.0", "0.28.0", "0.30.0", "0.33.0"]

        def has(suffix):
            (row,) = classes.parse(["counts x", "  A" + suffix]).values()
            return [r for r in releases if classes.known(row, r, releases)]

        self.assertEqual(has(""), releases)
        self.assertEqual(has("@none"), [])
        self.assertEqual(has("@0.28-"), releases[1:])
        self.assertEqual(has("@-0.28"), releases[:2])
        self.assertEqual(has("@0.28-0.30"), releases[1:3])
        self.assertEqual(has("@-0.26,0.30-"), ["0.26.0", "0.30.0", "0.33.0"])


if __name__ == "__main__":
    unittest.main()
