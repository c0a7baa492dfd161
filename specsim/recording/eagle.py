"""A draft head on the target's hidden states, in the manner of EAGLE (Li et al. 2024) and EAGLE-3 (2025).

The head is one layer as wide as the target's. For a round it reads the target's hidden states up to the
last token that the target has read, then goes on from its own output, token by token. Its words are the
target's most used, so that the output head, most of a small draft's cost, stays cheap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from pydantic import Field
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

from specsim.config import Spec, parse, validate
from specsim.errors import ConfigError, DomainError
from specsim.recording.models import LanguageModel

_NUM_TAPS = 3
_FIRST_LOUDNESS = 0.2
"""Scale of a fresh head's logits: as loud as the target's, it would begin sure of the wrong words."""


class HeadShape(Spec):
    """Sizes of a head; those of the target's own layers."""

    hidden_size: int = Field(gt=0)
    """Width of the residual stream."""
    intermediate_size: int = Field(gt=0)
    """Width inside the feed-forward part."""
    num_heads: int = Field(gt=0)
    """Query heads."""
    num_key_value_heads: int = Field(gt=0)
    """Key and value heads."""
    head_dim: int = Field(gt=0)
    """Width of a head."""
    rope_theta: float = Field(gt=0)
    """Base of the rotary positions."""
    vocabulary_size: int = Field(gt=0)
    """Words that the head can say."""
    target_sha256: str
    """SHA-256 of the target's weights: the head reads no other model's hidden states."""


class _Keys(NamedTuple):
    key: torch.Tensor
    value: torch.Tensor


