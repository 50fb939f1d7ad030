"""Any Hugging Face NLI classifier as a judge, on GPU or CPU."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.types import NLIScores
from judges.base import NLITraits
from judges.session import softmax
from judges.torch_judge import Options, WindowedJudge
from judges.torch_runner import Prepared

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["TransformersNLI", "label_columns"]

DEFAULT_LENGTH = 512
"""Tokens, for models whose configuration names no limit."""

_PATTERNS: Mapping[str, str] = {
    "neither": r"not?[\s_-]*entail|non[\s_-]*entail",
    "entailment": r"entail|support",
    "neutral": r"neutral|not[\s_-]*enough|nei\b|unrelated",
    "contradiction": r"contra|refut",
}


def label_columns(id2label: Mapping[int, str]) -> dict[str, int]:
    """Find the columns of the labels in a model's configuration.

    Returns:
        Column of ``entailment`` and either of ``neutral`` and ``contradiction``, or of
        ``neither`` for a model with two labels.

    Raises:
        JudgeError: The labels are not those of an NLI model.
    """
    columns: dict[str, int] = {}
    for column, label in id2label.items():
        for name, pattern in _PATTERNS.items():
            if re.search(pattern, label, re.IGNORECASE):
                if name in columns:
                    raise JudgeError(f"two labels of {dict(id2label)} mean {name}")
                columns[name] = int(column)
                break
    known = [{"entailment", "neutral", "contradiction"}, {"entailment", "neither"}]
    if len(columns) != len(id2label) or set(columns) not in known:
        raise JudgeError(
            f"the labels {dict(id2label)} are not those of an NLI model; "
            "pass labels=('entailment', 'neutral', 'contradiction') in the model's order"
        )
    return columns


class TransformersNLI(WindowedJudge):
    """An NLI judge from a Hugging Face sequence classifier of any label order.

    Models with two labels (entailment or not) give ``neutral`` for the second. Premises that
    are too long are judged in overlapping windows; the most decided one counts.

    Args:
        model: Model id or folder.
        labels: Labels in the order of the model's logits, where its configuration does not
            name them; ``not_entailment`` for the second of two.
        options: As of ``TorchModel``.
    """

    _kind = "transformers"
    _token_budget = 32_768
    """Fills a large GPU and takes under 2 GB for roberta-large."""
    _auto_class = "AutoModelForSequenceClassification"

    def __init__(
        self,
        model: str,
        *,
        labels: Sequence[str] | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, **options)
        self._labels = labels
        self._columns: dict[str, int] = {}

    @property
    def traits(self) -> NLITraits:
        """Whether it tells contradiction; known once it is loaded."""
        return NLITraits(tells_contradiction="neither" not in self._columns)

    def _settle(self, model: PreTrainedModel) -> None:
        config = model.config
        known = cast("dict[int, str]", config.id2label)
        self._columns = label_columns(dict(enumerate(self._labels)) if self._labels else known)
        self._longest = self._positions = _longest(config, self._tokenizer)
        self._segments = getattr(config, "type_vocab_size", 0) > 1

    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        logits: Tensor = model(**inputs).logits
        return logits

    def _chunk_scores(self, chunk: Prepared, rows: NDArray[np.float32]) -> list[NLIScores]:
        """The most decided window of the least entailed part of each hypothesis."""
        best: dict[tuple[int, int], NLIScores] = {}
        for owner, row in zip(chunk.owners, softmax(rows), strict=True):
            found = self._scores(row)
            if owner not in best or found.neutral < best[owner].neutral:
                best[owner] = found
        weakest: dict[int, NLIScores] = {}
        for (i, _), found in best.items():
            if i not in weakest or found.entailment < weakest[i].entailment:
                weakest[i] = found
        return [weakest[i] for i in range(chunk.count)]

    def _scores(self, row: NDArray[np.float64]) -> NLIScores:
        values = {name: float(row[column]) for name, column in self._columns.items()}
        return NLIScores(
            entailment=values["entailment"],
            neutral=values.get("neutral", values.get("neither", 0.0)),
            contradiction=values.get("contradiction", 0.0),
        )

    def _frame(self) -> tuple[list[int], list[int], list[int]]:
        """Special tokens before, between and after the two texts of a pair."""
        first, second = self._ids(["a", "b"])
        whole: list[int] = self._tokenizer("a", "b")["input_ids"]
        start = _find(whole, first, 0)
        middle = _find(whole, second, start + len(first))
        return (
            whole[:start],
            whole[start + len(first) : middle],
            whole[middle + len(second) :],
        )


def _find(whole: Sequence[int], part: Sequence[int], start: int) -> int:
    for place in range(start, len(whole) - len(part) + 1):
        if list(whole[place : place + len(part)]) == list(part):
            return place
    raise JudgeError("the model's tokenizer reads a pair of texts in a way that is not supported")


def _longest(config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase) -> int:
    """Most tokens of a sequence, by the smaller of what model and tokenizer say."""
    limits = [int(tokenizer.model_max_length)]
    positions = getattr(config, "max_position_embeddings", None)
    if positions and positions > 0:
        # RoBERTa's position table begins behind the padding id and holds that many less.
        shifted = "roberta" in getattr(config, "model_type", "")
        limits.append(int(positions) - (config.pad_token_id + 1 if shifted else 0))
    return min([limit for limit in limits if limit < 1_000_000] or [DEFAULT_LENGTH])
