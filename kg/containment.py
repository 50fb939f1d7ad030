"""Which places hold a place: the way up from one to wider ones, the same for every back end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

__all__ = ["MOST", "STEPS", "holders"]

STEPS: Final = 8
"""Most steps from a place to one that holds it: quarter, borough, city, county, …, country."""

MOST: Final = 30
"""Most places that are kept for one: several countries may have held a town."""


def holders(place: str, above: Callable[[str], Iterable[str]]) -> list[str]:
    """The places that hold one, nearest first, each once.

    Args:
        place: The place.
        above: Gives the places that hold a place directly, best first; may lead in circles.

    Returns:
        At most ``MOST`` places, at most ``STEPS`` steps away, without the place itself.
    """
    seen = {place: None}
    frontier = [place]
    for _ in range(STEPS):
        found = dict.fromkeys(wider for item in frontier for wider in above(item))
        frontier = [item for item in found if item not in seen]
        seen.update(dict.fromkeys(frontier))
        if not frontier or len(seen) > MOST:
            break
    return list(seen)[1 : MOST + 1]
