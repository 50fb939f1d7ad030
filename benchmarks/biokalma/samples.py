"""What was sampled, kept on disk, so that a run that was stopped goes on where it stood."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError

from benchmarks.kept import kept_lines
from guardrail.core.errors import InputError
from guardrail.core.types import Value

__all__ = ["SampleRow", "SampleStore"]


class SampleRow(Value):
    """What the model said to one question.

    Attributes:
        id: The question's.
        seed: Of the run.
        constrained: Whether decoding was held to the triples.
        guard: The guardrail that asked again for what did not hold; empty for the model alone.
        marked: The samples, with markers.
        seconds: Wall time of the call.
    """

    id: str
    seed: int
    constrained: bool
    guard: str = ""
    marked: tuple[str, ...]
    seconds: float = Field(ge=0)


class SampleStore:
    """Samples on disk, one JSON object a line; what is there is not sampled again.

    Args:
        path: The file; None keeps samples in memory.

    Raises:
        InputError: The file holds something else.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._rows: dict[tuple[str, int, bool, str], SampleRow] = {}
        if path is None or not path.exists():
            return
        try:
            for line in kept_lines(path):
                self._keep(SampleRow.model_validate_json(line))
        except (OSError, UnicodeDecodeError, ValidationError) as error:
            raise InputError(f"{path} is no file of samples: {error}") from error

    def _keep(self, row: SampleRow) -> None:
        self._rows[row.id, row.seed, row.constrained, row.guard] = row

    def find(
        self, question: str, seed: int, *, constrained: bool, n: int, guard: str = ""
    ) -> SampleRow | None:
        """A row with at least n samples."""
        row = self._rows.get((question, seed, constrained, guard))
        return row if row and len(row.marked) >= n else None

    def add(self, row: SampleRow) -> None:
        """Keep a row, on disk before this returns."""
        self._keep(row)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(row.model_dump_json() + "\n")
