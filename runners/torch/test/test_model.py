"""The model with its own KV cache against transformers' plain forward, on the CPU: prefill of prompts of different lengths,
then decode steps, must give the tokens that the whole sequence gives. And shapes, checkpoints, refusals."""

import itertools
import json
import os
import sys
import tempfile
import unittest

import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from model import Model, ModelError, configuration  # noqa: E402
from weights import Checkpoint, Random, contents  # noqa: E402

SMALL = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 120}
FAMILIES = {
    "llama": {"model_type": "llama", "intermediate_size": 96, "num_key_value_heads": 2},
    "qwen2": {"model_type": "qwen2", "intermediate_size": 96, "num_key_value_heads": 4},
    "qwen3": {"model_type": "qwen3", "intermediate_size": 96, "num_key_value_heads": 2, "head_dim": 32},
    "falcon": {"model_type": "falcon", "multi_query": True, "parallel_attn": True, "bias": False, "alibi": False},
}
SLOTS = 7
# Table 1 of the Medusa paper: the size of the parameters, in GiB. The engine measured there keeps tied embeddings twice.
TABLE_1 = {
    "falcon-7b": 13.4, "llama2-7b": 12.6, "llama2-13b": 24.2, "qwen1.5-0.5b": 1.2, "qwen1.5-1.8b": 3.4,
    "qwen1.5-4b": 7.4, "qwen1.5-7b": 14.4, "qwen1.5-14b": 26.4, "yi-6b": 11.3, "yi-9b": 16.4,
}


def folder_with(fields):
    folder = tempfile.TemporaryDirectory()
    with open(os.path.join(folder.name, "config.json"), "w", encoding="utf-8") as f:
        json.dump(fields, f)
    return folder


def filled(fields, source, slots=None):
    with folder_with(fields) as folder:
        model = Model(configuration(folder=folder), torch.float32, 3, torch.device("cpu"), slots is not None)
    for tensor, pieces in contents(model, source):
        tensor.copy_(torch.cat(list(pieces)))
    if slots is None:
        model.make_cache(24)
    else:
        model.make_cache(24, lambda _, rows, *dims: torch.full((SLOTS, *dims), torch.nan).index_fill_(0, torch.tensor(slots), 0))
        model.slots.copy_(torch.tensor(slots))
    return model


class TestModel(unittest.TestCase):
    def test_decode_is_what_the_whole_sequence_gives(self):
        """Also with an elastic cache: slots that no sequence of the batch has hold NaNs, which no computation removes."""
        for (name, fields), slots in itertools.product(FAMILIES.items(), (None, [5, 1, 6])):
            with self.subTest(name, slots=slots), torch.inference_mode():
                model = filled(SMALL | fields, Random(3, torch.float32), slots)
                prompts = [[5, 17, 99, 4, 8], [7], [44, 45, 46]]
                padded = torch.tensor([p + [0] * (5 - len(p)) for p in prompts])
                lengths = torch.tensor([len(p) for p in prompts])
                model.prefill(padded, lengths)
                for step in range(4):
                    for row, sequence in enumerate(prompts):
                        whole = model.net(input_ids=torch.tensor([sequence]), use_cache=False).logits[0, -1]
                        torch.testing.assert_close(model.logits[row], whole, rtol=1e-4, atol=1e-4)
                        sequence.append(int(model.next[row]))
                    model.tokens.copy_(model.next)
                    model.positions.copy_(lengths + step)
                    model.step(3)

    def test_shapes_of_table_1(self):
        for name, gib in TABLE_1.items():
            with self.subTest(name):
                model = Model(configuration(name), torch.bfloat16, 1, torch.device("meta"))
                size = sum(p.nbytes for p in model.net.parameters())
                if model.config.tie_word_embeddings:
                    size += model.net.get_output_embeddings().weight.nbytes
                self.assertAlmostEqual(size / 2**30, gib, delta=0.06)

    def test_refused(self):
        for fields, reason in (
            ({"model_type": "falcon", "alibi": True}, "full attention"),
            ({"model_type": "clip"}, "no causal language model"),
            ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}, "full attention"),
        ):
            with folder_with(SMALL | fields) as folder, self.assertRaisesRegex(ModelError, reason):
                configuration(folder=folder)
        with self.assertRaisesRegex(ModelError, "presets: .*llama2-7b"):
            configuration("llama3")


class TestCheckpoint(unittest.TestCase):
    def test_missing_and_misshapen(self):
        with tempfile.TemporaryDirectory() as folder:
            save_file({"a": torch.zeros(4, 2)}, os.path.join(folder, "model.safetensors"))
            checkpoint = Checkpoint(folder, torch.bfloat16)
            self.assertEqual(next(checkpoint.pieces("a", torch.Size([4, 2]))).dtype, torch.bfloat16)
            with self.assertRaisesRegex(ModelError, "a is .4, 2., the configuration says .2, 4."):
                next(checkpoint.pieces("a", torch.Size([2, 4])))
            with self.assertRaisesRegex(ModelError, "lacks b"):
                next(checkpoint.pieces("b", torch.Size([1])))

    def test_identity_follows_the_values(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            save_file({"a": torch.zeros(4)}, path)
            first = Checkpoint(folder, torch.float32).identity
            save_file({"a": torch.ones(4)}, path)
            self.assertNotEqual(Checkpoint(folder, torch.float32).identity, first)


if __name__ == "__main__":
    unittest.main()
