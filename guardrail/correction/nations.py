"""Countries and peoples, one in the place of the other: *Italian*, for Italy."""

from __future__ import annotations

from functools import cache

from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.words import tokenise
from guardrail.correction.lists import names_listed

__all__ = ["is_nation", "may_be_one", "nation_like"]


def is_nation(name: str) -> bool:
    """Whether a name is a country's or a people's, or a list of such."""
    if _words(name) in _countries() or _words(name) in _peoples():
        return True
    listed = names_listed(name)
    return bool(listed) and all(map(is_nation, listed))


def may_be_one(told: str, value: str) -> bool:
    """Whether one of two names may tell of the other, so that they are in no conflict.

    So do a country and its people, and a nation and a part of it: *British*, of what is English.
    Two parts of one do not: *Scottish*.
    """
    mine, theirs = _forms(told), _forms(value)
    return any(
        (mine & whole and theirs & every) or (theirs & whole and mine & every)
        for whole, every in _states()
    )


def nation_like(told: str, value: str) -> str | None:
    """A nation in the form in which the sentence tells another; None where it has none.

    Args:
        told: What the sentence tells; any name but a nation's leaves the value as it is.
        value: That of the evidence.
    """
    if not is_nation(told):
        return value
    if _is_people(told):
        people = _countries().get(_words(value))
        if people is not None:
            return people[0].upper() + people[1:]
        return None if names_listed(value) else value
    return None if _is_people(value) else value


def _is_people(name: str) -> bool:
    return _words(name) in _peoples() and _words(name) not in _countries()


def _words(name: str) -> str:
    return " ".join(token.folded for token in tokenise(name))


def _forms(name: str) -> frozenset[str]:
    """A nation's name, and of a country its people."""
    words = _words(name)
    return frozenset({words, _countries().get(words, words)})


@cache
def _rows() -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """The names and peoples of each country; a people's adjective alone, *French*, names none."""
    rows = [row for row in lexicon("nations")["nations"] if row["peoples"]]
    countries = {name for row in rows for name in row["names"] if name not in row["peoples"]}
    return tuple(
        (tuple(row["names"]), tuple(row["peoples"]))
        for row in rows
        if row["peoples"][0] not in countries
    )


@cache
def _peoples() -> frozenset[str]:
    return frozenset(people for _, peoples in _rows() for people in peoples)


@cache
def _countries() -> dict[str, str]:
    """The people of each country by its names, as its adjective."""
    return {name: peoples[0] for names, peoples in _rows() for name in names}


@cache
def _states() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Of each country the words for the whole of it, and those with its parts' peoples.

    A part's people has a country of its own, called by another adjective: *English*, among the
    peoples of the United Kingdom.
    """
    found = []
    for names, peoples in _rows():
        elsewhere = {word for _, others in _rows() if others[0] != peoples[0] for word in others}
        whole = {*names, peoples[0], *(word for word in peoples if word not in elsewhere)}
        found.append((frozenset(whole), frozenset({*whole, *peoples})))
    return tuple(found)
