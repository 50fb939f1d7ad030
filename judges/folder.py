"""A shipped model as a folder: its description in JSON, and a model loaded on first use."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar, Generic, TypeVar, cast

from pydantic import ConfigDict, Field, FiniteFloat

from guardrail.core.errors import JudgeError
from guardrail.core.types import Category, Complexity, Value
from guardrail.core.types.judging import Weighing
from judges.session import SUMS, OnnxTextModel
from judges.settings import Calibration

HEADS: Mapping[str, tuple[str, ...]] = {
    "nli": ("entailment", "neutral", "contradiction"),
    "attribution": tuple(Category),
    "complexity": tuple(Complexity),
    "claim": ("claim", "no_claim"),
}
"""The heads a judge may have, which read a whole pair; the first label stands for full support."""

TOKEN_HEADS: Mapping[str, tuple[str, ...]] = {
    "words": ("carried", "missing", "contradicted"),
    "statements": ("neither", "carries", "conflicts"),
}
"""Heads that read one token: a word piece of the sentence, or the mark before a statement."""


class Card(Value):
    """A model's description.

    Attributes:
        name: Name of the model.
        version: Its version.
        max_length: Most tokens of one sequence, special ones included.
        labels: Labels of each head, in the order of its logits.
        temperature: Divides the logits of a head, from calibration.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    name: str
    version: str
    max_length: int = Field(ge=16)
    labels: dict[str, tuple[str, ...]]
    temperature: dict[str, FiniteFloat] = Field(default_factory=dict)


class Ensemble(Value):
    """How two models are pooled.

    Attributes:
        share: Weight of the larger model; that of the smaller one is the rest.
        pairs: The same for NLI of a pair.
        sure: Probability of a verdict from which the smaller model decides alone.
        grounding: Calibration of the pooled verdicts by kind of evidence.
    """

    share: float = Field(default=0.5, ge=0, le=1)
    pairs: float = Field(default=0.3, ge=0, le=1)
    sure: float = Field(default=1.01, ge=0)
    grounding: dict[str, Calibration] = Field(default_factory=dict)


class JudgeCard(Card):
    """The description in ``judge.json``.

    Attributes:
        grounding: Calibration of verdicts by kind of evidence, ``triples`` and ``passages``.
        weighing: How much its probabilities and the findings of checks weigh in a verdict.
        ensemble: How it is pooled with the larger model in its folder, if there is one.
    """

    grounding: dict[str, Calibration] = Field(default_factory=dict)
    weighing: Weighing | None = None
    ensemble: Ensemble = Ensemble()

    def calibration(self, *, structured: bool) -> Calibration:
        """Calibration of verdicts on triples or on passages."""
        return self.grounding.get("triples" if structured else "passages", Calibration())


CardKind = TypeVar("CardKind", bound=Card)


class OnnxFolder(Generic[CardKind]):
    """Loads description and model on first use; one folder is loaded once a process.

    Args:
        folder: Holds ``model.onnx``, ``tokenizer.json`` and the description.
        card: Kind of the description.
        threads: Sequences computed at the same time; all cores by default.
    """

    _what: ClassVar[str]
    """Word for the model in messages, and name of its description: ``judge`` for ``judge.json``."""
    _text_model: ClassVar[type[OnnxTextModel]] = OnnxTextModel
    """Class that runs the model."""

    def __init__(self, folder: Path, card: type[CardKind], *, threads: int | None = None) -> None:
        self._folder = folder
        self._kind = card
        self._model = _shared_model(cast("Hashable", self._text_model), folder.resolve(), threads)

    @cached_property
    def card(self) -> CardKind:
        """The model's description.

        Raises:
            JudgeError: The file is missing or malformed.
        """
        return self._read_card(self._folder / f"{self._what}.json")

    @cached_property
    def name(self) -> str:
        """Name and version, for the score log."""
        return f"{self.card.name}-{self.card.version}"

    @cached_property
    def snapshot(self) -> str | None:
        """Hash of the folder's checksums, which distinguishes weights of the same name.

        None if they cannot be read. Loading compares the files with them.
        """
        try:
            sums = (self._folder / SUMS).read_bytes()
        except OSError:
            return None
        return hashlib.sha256(sums).hexdigest()[:16]

    def warm_up(self) -> None:
        """Load the model; later calls do nothing.

        Raises:
            JudgeError: A file is missing, cannot be read, or does not match its checksum.
        """
        _ = self.card
        self._model.warm_up()

    def _read_card(self, path: Path) -> CardKind:
        try:
            return self._kind.model_validate_json(path.read_text("utf-8"))
        except OSError as error:
            raise JudgeError(f"the {self._what}'s description cannot be read: {error}") from error
        except ValueError as error:
            raise JudgeError(f"{path} is no description of a model: {error}") from error


@lru_cache(maxsize=8)
def _shared_model(kind: type[OnnxTextModel], folder: Path, threads: int | None) -> OnnxTextModel:
    return kind(folder, threads=threads)
