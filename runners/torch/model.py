"""A causal language model of transformers over a static KV cache.

In: a folder with a config.json, or the name of a preset. Out: Model, whose weights, cache and inputs lie at addresses that
do not change, so that a decode step can be captured. Fails: ModelError if there is no such model, or if its
attention cannot use a cache of keys and values by position.

transformers describes the layers. Its own caches lack two properties that this one has: every sequence of a batch has a
position of its own, and the positions are read from device memory.
"""

import contextlib
import hashlib
import json
import os

import torch
from torch import nn
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig
from transformers.cache_utils import Cache, CacheLayerMixin

PRESETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "presets")


class ModelError(ValueError):
    """A model that the engine cannot run, and why."""


def presets():
    return sorted(name.removesuffix(".json") for name in os.listdir(PRESETS))


def configuration(preset=None, folder=None, layers=None, vocabulary=None):
    """The configuration of a model. layers and vocabulary make it smaller than it says."""
    path = os.path.join(folder, "config.json") if folder else os.path.join(PRESETS, f"{preset}.json")
    try:
        with open(path, encoding="utf-8") as f:
            fields = json.load(f)
    except OSError as e:
        hint = "" if folder else f" (presets: {', '.join(presets())})"
        raise ModelError(f"read configuration: {e}{hint}") from e
    if layers:
        fields["num_hidden_layers"] = layers
        fields.pop("layer_types", None)
    if vocabulary:
        fields["vocab_size"] = vocabulary
    config = AutoConfig.for_model(**fields)
    if getattr(config, "new_decoder_architecture", False):
        raise ModelError(f"read configuration {path}: Falcon's grouped queries are not supported")
    if any(kind != "full_attention" for kind in getattr(config, "layer_types", None) or []) or getattr(config, "alibi", False):
        raise ModelError(f"read configuration {path}: only full attention with rotary positions is supported")
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise ModelError(f"read configuration {path}: {config.model_type} is no causal language model")
    MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]  # imports the model's module before the structure stage
    config._attn_implementation = "sdpa"
    return config


# Fields that decide nothing about graphs: where a checkpoint came from, who wrote it, the type of its files (the engine's own type counts), and tokens that
# end a text.
ELSEWHERE = "_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache", "bos_token_id", "eos_token_id", "pad_token_id"


def digest(config):
    """A digest of the values in which configurations differ."""
    fields = {k: v for k, v in config.to_dict().items() if k not in ELSEWHERE}
    return "sha256:" + hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode()).hexdigest()


