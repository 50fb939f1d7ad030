"""Rows that bring evidence of their own: for check, rank, score, eval and bulk alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import JsonValue, PrivateAttr, model_validator

from guardrail.core.types import Evidence, Passage
from guardrail.lines.rows import Row
from guardrail.sources.items import (
    ShortPassages,
    ShortTriples,
    evidence_items,
    inline_evidence,
)
from guardrail.sources.tables import few_enough

__all__ = ["EvidenceRow"]


class EvidenceRow(Row):
    """A row that may bring its own evidence in place of the graph.

    Attributes:
        evidence: A text, or a list of items as ``evidence_items`` reads them, the same as in a
            call of the gateway; None for no evidence.
        triples: A shorter form: lists of subject, property and value.
        passages: A shorter form: texts, or objects of a passage.
    """

    other_names: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("context", "contexts", "documents"), "evidence"),
        **dict.fromkeys(("facts", "knowledge"), "triples"),
    }
    evidence: str | list[JsonValue] | None = None
    triples: ShortTriples = None
    passages: ShortPassages = None
    _items: tuple[Evidence, ...] | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _read(self) -> Self:
        short = inline_evidence(self.triples, self.passages)
        own = self._own()
        few_enough(len(own or ()) + len(short or ()), "the row")
        together = None if own is None and short is None else (*(own or ()), *(short or ()))
        self._items = together and tuple(dict.fromkeys(together))
        return self

    def _own(self) -> tuple[Evidence, ...] | None:
        if self.evidence is None:
            return None
        if isinstance(self.evidence, str):
            return (Passage(text=self.evidence),) if self.evidence.strip() else ()
        return evidence_items(self.evidence)

    @property
    def items(self) -> tuple[Evidence, ...] | None:
        """The evidence as the engine takes it; None where the graph is to be asked."""
        return self._items
