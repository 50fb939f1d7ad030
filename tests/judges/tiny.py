"""Tiny models with random weights, in the file formats of the real ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from judges.folder import HEADS
from judges.session import write_sums
from training.judge_export import write_cross_encoder

HIDDEN, INNER, LAYERS = 32, 64, 2
POSITIONS = 64
WORDS = [
    *("rome", "florence", "paris", "painter", "sculptor", "born", "in", "was", "where", "the"),
    *("a", "of", "who", "is", "place", "birth", "occupation", "artemisia", "gentileschi"),
    *(":", ",", ".", "?", "1593", "1596"),
]
LETTERS = [chr(c) for c in range(ord("a"), ord("z") + 1)] + [str(d) for d in range(10)]


def write_tokenizer(folder: Path) -> int:
    """Write a WordPiece tokenizer that can spell any lower case word; returns its size."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *LETTERS, *(f"##{c}" for c in LETTERS)]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return len(vocabulary)


def random_state(vocabulary: int) -> dict[str, np.ndarray]:
    """Random parameters by the names of the training code."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    state = {
        "words.weight": normal(vocabulary, HIDDEN),
        "positions.weight": normal(POSITIONS, HIDDEN),
        "segments.weight": normal(2, HIDDEN),
    }
    shapes = {
        "qkv": (3 * HIDDEN, HIDDEN),
        "attention_out": (HIDDEN, HIDDEN),
        "up": (INNER, HIDDEN),
        "down": (HIDDEN, INNER),
    }
    norms = ["embedding_norm"]
    for i in range(LAYERS):
        for part, shape in shapes.items():
            state[f"layers.{i}.{part}.weight"] = normal(*shape)
            state[f"layers.{i}.{part}.bias"] = normal(shape[0])
        norms += [f"layers.{i}.attention_norm", f"layers.{i}.output_norm"]
    for norm in norms:
        state[f"{norm}.weight"] = np.ones(HIDDEN, np.float32)
        state[f"{norm}.bias"] = normal(HIDDEN)
    for head, labels in HEADS.items():
        state[f"heads.{head}.0.weight"] = normal(HIDDEN, 2 * HIDDEN)
        state[f"heads.{head}.0.bias"] = normal(HIDDEN)
        state[f"heads.{head}.3.weight"] = normal(len(labels), HIDDEN) * 3
        state[f"heads.{head}.3.bias"] = normal(len(labels))
    return state


def write_judge(folder: Path, *, damaged: bool = False) -> Path:
    """Write a judge like the shipped one; a damaged one gives NaN."""
    folder.mkdir(parents=True, exist_ok=True)
    size = write_tokenizer(folder)
    state = random_state(size)
    if damaged:
        state["heads.nli.3.bias"][0] = np.nan
    write_cross_encoder(state, folder / "model.onnx", heads=tuple(HEADS), attention_heads=4)
    card = {
        "name": "tiny",
        "version": "1",
        "max_length": POSITIONS,
        "labels": {head: list(labels) for head, labels in HEADS.items()},
        "temperature": {"nli": 1.5},
    }
    (folder / "judge.json").write_text(json.dumps(card), "utf-8")
    write_sums(folder)
    return folder


def t5_config(size: int, **more: object) -> object:
    """Of a T5 with a vocabulary of so many tokens."""
    import transformers

    return transformers.T5Config(
        vocab_size=size, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=3, **more,
    )  # fmt: skip
