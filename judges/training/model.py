"""The judge as a PyTorch model: a MiniLM cross-encoder with one small head per question.

The encoder is BERT as published, or MPNet, written out in plain operators: on a CPU they train
about twice as fast as the fused attention kernel and torch's dropout, and they export to ONNX as
they are.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from judges.heads import HEADS, TOKEN_HEADS, JudgeCard
from judges.optimise import read_cross_encoder, read_sizes

__all__ = [
    "CrossEncoder",
    "EncoderConfig",
    "MaskBank",
    "load_judge",
    "load_pretrained",
    "read_weights",
    "write_weights",
]

SEGMENTS = 3
"""Evidence, hypothesis, context."""


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Sizes of the encoder; the defaults are all-MiniLM-L6-v2's."""

    vocab_size: int = 30_522
    hidden_size: int = 384
    layers: int = 6
    attention_heads: int = 12
    intermediate_size: int = 1_536
    positions: int = 512
    layer_norm_eps: float = 1e-12
    dropout: float = 0.1
    relative_buckets: int = 0
    """Buckets of distances between tokens whose bias attention learns, as in MPNet; 0: none."""


class MaskBank(nn.Module):
    """Dropout that cuts its masks from a bank drawn once, since drawing them costs a CPU dearly.

    Args:
        share: Share of units dropped.
        size: Least numbers in the bank; each call reads a window at a random place.
        seed: Seed of the bank and of the places.
    """

    def __init__(self, share: float, *, size: int = 1 << 23, seed: int = 0) -> None:
        super().__init__()
        self.share = share
        self.size = size
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Start the masks anew."""
        self._seed = seed
        self._places = random.Random(seed)
        self._bank: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Drop units of x while training; any shape."""
        if not self.training or self.share == 0.0:
            return x
        count = x.numel()
        bank = self._bank
        if bank is None or bank.dtype != x.dtype or bank.numel() < 2 * count:
            drawn = torch.rand(
                max(self.size, 2 * count), generator=torch.Generator().manual_seed(self._seed)
            )
            bank = ((drawn >= self.share) / (1.0 - self.share)).to(x.device, x.dtype)
            self._bank = bank
        start = self._places.randrange(bank.numel() - count)
        return x * bank[start : start + count].view(x.shape)


