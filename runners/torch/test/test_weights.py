"""Weights on their way to a (simulated) device arrive as the checkpoint holds them. Needs no GPU, but its driver."""

import os
import sys
import tempfile
import unittest
import unittest.mock

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "python")]

import checkpoint  # noqa: E402
import medusa_graphs as medusa  # noqa: E402
import parallel  # noqa: E402
import weights  # noqa: E402
from model import Model, ModelError, configuration  # noqa: E402


class TestLoader(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(torch.inference_mode())

    def load(self, dtype):
        model = Model(configuration(folder=self.folder), dtype, 2, torch.device("cuda", 0))
        loader = weights.Loader(model, weights.Checkpoint(self.folder, dtype))
        with model.first_layer():  # as a triggering layer does meanwhile
            loader.start()
            loader.wait()
        return model

    def test_shards_of_bfloat16(self):
        checkpoint.write(self.folder, "tiny", layers=2, shards=3)
        files = [f for f in os.listdir(self.folder) if f.endswith(".safetensors")]
        self.assertEqual(len(files), 3)
        expected = {}
        for file in files:
            expected |= load_file(os.path.join(self.folder, file))
        before, weights.BUFFER = weights.BUFFER, 100_000  # smaller than most tensors, and no multiple of any
        self.addCleanup(setattr, weights, "BUFFER", before)
        for dtype in (torch.bfloat16, torch.float32):
            model = self.load(dtype)
            for name, tensor in model.net.named_parameters():
                self.assertTrue(torch.equal(tensor.cpu(), expected[name].to(dtype)), name)
            for name, tensor in model.net.named_buffers():
                self.assertTrue(torch.equal(tensor.cpu(), model.constants[name]), name)

    def test_failure_of_the_thread_is_raised(self):
        checkpoint.write(self.folder, "tiny", layers=1)
        path = os.path.join(self.folder, "model.safetensors")
        with safe_open(path, framework="pt") as f:
            kept = {name: f.get_tensor(name) for name in f.keys() if "down_proj" not in name}
        weights_file = {name: t.clone() for name, t in kept.items()}
        checkpoint.save_file(weights_file, path)
        with self.assertRaisesRegex(ModelError, "lacks model.layers.0.mlp.down_proj.weight"):
            self.load(torch.bfloat16)


class TestOthers(unittest.TestCase):
    """Other values: of each type, in the same shape, the same in each process, and valid where the old ones are."""

    def test_numbers(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
            t = torch.randn(7, 300).to(dtype)
            t[0, 0] = torch.finfo(dtype).max
            made = medusa.other_weights("a", t)
            self.assertEqual((made.dtype, made.shape), (t.dtype, t.shape))
            was, now = t.float(), made.float()
            self.assertTrue(bool((now.isfinite() & ((now != was) | (was == 0) | (was == was[0, 0]) | (was.abs() < 1e-2))).all()), dtype)
            self.assertTrue(bool((now.abs() <= was.abs() * 1.5 + 1e-2).all()), dtype)
            self.assertTrue(torch.equal(now, medusa.other_weights("a", t).float()))
            self.assertFalse(torch.equal(now, medusa.other_weights("b", t).float()))

    def test_numbers_in_several_pieces(self):
        weights = sys.modules["medusa_graphs.weights"]
        before, weights.PIECE = weights.PIECE, 100
        self.addCleanup(setattr, weights, "PIECE", before)
        t = torch.ones(3, 111)
        made = medusa.other_weights("a", t)
        self.assertTrue(bool((made >= weights.LEAST).all() and (made <= weights.MOST).all()))
        self.assertEqual(made.unique().numel(), t.numel())

    def test_indices_stay_valid(self):
        t = torch.arange(12, dtype=torch.int32).view(3, 4)
        made = medusa.other_weights("a", t)
        self.assertEqual(sorted(made.flatten().tolist()), list(range(12)))
        self.assertFalse(bool((made == t).any()))
        self.assertEqual(medusa.other_weights("a", torch.ones(0, 2)).shape, (0, 2))

    def test_a_source(self):
        source = weights.Others(weights.Random(1, torch.float32))
        made, plain = (next(s.pieces("x", torch.Size([2, 3]))) for s in (source, weights.Random(1, torch.float32)))
        self.assertFalse(bool((made == plain).any()))


class TestTokenizer(unittest.TestCase):
    def test_text_comes_back(self):
        with tempfile.TemporaryDirectory() as folder:
            for size in (1000, 70_000):
                path = os.path.join(folder, "tokenizer.json")
                checkpoint.write_tokenizer(path, size)
                t = Tokenizer.from_file(path)
                self.assertEqual(t.get_vocab_size(), size)
                self.assertEqual(t.decode(t.encode("naïve, twice").ids), "naïve, twice")


class TestParts(unittest.TestCase):
    """What ranks compute from their parts, put together, is what one process computes from the whole."""

    def parts(self, layer, tensor):
        for rank in range(2):
            with unittest.mock.patch.dict(os.environ, RANK=str(rank), WORLD_SIZE="2"):
                yield parallel.Ranks().part(f"model.layers.0.{layer}.weight", tensor)

    def test_outputs_of_a_split_layer(self):
        weight, x = torch.randn(6, 4), torch.randn(3, 4)
        made = [x @ part.T for part in self.parts("self_attn.k_proj", weight)]
        torch.testing.assert_close(torch.cat(made, 1), x @ weight.T)

    def test_sum_of_an_added_layer(self):
        weight, x = torch.randn(6, 4), torch.randn(3, 4)
        made = [part_of_x @ part.T for part, part_of_x in zip(self.parts("mlp.down_proj", weight), x.chunk(2, 1), strict=True)]
        torch.testing.assert_close(sum(made), x @ weight.T)

    def test_others_are_whole(self):
        weight = torch.randn(4)
        self.assertTrue(all(part is weight for part in self.parts("input_layernorm", weight)))


if __name__ == "__main__":
    unittest.main()
