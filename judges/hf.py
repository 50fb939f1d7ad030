"""Judges of the Hugging Face hub by the name of their model: known ones are read in their form.

``hf:lytang/MiniCheck-RoBERTa-Large`` is asked as MiniCheck was trained to be asked. A model that is
not known is inspected when it is loaded: one with the labels of an NLI model is read as such, and
another one is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from guardrail.core.errors import JudgeError
from judges.alignscore import AlignScore
from judges.checkers import (
    FACTCG,
    HHEM,
    MINICHECK,
    MINICHECK_LONG,
    MINICHECK_T5,
    ClassifierChecker,
    HHEMChecker,
    T5Checker,
)
from judges.pretrained import ModelConfig, config_of
from judges.span_marker import SpanMarker
from judges.torch_judge import TorchModel
from judges.transformers_nli import TransformersNLI

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["KNOWN", "InspectedNLI", "known_family", "open_hf"]


class InspectedNLI(TransformersNLI):
    """An NLI classifier of which nothing is known: it is looked at before it is loaded.

    Args: as of ``TransformersNLI``.
    """

    _kind = "hf"

    def _load(self, device: str, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        _inspect(self._id, config_of(self._id), own_labels=self._labels is not None)
        return super()._load(device, dtype)


def _alignscore(model: str, **options: object) -> AlignScore:
    """AlignScore's two checkpoints lie in one repository; a name may end in the size."""
    make: Callable[..., AlignScore] = AlignScore
    for size in ("base", "large"):
        if model.lower().endswith(f"alignscore-{size}"):
            return make(model[: -len(size) - 1], size=size, **options)
    return make(model, **options)


KNOWN: Mapping[str, Callable[..., TorchModel]] = {
    "MiniCheck-RoBERTa-Large": partial(ClassifierChecker, form=MINICHECK),
    "MiniCheck-DeBERTa-v3-Large": partial(ClassifierChecker, form=MINICHECK_LONG),
    "MiniCheck-Flan-T5-Large": partial(T5Checker, form=MINICHECK_T5),
    "FactCG-DeBERTa-v3-Large": partial(ClassifierChecker, form=FACTCG),
    "hallucination_evaluation_model": partial(HHEMChecker, form=HHEM),
    "AlignScore": _alignscore,
    "AlignScore-base": _alignscore,
    "AlignScore-large": _alignscore,
    "lettucedect-base-modernbert-en-v1": SpanMarker,
    "lettucedect-large-modernbert-en-v1": SpanMarker,
}
"""Models by the last part of their id, so that a folder of the same name is read alike."""

_BY_FOLDED = {name.casefold(): name for name in KNOWN}

_REFUSED = {
    "ForTokenClassification": "marks words; of such models those of LettuceDetect are known",
    "ForCausalLM": "is a language model; serve it behind an OpenAI-compatible endpoint and write "
    "chat:MODEL",
    "ForConditionalGeneration": "writes text; where it was trained to say 1 for entailment and 0 "
    "else, write t5-true:MODEL",
    "ForQuestionAnswering": "finds answers to questions and judges none",
}
"""What models with other heads are, by the end of their architecture's name."""


def open_hf(model: str, **options: object) -> TorchModel:
    """The judge of a model of the hub; nothing is loaded yet.

    Args:
        model: Model id, or a folder; a folder with the name of a known model is read like it.
        options: Of the judge that reads it, such as ``device="cpu"`` or ``temperature=1.3``.
    """
    family = known_family(model)
    make: Callable[..., TorchModel] = InspectedNLI if family is None else KNOWN[family]
    return make(model, **options)


def known_family(model: str) -> str | None:
    """The known model that an id or a folder names; None where it names none."""
    return _BY_FOLDED.get(model.rstrip("/").rpartition("/")[2].casefold())


def _inspect(model: str, config: ModelConfig, *, own_labels: bool) -> None:
    """Refuse a model that cannot be read as an NLI classifier.

    Raises:
        JudgeError: What it is, and what to write in place of it.
    """
    heads = [str(name) for name in config.get("architectures") or ()]
    head = heads[0] if heads else ""
    for end, told in _REFUSED.items():
        if head.endswith(end):
            raise JudgeError(f"{model!r} ({head}) {told}{_near(model)}")
    if config.get("auto_map"):
        raise JudgeError(
            f"{model!r} brings Python code of its own, which is not run; known models are "
            f"{', '.join(KNOWN)}"
        )
    if not head.endswith("ForSequenceClassification"):
        raise JudgeError(
            f"{model!r} ({head or 'no architecture named'}) has no head that classifies, so that "
            "its word on any pair would be random; name a model that was trained for NLI"
            f"{_near(model)}"
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
