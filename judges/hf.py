"""Judges of the Hugging Face hub by the name of their model; any NLI classifier.

``hf:lytang/MiniCheck-RoBERTa-Large`` reads MiniCheck in the form that it was trained on. An unknown
model is inspected before it is loaded: one with NLI labels is read as an NLI classifier, any other
is refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.types import NLIScores
from judges.base import NLITraits, Pair
from judges.batching import distinct, pair_windows
from judges.checkers import CHECKERS, CLASSIFIER, Checker, alignscore
from judges.pretrained import ModelConfig, config_of, load_pretrained
from judges.session import softmax
from judges.span_marker import SpanMarker
from judges.torch_judge import Options, TorchJudge, TorchModel
from judges.torch_runner import Prepared

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["KNOWN", "NLIClassifier", "known_family", "label_columns", "open_hf"]

DEFAULT_LENGTH = 512
"""Tokens, for models whose configuration names no limit."""

_LABELS: Mapping[str, str] = {
    "neither": r"not?[\s_-]*entail|non[\s_-]*entail",
    "entailment": r"entail|support",
    "neutral": r"neutral|not[\s_-]*enough|nei\b|unrelated",
    "contradiction": r"contra|refut",
}
"""Patterns of labels; the first that matches counts."""

_REFUSED = {
    "ForTokenClassification": "marks words; of such models those of LettuceDetect are known",
    "ForCausalLM": "is a language model; serve it behind an OpenAI-compatible endpoint and write "
    "chat:MODEL",
    "ForConditionalGeneration": "writes text; if it was trained to say 1 for entailment and 0 "
    "otherwise, write t5-true:MODEL",
    "ForQuestionAnswering": "finds answers to questions and judges none",
}
"""Models with other heads, by the end of their architecture's name."""

KNOWN: Mapping[str, Callable[..., TorchModel]] = {
    **{name: partial(Checker, form=form) for name, form in CHECKERS.items()},
    **dict.fromkeys(("AlignScore", "AlignScore-base", "AlignScore-large"), alignscore),
    "lettucedect-base-modernbert-en-v1": SpanMarker,
    "lettucedect-large-modernbert-en-v1": SpanMarker,
}
"""Models by the last part of their id, which may be the name of a folder."""

_BY_FOLDED = {name.casefold(): name for name in KNOWN}


def open_hf(model: str, **options: object) -> TorchModel:
    """Make the judge of a model of the hub; nothing is loaded yet.

    Args:
        model: Model id, or a folder; a folder with the name of a known model is read like it.
        options: Options of the judge, such as ``device="cpu"`` or ``temperature=1.3``.
    """
    family = known_family(model)
    make: Callable[..., TorchModel] = partial(NLIClassifier, kind="hf", inspect=True)
    return (make if family is None else KNOWN[family])(model, **options)


def known_family(model: str) -> str | None:
    """The known model that an id or a folder names; None for an unknown one."""
    return _BY_FOLDED.get(model.rstrip("/").rpartition("/")[2].casefold())