class _Layer(nn.Module):
    """One transformer layer, normalised after each residual sum as in BERT."""

    def __init__(self, config: EncoderConfig, dropout: MaskBank) -> None:
        super().__init__()
        hidden = config.hidden_size
        self.heads = config.attention_heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.attention_out = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.up = nn.Linear(hidden, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.dropout = dropout

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """Map states [n, l, h] under an additive attention bias [n, 1 or heads, 1 or l, l]."""
        n, length, hidden = x.shape
        width = hidden // self.heads
        qkv = self.qkv(x).view(n, length, 3, self.heads, width).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        # Written out: at these lengths the CPU's fused kernel takes twice the time backward.
        scores = torch.matmul(q * width**-0.5, k.transpose(-1, -2)) + bias
        mixed = torch.matmul(functional.softmax(scores, -1), v)
        mixed = mixed.transpose(1, 2).reshape(n, length, hidden)
        x = self.attention_norm(x + self.dropout(self.attention_out(mixed)))
        inner = self.down(functional.gelu(self.up(x)))
        normed: Tensor = self.output_norm(x + self.dropout(inner))
        return normed


class CrossEncoder(nn.Module):
    """Reads evidence, a hypothesis and its context as one sequence and answers what heads ask.

    Args:
        config: Sizes of the encoder.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        hidden = config.hidden_size
        self.words = nn.Embedding(config.vocab_size, hidden, padding_idx=0)
        self.positions = nn.Embedding(config.positions, hidden)
        self.segments = nn.Embedding(SEGMENTS, hidden)
        self.embedding_norm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.dropout = MaskBank(config.dropout)
        self.layers = nn.ModuleList(_Layer(config, self.dropout) for _ in range(config.layers))
        if config.relative_buckets:
            self.distances = nn.Embedding(config.relative_buckets, config.attention_heads)
        self.heads = nn.ModuleDict(
            {
                name: nn.Sequential(
                    nn.Linear(2 * hidden, hidden),
                    nn.Tanh(),
                    MaskBank(config.dropout, size=1 << 20),
                    nn.Linear(hidden, len(labels)),
                )
                for name, labels in HEADS.items()
            }
        )
        self.tokens = nn.ModuleDict(
            {name: nn.Linear(hidden, len(labels)) for name, labels in TOKEN_HEADS.items()}
        )

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor
    ) -> dict[str, Tensor]:
        """Score n pairs.

        Args:
            input_ids: Word-piece ids, int64 [n, l].
            attention_mask: 1 for tokens and 0 for padding, int64 [n, l].
            token_type_ids: 0 for the evidence, 1 for the hypothesis and 2 for its context,
                int64 [n, l].

        Returns:
            Raw logits by head: [n, labels] of ``HEADS``, [n, l, labels] of ``TOKEN_HEADS``.
        """
        place = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.words(input_ids) + self.positions(place) + self.segments(token_type_ids)
        x = self.dropout(self.embedding_norm(x))
        keep = attention_mask.to(x.dtype)
        bias = ((1.0 - keep) * -1e4)[:, None, None, :]
        if self.config.relative_buckets:
            buckets = _distance_buckets(place, self.config.relative_buckets)
            bias = bias + self.distances(buckets).permute(2, 0, 1)
        for layer in self.layers:
            x = layer(x, bias)
        mean = (x * keep[:, :, None]).sum(1) / keep.sum(1, keepdim=True)
        pooled = torch.cat([x[:, 0].to(mean.dtype), mean], dim=-1)
        logits = {name: self.heads[name](pooled) for name in HEADS}
        return logits | {name: self.tokens[name](x) for name in TOKEN_HEADS}


def _distance_buckets(places: Tensor, count: int) -> Tensor:
    """Buckets of the distances between tokens, int64 [l, l]: near ones exact, far ones on a
    logarithmic scale up to 128 tokens, half of the buckets for either direction (T5, section 2.1).
    """
    half, exact = count // 2, count // 4
    distance = places[:, None] - places[None, :]
    ahead = (distance < 0) * half
    distance = distance.abs()
    share = torch.log(distance.clamp(min=1).float() / exact) / math.log(FARTHEST / exact)
    far = (exact + (share * (half - exact)).long()).clamp(max=half - 1)
    return ahead + torch.where(distance < exact, distance, far)


FARTHEST = 128
"""Distance between tokens from which on all share a bucket."""


def load_pretrained(folder: Path, *, dropout: float = 0.1) -> CrossEncoder:
    """Build the judge on a published BERT or MPNet encoder; the heads start at random.

    MPNet's vocabulary is BERT's behind some tokens of its own; its embeddings are put in BERT's
    order, so that judges on both encoders read the same word pieces.

    Args:
        folder: Holds ``config.json`` and ``model.safetensors`` in Hugging Face's layout.
        dropout: Share of units dropped during training.

    Raises:
        ValueError: The folder holds an encoder of another kind.
    """
    from safetensors.torch import load_file

    raw = json.loads((folder / "config.json").read_text("utf-8"))
    published = load_file(folder / "model.safetensors")
    state = {
        k.removeprefix("bert.").removeprefix("mpnet."): v.float() for k, v in published.items()
    }
    state = {k: v for k, v in state.items() if not k.endswith("position_ids")}
    if raw["model_type"] == "mpnet":
        state = _as_bert(state)
    config = EncoderConfig(
        vocab_size=len(state["embeddings.word_embeddings.weight"]),
        hidden_size=raw["hidden_size"],
        layers=raw["num_hidden_layers"],
        attention_heads=raw["num_attention_heads"],
        intermediate_size=raw["intermediate_size"],
        positions=len(state["embeddings.position_embeddings.weight"]),
        layer_norm_eps=raw["layer_norm_eps"],
        dropout=dropout,
        relative_buckets=raw.get("relative_attention_num_buckets", 0),
    )
    model = CrossEncoder(config)
    renamed = _renamed(state, config.layers)
    renamed["segments.weight"] = with_segments(renamed["segments.weight"])
    missing, unexpected = model.load_state_dict(renamed, strict=False)
    if unexpected or any(not name.startswith(("heads.", "tokens.")) for name in missing):
        raise ValueError(f"{folder} holds no encoder of the expected layout: {missing}")
    return model


_MPNET_SPECIAL = {"[PAD]": (0, 1), "[UNK]": (100, 3), "[CLS]": (101, 0), "[SEP]": (102, 2)}
"""Places of special tokens in BERT's vocabulary and in MPNet's."""
_MPNET_OWN = 4
"""Tokens of MPNet before those of BERT; one more stands behind them."""
_MPNET_FIRST_POSITION = 2


def _as_bert(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """MPNet's parameters under the names that BERT has, word embeddings in BERT's order."""
    own = state["embeddings.word_embeddings.weight"]
    words = own[_MPNET_OWN:-1].clone()
    for bert, mpnet in _MPNET_SPECIAL.values():
        words[bert] = own[mpnet]
    renamed = {
        _mpnet_name(name): values for name, values in state.items() if not name.startswith("pooler")
    }
    positions = renamed["embeddings.position_embeddings.weight"][_MPNET_FIRST_POSITION:]
    return renamed | {
        "embeddings.word_embeddings.weight": words,
        "embeddings.position_embeddings.weight": positions,
        "embeddings.token_type_embeddings.weight": words.new_zeros(1, words.shape[1]),
    }


def _mpnet_name(name: str) -> str:
    """BERT's name of a parameter of MPNet."""
    for theirs, berts in (
        ("attention.attn.q.", "attention.self.query."),
        ("attention.attn.k.", "attention.self.key."),
        ("attention.attn.v.", "attention.self.value."),
        ("attention.attn.o.", "attention.output.dense."),
        ("attention.LayerNorm.", "attention.output.LayerNorm."),
    ):
        name = name.replace(theirs, berts)
    return name


def load_judge(folder: Path, *, dropout: float = 0.1) -> tuple[CrossEncoder, JudgeCard]:
    """Read a judge back from its 8-bit file, to go on training it.

    Args:
        folder: Holds ``model.onnx`` and ``judge.json``, as this recipe writes them.
        dropout: Share of units dropped during training.

    Returns:
        The model and its description.

    Raises:
        ValueError: The folder holds a model of another kind.
    """
    card = JudgeCard.model_validate_json((folder / "judge.json").read_text("utf-8"))
    known = {**HEADS, **TOKEN_HEADS}
    if any(labels != known.get(head) for head, labels in card.labels.items()):
        raise ValueError(f"the judge in {folder} has other heads or labels than this recipe's")
    path = folder / "model.onnx"
    sizes = read_sizes(path)._asdict()
    segments = sizes.pop("segments")
    model = CrossEncoder(EncoderConfig(**sizes, dropout=dropout))
    heads = [head for head in HEADS if head in card.labels]
    token_heads = [head for head in TOKEN_HEADS if head in card.labels]
    parts = ("heads.", "tokens.")
    kept = tuple(f"{part}{head}." for part in parts for head in (*heads, *token_heads))
    shapes = {
        name: tuple(values.shape)
        for name, values in model.state_dict().items()
        if name.startswith(kept) or not name.startswith(parts)
    }
    shapes["segments.weight"] = (segments, model.config.hidden_size)
    stored = read_cross_encoder(path, shapes, heads=heads, token_heads=token_heads)
    state = {name: torch.tensor(values) for name, values in stored.items()}
    state["segments.weight"] = with_segments(state["segments.weight"])
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or any(not name.startswith(parts) for name in missing):
        raise ValueError(f"the judge in {folder} lacks {', '.join(missing)}")
    return model, card


def write_weights(model: CrossEncoder, path: Path) -> None:
    """Write a judge's parameters in 16 bits, with its sizes, as one safetensors file."""
    from safetensors.torch import save_file

    state = {name: values.detach().half().cpu() for name, values in model.state_dict().items()}
    save_file(state, path, {"config": json.dumps(asdict(model.config))})


def read_weights(path: Path) -> CrossEncoder:
    """Read a judge that ``write_weights`` wrote.

    Raises:
        ValueError: The file holds no judge of this recipe.
    """
    from safetensors import safe_open

    with safe_open(path, "pt") as stored:
        config = (stored.metadata() or {}).get("config")
        if config is None:
            raise ValueError(f"{path} holds no judge of this recipe")
        state = {name: stored.get_tensor(name).float() for name in stored.keys()}  # noqa: SIM118
    model = CrossEncoder(EncoderConfig(**json.loads(config)))
    model.load_state_dict(state)
    return model


def with_segments(embeddings: Tensor) -> Tensor:
    """Segment embeddings [s, h] with rows up to ``SEGMENTS``; a new one starts as the last."""
    missing = SEGMENTS - len(embeddings)
    return torch.cat([embeddings, embeddings[-1:].expand(missing, -1)])


def _renamed(state: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Map Hugging Face's parameter names to those of ``CrossEncoder``."""
    names = {
        "words.weight": "embeddings.word_embeddings.weight",
        "positions.weight": "embeddings.position_embeddings.weight",
        "segments.weight": "embeddings.token_type_embeddings.weight",
        "embedding_norm.weight": "embeddings.LayerNorm.weight",
        "embedding_norm.bias": "embeddings.LayerNorm.bias",
    }
    parts = {
        "attention_out": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "up": "intermediate.dense",
        "down": "output.dense",
        "output_norm": "output.LayerNorm",
    }
    renamed = {ours: state[theirs] for ours, theirs in names.items()}
    if "encoder.relative_attention_bias.weight" in state:
        renamed["distances.weight"] = state["encoder.relative_attention_bias.weight"]
    for i in range(layers):
        theirs = f"encoder.layer.{i}"
        for kind in ("weight", "bias"):
            for ours, part in parts.items():
                renamed[f"layers.{i}.{ours}.{kind}"] = state[f"{theirs}.{part}.{kind}"]
            renamed[f"layers.{i}.qkv.{kind}"] = torch.cat(
                [state[f"{theirs}.attention.self.{p}.{kind}"] for p in ("query", "key", "value")]
            )
    return renamed
