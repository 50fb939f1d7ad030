"""Scores of the judge that are kept on disk, so that a change to checks is measured at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kept import kept_lines
from guardrail.core.types import Grounding
from judges.base import GroundingItem, GroundingJudge
from judges.memory import RememberedGrounding

__all__ = ["KeptScores"]


class KeptScores(RememberedGrounding):
    """A grounding judge that writes what it said to a file, and never says it again.

    Args:
        judge: Does the work.
        path: The file of JSON lines; made where it is missing.
    """

    def __init__(self, judge: GroundingJudge, path: Path) -> None:
        super().__init__(judge)
        self._path = path
        if path.exists():
            for line in kept_lines(path):
                key, told = json.loads(line)
                self._known[_item(key)] = Grounding.model_validate(told)

    def _remember(self, items: Sequence[GroundingItem], told: Sequence[Grounding]) -> None:
        super()._remember(items, told)
        with self._path.open("a", encoding="utf-8") as file:
            for item, entry in zip(items, told, strict=True):
                key = json.dumps(item, ensure_ascii=False)
                file.write(json.dumps([key, entry.model_dump(mode="json")]) + "\n")


def _item(key: str) -> GroundingItem:
    statements, *rest = json.loads(key)
    return GroundingItem(tuple(statements), *rest)
