"""Where training starts: a published encoder, or a judge read back from its 8-bit file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from judges.heads import HEADS, TOKEN_HEADS, JudgeCard
from training.model import SEGMENTS, EncoderConfig
from training.reader import EvidenceReader
from training.reader_export import read_config, read_reader

__all__ = ["load_judge", "load_pretrained"]


def load_pretrained(folder: Path, *, dropout: float = 0.1) -> EvidenceReader:
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
    model = EvidenceReader(config)
    renamed = _renamed(state, config.layers)
    renamed["segments.weight"] = with_segments(renamed["segments.weight"])
    missing, unexpected = model.load_state_dict(renamed, strict=False)
    if unexpected or any(
        not name.startswith(("heads.", "tokens.", "statements.")) for name in missing
    ):
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


def with_segments(embeddings: Tensor) -> Tensor:
    """Segment embeddings [s, h] with rows up to ``SEGMENTS``; a new one starts as the last."""
    missing = SEGMENTS - len(embeddings)
    return torch.cat([embeddings, embeddings[-1:].expand(missing, -1)])


def _renamed(state: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Map Hugging Face's parameter names to those of ``EvidenceReader``."""
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


def load_judge(folder: Path, *, dropout: float = 0.1) -> tuple[EvidenceReader, JudgeCard]:
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
    model = EvidenceReader(replace(EncoderConfig(**read_config(path)), dropout=dropout))
    shapes = {name: tuple(values.shape) for name, values in model.state_dict().items()}
    stored = read_reader(path, shapes, heads=list(HEADS))
    model.load_state_dict({name: torch.tensor(values) for name, values in stored.items()})
    return model, card
