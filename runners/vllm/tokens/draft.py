"""Writes a draft model of EAGLE's kind that has learnt the answers of a model's requests.

In: a model of checkpoint.py, its folder, its requests with their answers. Out: FOLDER/draft. Fails: if it would propose too few of the right tokens: rejections
alone would leave the graphs of later drafts unseen.

From the next token and the last hidden state, the draft model computes the next hidden state, of which the model's own head makes a token.
"""

import os

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

STEPS, RATE, RIGHT = 60, 3e-3, 0.5
NONE = -1  # where a request has no token any more


class Draft(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = torch.nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layer = LlamaDecoderLayer(config, 0)
        self.layer.input_layernorm = torch.nn.Identity()  # EAGLE's first layer has none
        self.rotary = LlamaRotaryEmbedding(config)

    def forward(self, embedded, hidden):
        x = self.fc(torch.cat([embedded, hidden], -1))
        at = torch.arange(x.shape[1])[None]
        length = x.shape[1]
        mask = torch.full((length, length), torch.finfo(x.dtype).min).triu(1)[None, None]
        out = self.layer(x, attention_mask=mask, position_ids=at, position_embeddings=self.rotary(x, at))
        return out[0] if isinstance(out, tuple) else out


def lesson(model, case):
    """Embeddings of the tokens after the first, hidden states, and the tokens that come next."""
    tokens = torch.tensor(case["prompt"] + case["tokens"])
    hidden = model.model(tokens[None]).last_hidden_state[0]
    return model.get_input_embeddings()(tokens[1:-1]), hidden[:-2], tokens[2:]


@torch.inference_mode(False)
def learn(model, cases):
    torch.manual_seed(1)
    with torch.no_grad():
        embedded, hidden, following = (torch.nn.utils.rnn.pad_sequence(t, True, NONE if t[0].dim() == 1 else 0) for t in zip(*(lesson(model, case) for case in cases)))
        head = model.lm_head.weight.clone()
    draft = Draft(LlamaConfig(**model.config.to_dict() | {"num_hidden_layers": 1, "_attn_implementation": "eager"}))
    optimizer = torch.optim.AdamW(draft.parameters(), RATE)
    for _ in range(STEPS):
        logits = draft(embedded, hidden) @ head.T
        right = int((logits.argmax(2) == following).sum())
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten(), ignore_index=NONE).backward()
        optimizer.step()
    return draft, right / int((following != NONE).sum())


def write(model, folder, cases, dtype):
    """model: in single precision. dtype: of the file."""
    draft, right = learn(model, cases)
    print(f"draft model: {right:.2f} of the tokens right", flush=True)
    if right < RIGHT:
        raise SystemExit(f"make draft model {folder}: {right:.2f} of its tokens are right, at least {RIGHT} are needed")
    named = {"fc.weight": draft.fc.weight} | {f"layers.0.{name}": p for name, p in draft.layer.named_parameters()}
    os.makedirs(os.path.join(folder, "draft"), exist_ok=True)
    config = LlamaConfig(**model.config.to_dict() | {"num_hidden_layers": 1, "architectures": ["LlamaForCausalLM"]})
    config.save_pretrained(os.path.join(folder, "draft"))
    save_file({name: p.detach().to(dtype).contiguous() for name, p in named.items()}, os.path.join(folder, "draft", "model.safetensors"))
