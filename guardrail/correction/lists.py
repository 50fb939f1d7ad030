"""Values that list several names: *Singapore and Indonesia*."""

from __future__ import annotations

import re
from functools import cache

from guardrail.core.text.lexicon import lexicon_set

__all__ = ["names_listed"]


def names_listed(value: str) -> tuple[str, ...]:
    """The names that a value lists; empty for a value that is one.

    Commas alone list nothing: *Austin, Texas* is one place.
    """
    parts = _joint().split(value)
    if len(parts) < 2:
        return ()
    return tuple(name.strip() for part in parts for name in part.split(", ") if name.strip())


@cache
def _joint() -> re.Pattern[str]:
    """What stands between the last names of a list."""
    words = "|".join(re.escape(word) for word in sorted(lexicon_set("names", "joins")))
    return re.compile(rf",? (?:{words}) | ?[/;] ?")
