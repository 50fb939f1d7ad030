"""Scores of the judge that are kept on disk, so that a change to checks is measured at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kept import kept_lines
from guardrail.core.types import Grounding
from judges.base import GroundingItem, GroundingJudge
from judges.service import RememberedGrounding

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
                key, grounding = json.loads(line)
                self._known[_item(key)] = Grounding.model_validate(grounding)

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n items; see ``GroundingJudge``."""
        new = [item for item in dict.fromkeys(items) if item not in self._known]
        groundings = super().ground(items)
        with self._path.open("a", encoding="utf-8") as file:
            for item in new:
                key = json.dumps(item, ensure_ascii=False)
                file.write(json.dumps([key, self._known[item].model_dump(mode="json")]) + "\n")
        return groundings


def _item(key: str) -> GroundingItem:
    """An item as it was written: its fields in order, tuples as lists."""
    fields = (tuple(field) if isinstance(field, list) else field for field in json.loads(key))
    return GroundingItem._make(fields)
