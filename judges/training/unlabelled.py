"""Rows without labels, made from those with labels; a teacher says what is right of them.

Near misses teach most: a sentence beside its neighbour's evidence, with a name or a number of the
evidence in the place of its own, or beside a part of its evidence.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from judges.training.rows import NO_LABEL, Row

__all__ = ["unlabelled_rows"]

NEIGHBOURS = 6
"""Rows of a source stand near those of the same page, table or set."""

_MENTION = re.compile(r"\d[\d.,:/-]*\d|\d|[A-Z][\w'-]+(?: (?:of |the |de )?[A-Z][\w'-]+)*")
"""A number, or a run of capitalised words."""


def unlabelled_rows(rows: Sequence[Row], *, seed: int) -> Iterator[Row]:
    """One row without labels for each row that has some.

    Args:
        rows: Training rows, those of a source in their order.
        seed: Seed of all choices.
    """
    chooser = random.Random(f"{seed}/unlabelled")
    by_source: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_source[row.source].append(row)
    ways = (_beside_other_evidence, _with_swapped_mention, _with_swapped_mention, _with_less)
    for some in by_source.values():
        for place, row in enumerate(some):
            near = some[max(0, place - NEIGHBOURS) : place + NEIGHBOURS + 1]
            way: Callable[[Row, Row, random.Random], Row | None] = chooser.choice(ways)
            made = way(row, chooser.choice(near), chooser)
            if made is not None:
                kind = "statements" if made.statements else "pairs"
                yield _bare(made, f"unlabelled_{kind}")


def _bare(row: Row, source: str) -> Row:
    return row._replace(
        source=source,
        nli=NO_LABEL,
        attribution=(),
        complexity=NO_LABEL,
        claim=NO_LABEL,
        span=None,
        cited=None,
    )


def _beside_other_evidence(row: Row, other: Row, chooser: random.Random) -> Row | None:
    """The sentence beside its neighbour's evidence."""
    if (other.premise, other.statements) == (row.premise, row.statements):
        return row._replace(hypothesis=other.hypothesis, context=row.context)
    return row._replace(premise=other.premise, statements=other.statements)


def _with_swapped_mention(row: Row, other: Row, chooser: random.Random) -> Row | None:
    """The sentence with a name or number of the evidence, or of its neighbour, for one of its."""
    mentions = list(_MENTION.finditer(row.hypothesis))
    if not mentions:
        return None
    old = chooser.choice(mentions)
    texts = (*row.statements, row.premise, other.hypothesis)
    others = sorted(
        {
            found
            for text in texts
            for found in _MENTION.findall(text)
            if found != old.group() and found[0].isdigit() == old.group()[0].isdigit()
        }
    )
    if not others:
        return None
    start, end = old.span()
    return row._replace(
        hypothesis=row.hypothesis[:start] + chooser.choice(others) + row.hypothesis[end:]
    )


def _with_less(row: Row, other: Row, chooser: random.Random) -> Row | None:
    """The sentence beside a part of its evidence; a pair turned round."""
    if len(row.statements) > 1:
        kept = chooser.randint(1, len(row.statements) - 1)
        places = sorted(chooser.sample(range(len(row.statements)), kept))
        return row._replace(statements=tuple(row.statements[place] for place in places))
    if row.statements or len(row.premise) > MOST_TURNED:
        return None
    return row._replace(premise=row.hypothesis, hypothesis=row.premise)


MOST_TURNED = 200
"""Characters of a premise that may become a hypothesis."""