class EagleHead(nn.Module):  # type: ignore[misc]
    """Hidden states and tokens of a text in, logits of the tokens after them out.

    Parameters
    ----------
    shape
        Sizes.
    """

    words: torch.Tensor
    """Target's token id of each of the head's words, [W]."""

    def __init__(self, shape: HeadShape) -> None:
        super().__init__()
        self.shape = shape
        width, heads, pairs = shape.hidden_size, shape.num_heads, shape.num_key_value_heads
        self.fuse = nn.Linear(_NUM_TAPS * width, width, bias=False)
        self.enter = nn.Linear(2 * width, width, bias=False)
        self.query = nn.Linear(width, heads * shape.head_dim, bias=False)
        self.key = nn.Linear(width, pairs * shape.head_dim, bias=False)
        self.value = nn.Linear(width, pairs * shape.head_dim, bias=False)
        self.mix = nn.Linear(heads * shape.head_dim, width, bias=False)
        self.gate = nn.Linear(width, shape.intermediate_size, bias=False)
        self.up = nn.Linear(width, shape.intermediate_size, bias=False)
        self.down = nn.Linear(shape.intermediate_size, width, bias=False)
        self.norms = nn.ParameterDict(
            {name: nn.Parameter(torch.ones(width)) for name in ("attention", "feed", "output")}
        )
        self.register_buffer("words", torch.zeros(shape.vocabulary_size, dtype=torch.long))

    def unroll(self, features: torch.Tensor, embeddings: torch.Tensor, depth: int) -> Iterator[torch.Tensor]:
        """Yield the outputs of draft 1, 2, … ``depth`` of rounds begun at every position, [B, L, d] each.

        Row t of the first output stands for a round in which the target has read up to token t and emitted
        token t + 1; it foretells token t + 2, the next output token t + 3 of the same text.

        Parameters
        ----------
        features
            The target's hidden states at tokens 0 … L - 1, by :func:`target_features`, [B, L, 3 d].
        embeddings
            The target's embeddings of tokens 1 … L - 1 + depth; what lies past the text may be anything,
            [B, L - 1 + depth, d].
        depth
            Drafts of a round.
        """
        length = features.shape[1]
        stream = self.fuse(_normal(features.unflatten(-1, (_NUM_TAPS, -1))).flatten(-2))
        causal = torch.ones(length, length, dtype=torch.bool, device=features.device).tril()
        first: _Keys | None = None
        chain: list[_Keys] = []
        for ahead in range(depth):
            entered = torch.cat([_normal(embeddings[:, ahead : ahead + length]), _normal(stream)], -1)
            stream = self.enter(entered)
            normal = _normal(stream) * self.norms["attention"]
            place = torch.arange(length, device=features.device) + ahead
            query = self._rotated(self.query(normal), place)
            keys = _Keys(self._rotated(self.key(normal), place), self._split(self.value(normal)))
            if first is None:
                first = keys
            else:
                chain.append(keys)
            stream = stream + self.mix(_attended(query, first, chain, causal))
            normal = _normal(stream) * self.norms["feed"]
            stream = stream + self.down(functional.silu(self.gate(normal)) * self.up(normal))
            yield stream

    def spoken(self, stream: torch.Tensor) -> torch.Tensor:
        """Return what the output head reads, [..., d]; times the words' embeddings it gives the logits."""
        return _normal(stream) * self.norms["output"]

    def _split(self, flat: torch.Tensor) -> torch.Tensor:
        return flat.unflatten(-1, (-1, self.shape.head_dim)).transpose(1, 2)

    def _rotated(self, flat: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        half = self.shape.head_dim // 2
        exponent = torch.arange(half, device=flat.device) / half
        angle = place[:, None] * self.shape.rope_theta**-exponent
        cosine, sine = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
        heads = self._split(flat)
        turned = torch.cat([-heads[..., half:], heads[..., :half]], -1)
        return heads * cosine + turned * sine

    def save(self, folder: Path) -> None:
        """Write the head into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        state = {name: tensor.contiguous().cpu() for name, tensor in self.state_dict().items()}
        save_file(state, folder / "head.safetensors")
        (folder / "head.json").write_text(json.dumps(self.shape.model_dump(), indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> EagleHead:
        """Read a head from a folder; a broken one is a ConfigError."""
        if not is_head(folder):
            raise ConfigError(f"{folder}: no draft head; it needs head.json and head.safetensors")
        shape = validate(HeadShape, parse((folder / "head.json").read_text(), file=str(folder / "head.json")))
        head = cls(shape)
        try:
            head.load_state_dict(load_file(folder / "head.safetensors"))
        except Exception as error:
            reason = str(error).strip().splitlines()[0]
            raise ConfigError(f"{folder}: cannot be loaded as a draft head: {reason}") from None
        return head.eval()


def is_head(folder: Path) -> bool:
    """Tell whether a folder holds a trained head."""
    return (folder / "head.json").is_file() and (folder / "head.safetensors").is_file()


def head_for(target: LanguageModel, words: torch.Tensor) -> EagleHead:
    """Return a fresh head whose layer starts as the target's last one.

    Parameters
    ----------
    target
        A model with Llama's layout.
    words
        Token ids that the head can say, [W].

    Raises
    ------
    DomainError
        The target is of another layout.
    """
    config = target.network.config.get_text_config()
    try:
        layer = target.network.model.layers[-1]
        parts = (
            layer.self_attn.q_proj,
            layer.self_attn.k_proj,
            layer.self_attn.v_proj,
            layer.self_attn.o_proj,
        )
        feed = (layer.mlp.gate_proj, layer.mlp.up_proj, layer.mlp.down_proj)
        norms = (layer.input_layernorm, layer.post_attention_layernorm, target.network.model.norm)
    except AttributeError:
        raise DomainError(
            f"a draft head needs a target with Llama's layers; '{target.name}' has others"
        ) from None
    rope: Mapping[str, float] = getattr(config, "rope_parameters", None) or {}
    shape = HeadShape(
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_heads=config.num_attention_heads,
        num_key_value_heads=config.num_key_value_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        rope_theta=float(rope.get("rope_theta", getattr(config, "rope_theta", 10_000.0))),
        vocabulary_size=len(words),
        target_sha256=target.sha256,
    )
    head = EagleHead(shape)
    with torch.no_grad():
        ours = (head.query, head.key, head.value, head.mix, head.gate, head.up, head.down)
        for mine, theirs in zip(ours, (*parts, *feed), strict=True):
            mine.weight.copy_(theirs.weight)
        for name, theirs in zip(("attention", "feed", "output"), norms, strict=True):
            head.norms[name].copy_(theirs.weight)
        head.norms["output"].mul_(_FIRST_LOUDNESS)
        width = shape.hidden_size
        for linear in (head.fuse, head.enter):
            linear.weight.normal_(std=0.01)
        # The newest hidden state passes through, and the embedding of the newest token beside it.
        head.fuse.weight[:, -width:] += torch.eye(width)
        head.enter.weight[:, :width] += torch.eye(width)
        head.enter.weight[:, width:] += torch.eye(width)
        head.words.copy_(words)
    return head


@torch.no_grad()
def target_features(target: LanguageModel, ids: torch.Tensor) -> torch.Tensor:
    """Hidden states of the target after a third, two thirds and all of its layers, [B, L, 3 d].

    The last third is what the target's output head reads.
    """
    states = target.network.model(input_ids=ids, output_hidden_states=True, use_cache=False).hidden_states
    last = len(states) - 1
    tapped = [states[last // 3], states[2 * last // 3], states[last]]
    return torch.cat([state.float() for state in tapped], -1)


def _normal(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)


def _attended(query: torch.Tensor, first: _Keys, chain: list[_Keys], causal: torch.Tensor) -> torch.Tensor:
    """Attention of each position's draft to the text before its round and to the drafts of its own round."""
    group = query.shape[1] // first.key.shape[1]
    wide = [_Keys(*(part.repeat_interleave(group, 1) for part in keys)) for keys in (first, *chain)]
    scale = query.shape[-1] ** -0.5
    text = (query @ wide[0].key.transpose(-1, -2) * scale).masked_fill(~causal, -torch.inf)
    own = [(query * keys.key).sum(-1, keepdim=True) * scale for keys in wide[1:]]
    weight = torch.softmax(torch.cat([text, *own], -1), -1)
    length = causal.shape[0]
    mixed = weight[..., :length] @ wide[0].value
    for number, keys in enumerate(wide[1:]):
        mixed = mixed + weight[..., length + number : length + number + 1] * keys.value
    return mixed.transpose(1, 2).flatten(2)