class NLIClassifier(TorchJudge):
    """An NLI judge from a Hugging Face sequence classifier with any order of labels.

    Models with two labels (entailment or not) give ``neutral`` for the second. Pairs that are too
    long are judged in overlapping windows: the most decided window of each part of a hypothesis
    counts, and the least entailed part.

    Args:
        model: Model id or folder.
        labels: Labels in the order of the model's logits if its configuration does not name them;
            ``not_entailment`` for the second of two.
        kind: The part of the judge's name before the colon.
        inspect: Whether to refuse a model that is no NLI classifier before loading it.
        options: As of ``TorchJudge``.
    """

    def __init__(
        self,
        model: str,
        *,
        labels: Sequence[str] | None = None,
        kind: str = "transformers",
        inspect: bool = False,
        **options: Unpack[Options],
    ) -> None:
        # The budget fills a large GPU and takes under 2 GB for roberta-large.
        super().__init__(model, kind=kind, budget=32_768, **options)
        self._labels = labels
        self._inspect = inspect
        self._columns: dict[str, int] = {}
        self._longest = DEFAULT_LENGTH
        self._segments = False

    @property
    def traits(self) -> NLITraits:
        """Whether it tells contradiction, which is known once it is loaded."""
        return NLITraits(tells_contradiction="neither" not in self._columns)

    def _load(self, device: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        if self._inspect:
            _refuse(self._id, config_of(self._id), own_labels=self._labels is not None)
        model, tokenizer = load_pretrained(self._id, kind=CLASSIFIER, device=device, dtype=dtype)
        config = model.config
        known = cast("dict[int, str]", config.id2label or {})
        self._columns = label_columns(dict(enumerate(self._labels)) if self._labels else known)
        self._longest = _longest(config, tokenizer)
        self._segments = getattr(config, "type_vocab_size", 0) > 1
        return model, tokenizer

    def _outputs(self, model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
        logits: Tensor = model(**inputs).logits
        return logits

    def _prepare(self, pairs: Sequence[Pair]) -> Prepared:
        texts, places = distinct([text for pair in pairs for text in pair])
        known = self._ids(texts)
        ids = iter([known[place] for place in places])
        before, between, after = self._frame()
        capacity = self._longest - len(before) - len(between) - len(after)
        chunk = Prepared(count=len(pairs))
        for number, (premise, hypothesis) in enumerate(zip(ids, ids, strict=True)):
            for window in pair_windows(premise, hypothesis, capacity):
                first = [*before, *window.premise, *between]
                border = len(first) if self._segments else None
                chunk.add([*first, *window.hypothesis, *after], (number, window.part), border)
        return chunk

    def _frame(self) -> tuple[list[int], list[int], list[int]]:
        """Special tokens before, between and after the two texts of a pair."""
        first, second = self._ids(["a", "b"])
        whole: list[int] = self._tokenizer("a", "b")["input_ids"]
        start = _find(whole, first, 0)
        middle = _find(whole, second, start + len(first))
        return whole[:start], whole[start + len(first) : middle], whole[middle + len(second) :]

    def _chunk_scores(self, chunk: Prepared, rows: NDArray[np.float32]) -> list[NLIScores]:
        best: dict[tuple[int, int], NLIScores] = {}
        for owner, row in zip(chunk.owners, softmax(rows, self._temperature), strict=True):
            values = {name: float(row[column]) for name, column in self._columns.items()}
            found = NLIScores(
                entailment=values["entailment"],
                neutral=values.get("neutral", values.get("neither", 0.0)),
                contradiction=values.get("contradiction", 0.0),
            )
            if owner not in best or found.neutral < best[owner].neutral:
                best[owner] = found
        weakest: dict[int, NLIScores] = {}
        for (number, _), found in best.items():
            if number not in weakest or found.entailment < weakest[number].entailment:
                weakest[number] = found
        return [weakest[number] for number in range(chunk.count)]


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
        matching = (name for name, pattern in _LABELS.items() if re.search(pattern, label, re.I))
        if (name := next(matching, None)) is not None:
            if name in columns:
                raise JudgeError(f"two labels of {dict(id2label)} mean {name}")
            columns[name] = int(column)
    known = [{"entailment", "neutral", "contradiction"}, {"entailment", "neither"}]
    if len(columns) != len(id2label) or set(columns) not in known:
        raise JudgeError(
            f"the labels {dict(id2label)} are not those of an NLI model; "
            "pass labels=('entailment', 'neutral', 'contradiction') in the model's order"
        )
    return columns


def _find(whole: Sequence[int], part: Sequence[int], start: int) -> int:
    for place in range(start, len(whole) - len(part) + 1):
        if list(whole[place : place + len(part)]) == list(part):
            return place
    raise JudgeError("the model's tokenizer reads a pair of texts in a way that is not supported")


def _longest(config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase) -> int:
    """Maximum tokens of a sequence: the smaller limit of model and tokenizer."""
    limits = [int(tokenizer.model_max_length)]
    positions = getattr(config, "max_position_embeddings", None)
    if positions and positions > 0:
        # RoBERTa's position table begins after the padding id and holds that many less.
        shifted = "roberta" in getattr(config, "model_type", "")
        limits.append(int(positions) - (config.pad_token_id + 1 if shifted else 0))
    return min([limit for limit in limits if limit < 1_000_000] or [DEFAULT_LENGTH])


def _refuse(model: str, config: ModelConfig, *, own_labels: bool) -> None:
    """Refuse a model that cannot be read as an NLI classifier.

    Raises:
        JudgeError: Says what the model is, and what to write instead.
    """
    heads = [str(name) for name in config.get("architectures") or ()]
    head = heads[0] if heads else ""
    for end, reason in _REFUSED.items():
        if head.endswith(end):
            raise JudgeError(f"{model!r} ({head}) {reason}{_near(model)}")
    if config.get("auto_map"):
        raise JudgeError(
            f"{model!r} brings Python code of its own, which is not run; known models are "
            f"{', '.join(KNOWN)}"
        )
    if not head.endswith("ForSequenceClassification"):
        raise JudgeError(
            f"{model!r} ({head or 'no architecture named'}) has no head that classifies, so that "
            f"its answers would be random; name a model that was trained for NLI{_near(model)}"
        )
    labels = config.get("id2label") or {}
    if len(labels) == 1:
        raise JudgeError(f"{model!r} gives one number and no labels; name a model of NLI")
    if not own_labels and all(str(name).upper().startswith("LABEL_") for name in labels.values()):
        raise JudgeError(
            f"{model!r} does not name its labels ({', '.join(map(str, labels.values())) or 'none'})"
            "; write their order into id2label of the config.json of a copy, as "
            '{"0": "entailment", "1": "neutral", "2": "contradiction"}, and name its folder'
        )


def _near(model: str) -> str:
    name = model.rpartition("/")[2]
    close = difflib.get_close_matches(name.casefold(), _BY_FOLDED, n=1, cutoff=0.8)
    return f"; did you mean {_BY_FOLDED[close[0]]!r}?" if close else ""