def head_dim(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def kv_heads(config):
    if getattr(config, "multi_query", False):
        return 1
    return getattr(config, "num_key_value_heads", None) or config.num_attention_heads


def split_multi_query(attention, fused):
    """Queries, key and value of Falcon's single key head. transformers' own takes the latter two with a list of indices, whose
    copy to the device cannot be captured."""
    heads = fused.view(*fused.shape[:2], attention.num_heads + 2, attention.head_dim)
    return heads[..., :-2, :], heads[..., -2:-1, :], heads[..., -1:, :]


class Layer(CacheLayerMixin):
    """Keys and values of one layer, each [rows, length, heads, dim]: row i belongs to the i-th sequence of a batch. With slots, the cache has
    more rows than a batch, and device memory says which one belongs to a sequence."""

    is_compileable, is_sliding = True, False

    def __init__(self, model, keys, values):
        super().__init__()
        self.model, self.keys, self.values, self.is_initialized = model, keys, values, True

    def update(self, key_states, value_states, *_, **__):
        n, where, slots = key_states.shape[0], self.model.where, self.model.slots
        rows = (self.model.rows if slots is None else slots)[:n, None]
        self.keys[rows, where] = key_states.transpose(1, 2)
        self.values[rows, where] = value_states.transpose(1, 2)
        if slots is not None:
            return self.keys[slots[:n]].transpose(1, 2), self.values[slots[:n]].transpose(1, 2)
        return self.keys[:n].transpose(1, 2), self.values[:n].transpose(1, 2)

    def lazy_initialization(self, key_states, value_states):
        raise AssertionError("the cache is allocated before the first forward")

    def get_mask_sizes(self, query_length):
        return self.keys.shape[1], 0

    def get_seq_length(self):
        return 0

    def get_max_length(self):
        return self.keys.shape[1]


class Model:
    """Structure, static memory and forward passes. Weights are allocated without values: weights.py fills them."""

    def __init__(self, config, dtype, rows, device, slots=False):
        self.config, self.dtype, self.device = config, dtype, device
        kind = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
        with torch.device("meta"):
            self.net = kind(config).eval()
        if getattr(config, "multi_query", False):
            for module in self.net.modules():
                if hasattr(module, "_split_heads"):
                    module._split_heads = split_multi_query.__get__(module)
        self.constants = self._to_device()

        def static(*shape, dtype=torch.int64):
            return torch.empty(shape, dtype=dtype, device=device)

        self.tokens, self.positions, self.next, self.rows = (static(rows) for _ in range(4))
        self.logits = static(rows, config.vocab_size, dtype=dtype)
        for t in (self.tokens, self.positions, self.next):
            t.copy_(torch.zeros(rows, dtype=t.dtype))  # a triggering layer uses their contents as indices
        self.rows.copy_(torch.arange(rows))
        self.slots = static(rows).copy_(self.rows) if slots else None
        self.cache = self.where = None

    def _to_device(self):
        """Gives every parameter and buffer device memory. One that is used twice gets it once. Returns, by name, the values
        that follow from the configuration and are in no checkpoint."""
        made, constants = {}, {}
        for prefix, module in self.net.named_modules():
            for name, p in list(module.named_parameters(recurse=False)):
                if id(p) not in made:
                    on_device = nn.Parameter(torch.empty(p.shape, dtype=self.dtype, device=self.device), requires_grad=False)
                    made[id(p)] = (p, on_device)  # p is kept so that its id stays its own
                setattr(module, name, made[id(p)][1])
            buffers = list(module.named_buffers(recurse=False))
            computed = dict(type(module)(config=self.config).named_buffers()) if buffers else {}
            for name, b in buffers:
                setattr(module, name, torch.empty(b.shape, dtype=b.dtype, device=self.device))
                constants[f"{prefix}.{name}"] = computed[name]
        return constants

    def weights(self):
        """(name, tensor) of the tensors that are filled before the first forward, each memory once."""
        return [*self.net.named_parameters(), *self.net.named_buffers()]

    def token_bytes(self):
        """Bytes of the KV cache that one token takes."""
        return 2 * self.config.num_hidden_layers * kv_heads(self.config) * head_dim(self.config) * self.dtype.itemsize

    def zeros(self, _, rows, *dims):
        return torch.empty((rows, *dims), dtype=self.dtype, device=self.device).zero_()

    def make_cache(self, length, allocate=None):
        """Room for length tokens of each sequence of the largest batch. Returns (name, tensor) of all of it. It holds zeros, because
        values behind the mask are multiplied by zero and must not be a NaN. allocate makes the i-th tensor, of at least so many rows."""
        dims, make = (self.rows.shape[0], length, kv_heads(self.config), head_dim(self.config)), allocate or self.zeros
        layers = [Layer(self, *(make(2 * i + k, *dims) for k in range(2))) for i in range(self.config.num_hidden_layers)]
        self.cache = Cache(layers=layers)
        self.range = torch.empty(length, dtype=torch.int64, device=self.device)
        self.range.copy_(torch.arange(length))
        return [(f"cache.{i}.{kind}", getattr(layer, kind)) for i, layer in enumerate(layers) for kind in ("keys", "values")]

    def drop_cache(self):
        self.cache = self.range = None

    def _forward(self, tokens, positions):
        """Hidden states after the last layer; tokens and positions are [n, t]."""
        self.where = positions
        mask = self.range <= positions[:, None, :, None]
        out = self.net.base_model(
            input_ids=tokens, position_ids=positions, attention_mask=mask, past_key_values=self.cache, use_cache=True
        )
        return out.last_hidden_state

    def _finish(self, last):
        """Computes logits and next tokens of the rows, and also copies them to the tensors that the engine reads."""
        n = last.shape[0]
        logits = self.net.get_output_embeddings()(last)
        out = logits.argmax(-1)
        self.logits[:n].copy_(logits)
        self.next[:n].copy_(out)
        return out

    def step(self, n):
        """One decode step over the first n rows of the static inputs."""
        return self._finish(self._forward(self.tokens[:n, None], self.positions[:n, None])[:, -1])

    def prefill(self, tokens, lengths):
        """Prompts [n, t], padded at the right. The padding's entries in the cache lie behind the row's position and are
        written again before they are read."""
        n, t = tokens.shape
        positions = torch.arange(t).expand(n, t).contiguous().to(self.device)
        hidden = self._forward(tokens, positions)
        return self._finish(hidden[self.rows[:n], lengths - 1])

    @contextlib.contextmanager
    def first_layer(self):
        """Inside this context, the model has one layer."""
        base = self.net.base_model
        name, layers = next(
            (name, child)
            for name, child in base.named_children()
            if isinstance(child, nn.ModuleList) and len(child) == self.config.num_hidden_layers
        )
        setattr(base, name, layers[:1])
        try:
            yield
        finally:
            setattr(base, name, layers)
