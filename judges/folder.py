"""A shipped model as a folder: ONNX file, tokenizer, and a description in JSON."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Hashable
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Generic, TypeVar, cast

from pydantic import ConfigDict, Field, FiniteFloat

from guardrail.core.errors import JudgeError
from guardrail.core.types import Value
from judges.session import OnnxTextModel
from judges.sums import SUMS

__all__ = ["Card", "OnnxFolder"]


DIGITS = 16
"""Hexadecimal digits of a hash."""


class Card(Value):
    """What a folder's description says of its model.

    Attributes:
        name: Name of the model.
        version: Its version.
        max_length: Most tokens of one sequence, special ones included.
        labels: Labels of each head, in the order of its logits.
        temperature: What the logits of a head are divided by, from calibration.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    name: str
    version: str
    max_length: int = Field(ge=16)
    labels: dict[str, tuple[str, ...]]
    temperature: dict[str, FiniteFloat] = Field(default_factory=dict)


CardKind = TypeVar("CardKind", bound=Card)


class OnnxFolder(Generic[CardKind]):
    """Loads description and model on first use; one folder is loaded once a process.

    Args:
        folder: Holds ``model.onnx``, ``tokenizer.json`` and the description.
        card: Kind of the description.
        threads: Sequences computed at the same time; all cores by default.
    """

    _what: ClassVar[str]
    """The model in words, which names its description too: ``judge`` for ``judge.json``."""
    _text_model: ClassVar[type[OnnxTextModel]] = OnnxTextModel
    """What runs the model."""

    def __init__(self, folder: Path, card: type[CardKind], *, threads: int | None = None) -> None:
        self._folder = folder
        self._kind = card
        self._model = _shared_model(cast("Hashable", self._text_model), folder.resolve(), threads)
        self._lock = threading.Lock()
        self._card: CardKind | None = None

    @property
    def card(self) -> CardKind:
        """What the model's description says.

        Raises:
            JudgeError: The file is missing or malformed.
        """
        with self._lock:
            if self._card is None:
                self._card = self._read_card(self._folder / f"{self._what}.json")
        return self._card

    @property
    def name(self) -> str:
        """Name and version, for the score log."""
        return f"{self.card.name}-{self.card.version}"

    @property
    def snapshot(self) -> str | None:
        """Hash of the folder's checksums, which tells new weights from old ones of the same name.

        None if they cannot be read. Loading compares the files with them.
        """
        try:
            sums = (self._folder / SUMS).read_bytes()
        except OSError:
            return None
        return hashlib.sha256(sums).hexdigest()[:DIGITS]

    def warm_up(self) -> None:
        """Load the model; later calls do nothing."""
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
