"""The line above every table: which judge, model, seed and commit printed it, and when."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

from guardrail.core.types import Value
from judges.registry import create_nli

__all__ = ["Provenance", "markdown", "provenance"]


class Provenance(Value):
    """Where a table comes from.

    Attributes:
        judge: Name and version of the judge; ``none`` where no judge takes part.
        model: The language model; ``none`` where no model takes part.
        seed: Seed of all choices.
        commit: Short hash of the commit, with ``+`` for uncommitted changes.
        date: Day, in UTC.
    """

    judge: str
    model: str
    seed: int
    commit: str
    date: str

    def __str__(self) -> str:
        return (
            f"judge {self.judge}, model {self.model}, seed {self.seed}, commit {self.commit}, "
            f"{self.date}"
        )


def provenance(*, judge: str | None = None, model: str | None = None, seed: int = 0) -> Provenance:
    """The provenance of a run that starts now.

    Args:
        judge: Name of the judge, such as ``onnx``; None where no judge takes part.
        model: Name of the language model.
        seed: Seed of all choices.
    """
    return Provenance(
        judge="none" if judge in (None, "none") else create_nli(judge).name,
        model=model or "none",
        seed=seed,
        commit=_commit(),
        date=datetime.now(UTC).date().isoformat(),
    )


def markdown(origin: Provenance, title: str, head: list[str], rows: list[list[object]]) -> str:
    """A table in Markdown below its title and provenance; numbers get three digits."""

    def cell(value: object) -> str:
        if value is None:
            return "–"
        return f"{value:.3f}" if isinstance(value, float) else str(value)

    lines = [
        f"### {title}",
        "",
        f"{origin}",
        "",
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
    ]
    return "\n".join([*lines, *(f"| {' | '.join(map(cell, row))} |" for row in rows)])


def _commit() -> str:
    where = Path(__file__).parent
    try:
        named, changed = (
            subprocess.run(
                ["git", *command], cwd=where, capture_output=True, text=True, check=True
            ).stdout.strip()
            for command in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "-uno"])
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return named + ("+" if changed else "")
