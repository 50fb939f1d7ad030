"""Bounds of evidence: of the names that it comes with, and of how much of it is read."""

from __future__ import annotations

from collections.abc import Sequence

from guardrail.core.errors import InputError
from guardrail.core.incoming import cut_text
from guardrail.core.types import Evidence, Passage

__all__ = ["MOST_CHARS", "bounded", "too_long", "within"]

MOST_CHARS = 2_000
"""Most characters of a name: a title, an id, an address, a subject, a property. Names are looked
for in every sentence and written into every reply; texts and values have no such bound."""

OF_PASSAGES = ("id", "title", "url")
OF_TRIPLES = ("subject", "property", "subject_id", "property_id", "value_id")


def too_long(item: Evidence) -> tuple[str, int] | None:
    """A name of an item that is longer than names are, and its characters; None where none is."""
    names = OF_PASSAGES if isinstance(item, Passage) else OF_TRIPLES
    lengths = {name: len(getattr(item, name) or "") for name in names}
    if not isinstance(item, Passage) and item.row is not None:
        lengths["row.table"] = len(item.row.table)
    return next((found for found in lengths.items() if found[1] > MOST_CHARS), None)


def bounded(item: Evidence, where: str) -> None:
    """Check that the names of an item of evidence are no longer than names are.

    Args:
        item: A triple or a passage.
        where: What to call it in an error: ``evidence[2]``.

    Raises:
        InputError: One of its names is longer.
    """
    if (found := too_long(item)) is not None:
        name, length = found
        raise InputError(
            f"{where}.{name} has {length:,} characters; a name of evidence has at most "
            f"{MOST_CHARS:,}: shorten it, and put what it says into the text or the value"
        )


def within(evidence: Sequence[Evidence], chars: int) -> tuple[tuple[Evidence, ...], int]:
    """Evidence of so many characters at most: the longest passages are cut, others stay whole.

    Returns:
        The evidence in its order, and the number of items that were cut or left out.
    """
    lengths = [len(item.text) for item in evidence]
    most, room = chars, chars
    for place, length in enumerate(sorted(lengths)):
        most = room // (len(lengths) - place)  # for each of those that are as long or longer
        if length > most:
            break
        room -= length
    else:
        return tuple(evidence), 0
    kept: list[Evidence] = []
    for item, length in zip(evidence, lengths, strict=True):
        if length <= most:
            kept.append(item)
        elif isinstance(item, Passage) and (text := cut_text(item.text, most)):
            kept.append(item.model_copy(update={"text": text}))
    return tuple(kept), sum(length > most for length in lengths)
