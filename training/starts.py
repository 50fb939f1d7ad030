"""Where training starts: a published encoder, a judge in eight bits, or a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from judges.heads import HEADS, TOKEN_HEADS, JudgeCard
from training.judge_export import read_cross_encoder, read_sizes
from training.model import SEGMENTS, CrossEncoder, EncoderConfig

__all__ = ["load_judge", "load_pretrained", "load_weights"]

_NEW = ("heads.", "tokens.")
"""What parameters of heads start with."""


def load_pretrained(folder: Path, *, dropout: float = 0.1) -> CrossEncoder:
    """Build the judge on a published BERT encoder; the heads start at random.

    Args:
        folder: Holds ``config.json`` and ``model.safetensors`` in Hugging Face's layout.
        dropout: Share of units dropped during training.

    Raises:
        ValueError: The folder holds an encoder of another kind.
    """
    from safetensors.torch import load_file

    raw = json.loads((folder / "config.json").read_text("utf-8"))
    if raw.get("model_type") != "bert":
        raise ValueError(f"{folder} holds no BERT encoder; training starts from no other kind")
    published = load_file(folder / "model.safetensors")
    state = {name.removeprefix("bert."): values.float() for name, values in published.items()}
    model = CrossEncoder(
        EncoderConfig(
            vocab_size=raw["vocab_size"],
            hidden_size=raw["hidden_size"],
            layers=raw["num_hidden_layers"],
            attention_heads=raw["num_attention_heads"],
            intermediate_size=raw["intermediate_size"],
            positions=raw["max_position_embeddings"],
            layer_norm_eps=raw["layer_norm_eps"],
            dropout=dropout,
        )
    )
    _fill(model, _renamed(state, model.config.layers), folder)
    return model


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
    for i in range(layers):
        theirs = f"encoder.layer.{i}"
        for kind in ("weight", "bias"):
            for ours, part in parts.items():
                renamed[f"layers.{i}.{ours}.{kind}"] = state[f"{theirs}.{part}.{kind}"]
            renamed[f"layers.{i}.qkv.{kind}"] = torch.cat(
                [state[f"{theirs}.attention.self.{p}.{kind}"] for p in ("query", "key", "value")]
            )
    return renamed


def load_judge(folder: Path, *, dropout: float = 0.1) -> tuple[CrossEncoder, JudgeCard]:
    """Read a judge back from its 8-bit file, to go on training it.

    Heads that it lacks start at random.

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
    kept = tuple(f"{part}{head}." for part in _NEW for head in (*heads, *token_heads))
    shapes = {
        name: tuple(values.shape)
        for name, values in model.state_dict().items()
        if name.startswith(kept) or not name.startswith(_NEW)
    }
    shapes["segments.weight"] = (segments, model.config.hidden_size)
    stored = read_cross_encoder(path, shapes, heads=heads, token_heads=token_heads)
    _fill(model, {name: torch.tensor(values) for name, values in stored.items()}, folder)
    return model, card


def _fill(model: CrossEncoder, state: dict[str, Tensor], folder: Path) -> None:
    """Put parameters into a model, all but those of heads among them."""
    segments = state["segments.weight"]
    # Encoders know two segments; the third, of the context, starts as the second.
    more = segments[-1:].expand(SEGMENTS - len(segments), -1)
    state["segments.weight"] = torch.cat([segments, more])
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or any(not name.startswith(_NEW) for name in missing):
        raise ValueError(f"{folder} lacks {', '.join(missing) or 'what it should'}")


def load_weights(model: CrossEncoder, path: Path) -> None:
    """Give a model the averaged weights of a checkpoint.

    Args:
        model: A model of the same sizes.
        path: What training wrote as ``last.pt``, or any file of torch that holds ``average``, a
            value for each name of a parameter.

    Raises:
        ValueError: The file holds no weights of such a model.
    """
    try:
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True)["average"])
    except Exception as error:
        raise ValueError(f"{path} is no checkpoint of a judge of these sizes: {error}") from error
