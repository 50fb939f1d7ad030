"""A user's own labelled pairs, to go on training a judge on what it will be asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.data import held_out
from guardrail.core.errors import InputError
from judges.heads import HEADS
from training.data import Split
from training.plan import Plan
from training.rows import Row, nli_row

__all__ = ["SOURCE", "read_own_rows", "with_own"]

SOURCE = "own"
"""Source of these rows in mixtures and tables."""
HELD_OUT = 0.2
"""Share of premises that are measured and calibrated on instead of trained on."""
PART = 0.25
"""Part of what is read that own rows make up beside those of the recipe."""
MOST_REPEATS = 10.0
"""How often a round may meet one own row to reach that part."""


def read_own_rows(path: Path) -> Split:
    """Read JSON lines of ``{"premise": …, "hypothesis": …, "label": …}``.

    A label is ``entailment``, ``neutral`` or ``contradiction``. A fifth of the premises, chosen
    by their text, is held out.

    Raises:
        InputError: A line is malformed, or there are too few premises to hold one out.
    """
    split = Split([], [])
    lines = path.read_text("utf-8").removesuffix("\n").split("\n")
    for number, line in enumerate(lines, start=1):
        try:
            raw = json.loads(line)
            row = nli_row(str(raw["premise"]), str(raw["hypothesis"]), raw["label"], SOURCE)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path}, line {number}: each line holds premise, hypothesis and a label out of "
                f"{', '.join(HEADS['nli'])} ({type(error).__name__}: {error})"
            ) from error
        (split.validation if held_out(row.premise, HELD_OUT, salt=SOURCE) else split.train).append(
            row
        )
    if not split.train or not split.validation:
        raise InputError(f"{path} holds too few premises to train on some and measure on others")
    return split


def with_own(plan: Plan, rows: Mapping[str, Sequence[Row]]) -> Plan:
    """A plan that reads own rows beside its others, or those alone.

    Args:
        plan: The plan.
        rows: All training rows, by source.
    """
    own = len(rows.get(SOURCE, ()))
    if not own:
        return plan
    drawn = sum(share * len(rows.get(source, ())) for source, share in plan.shares.items())
    each = min(MOST_REPEATS, PART / (1 - PART) * drawn / own) if drawn else 1.0
    return plan.model_copy(update={"shares": {**plan.shares, SOURCE: each}})
