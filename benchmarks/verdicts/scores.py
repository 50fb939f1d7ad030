"""Scores of the judge that are kept on disk, so that a change to checks is measured at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from guardrail.benchmarks.kept import kept_lines
from guardrail.core.types import Grounding
from judges.base import GroundingItem, GroundingJudge

__all__ = ["KeptScores"]


class KeptScores:
    """A grounding judge that writes what it said to a file, and never says it again.

    Args:
        judge: Does the work.
        path: The file of JSON lines; made where it is missing.
    """

    def __init__(self, judge: GroundingJudge, path: Path) -> None:
        self._judge = judge
        self._path = path
        self._known: dict[str, Grounding] = {}
        if path.exists():
            for line in kept_lines(path):
                key, told = json.loads(line)
                self._known[key] = Grounding.model_validate(told)

    @property
    def name(self) -> str:
        """Name of the judge."""
        return self._judge.name

    def warm_up(self) -> None:
        """Load the model."""
        self._judge.warm_up()

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Ground n sentences, in order.

        Raises:
            JudgeError: The judge failed.
        """
        keys = [json.dumps(item, ensure_ascii=False) for item in items]
        new = {key: item for key, item in zip(keys, items, strict=True) if key not in self._known}
        if new:
            told = self._judge.ground(list(new.values()))
            with self._path.open("a", encoding="utf-8") as file:
                for key, entry in zip(new, told, strict=True):
                    self._known[key] = entry
                    file.write(json.dumps([key, entry.model_dump(mode="json")]) + "\n")
        return [self._known[key] for key in keys]
