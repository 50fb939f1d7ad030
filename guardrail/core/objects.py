"""Objects of JSON as rows of cells, and the key that names what an object is about.

The keys of an object have no order, so no choice here depends on theirs.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from guardrail.core.rows import cell_text
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.units import head_of
from guardrail.core.text.words import content_stems, property_words, remembered

__all__ = [
    "DEEPEST", "NAME_COLUMNS", "cell_of", "content_of", "flat_row", "identifying_key",
    "is_amount", "is_identifier", "is_nested", "name_key", "own_key",
]  # fmt: skip

NAME_COLUMNS: Final = ("name", "label", "title", "product", "subject")
"""Keys and columns that name an object or a row, in order of preference."""
DEEPEST: Final = 4
"""Levels of nested objects whose values are cells; a deeper object is one cell, as JSON."""
LONGEST_NAME: Final = 60
"""Characters of a name; a longer text describes."""


class _Flat(NamedTuple):
    """The cells of an object, and the keys of its amount and that amount's unit, if any."""

    cells: dict[str, object]
    amount: str = ""
    unit: str = ""


def flat_row(row: Mapping[str, object]) -> dict[str, object]:
    """The cells of a row whose cells may be objects.

    An amount and its unit are one value: ``{"price": {"amount": 5.8, "currency": "EUR"}}`` and
    ``{"price": 5.8, "currency": "EUR"}`` have the price *5.8 EUR*. The values of any other object
    are named by their path: ``engine built``.
    """
    return _flat(row, 0).cells


def is_amount(value: object) -> bool:
    """True for an object that holds an amount and its unit."""
    return isinstance(value, Mapping) and bool(_flat(value, DEEPEST).amount)


def is_nested(value: object) -> bool:
    """True for an object or a list."""
    return isinstance(value, Mapping | list | tuple | set)


def _flat(row: Mapping[str, object], depth: int) -> _Flat:
    cells: dict[str, object] = {}
    for key, value in row.items():
        if isinstance(value, list | tuple) and any(map(is_amount, value)):
            flat = (_flat(item, DEEPEST) if is_amount(item) else None for item in value)
            value = [
                item if found is None else found.cells[found.amount]
                for item, found in zip(value, flat, strict=True)
            ]
        if not isinstance(value, Mapping) or depth >= DEEPEST:
            _add(cells, str(key), value)
            continue
        inner = _flat(value, depth + 1)
        for name, cell in inner.cells.items():
            if name == inner.amount:
                _add(cells, str(key), cell)
            elif name != inner.unit:
                _add(cells, f"{key} {name}", cell)
    return _with_units(cells)


def _add(cells: dict[str, object], key: str, value: object) -> None:
    """Add a cell; one of the same name gets a further value."""
    if key in cells:
        held = (item if isinstance(item, list) else [item] for item in (cells[key], value))
        value = [cell for items in held for cell in items]
    cells[key] = value


def _with_units(cells: dict[str, object]) -> _Flat:
    """The cells, with amounts in the unit or currency of another cell."""
    kinds = {key: kind for key in cells if (kind := _unit_kind(key))}
    amount = unit_key = ""
    for kind in set(kinds.values()):
        named = [key for key in kinds if kinds[key] == kind]
        unit = cell_of(cells[named[0]]) if len(named) == 1 else None
        if unit is None or not re.fullmatch(r"\D{1,20}", unit):
            continue
        amounts = [key for key in cells if property_words(key) in lexicon_set("keys", "amounts")]
        if kind == "currencies":
            unit = unit.upper() if re.fullmatch(r"[a-z]{3}", unit) else unit
            money = [key for key in cells if _is_money(key)]
        else:
            money = amounts if len(amounts) == 1 else []
        joined = {key: text for key in money if (text := _in_unit(key, cells[key], unit))}
        cells |= joined
        if len(joined) == len(amounts) == 1 and amounts[0] in joined:
            amount, unit_key = amounts[0], named[0]
    return _Flat(cells, amount, unit_key)


@remembered(4_096)
def _unit_kind(key: str) -> str:
    """Whether a key is that of a unit or a currency; empty for any other."""
    last = property_words(key).removesuffix(" code").rpartition(" ")[2]
    return next((k for k in ("units", "currencies") if last in lexicon_set("keys", k)), "")


def _is_money(key: str) -> bool:
    return head_of(key).name.rpartition(" ")[2] in lexicon_set("keys", "money")


def _in_unit(key: str, value: object, unit: str) -> str | None:
    """An amount with its unit; None where it is none, or its key or text tells the unit."""
    text = cell_of(value)
    if text is None or head_of(key).unit or not re.fullmatch(r"[(+\-−]?\d[\d.,'’\s]*\)?", text):
        return None
    return f"{text} {unit}"


# --- what names an object ------------------------------------------------------------------


def name_key(row: Mapping[str, object]) -> str | None:
    """The key of an object's name, if it has one."""
    folded = {str(key).casefold(): key for key in sorted(row, key=str, reverse=True)}
    found = (folded[name] for name in NAME_COLUMNS if name in folded)
    return next((key for key in found if cell_of(row[key]) is not None), None)


def is_identifier(key: str) -> bool:
    """True for the key of a name or identifier, such as ``bookingReference``."""
    return _last(key) in lexicon_set("keys", "identifiers") or key.casefold() in NAME_COLUMNS


def own_key(row: Mapping[str, object], kind: str | None) -> tuple[str | None, bool]:
    """The key that names an object on its own.

    Args:
        row: The object.
        kind: What it is, such as the name of the tool that returns it: *get_booking*.

    Returns:
        The key, if there is one, and whether it certainly names this object and no other: the
        ``booking_reference`` of a booking does, a ``customer_name`` may name several orders.
    """
    if (named := name_key(row)) is not None:
        return named, True
    found = [key for key in sorted(_texts(row)) if cell_of(row[key]) is not None]
    found = [key for key in found if is_identifier(key)]
    certain = [
        key
        for key in found
        if _is_of(key, kind)
        or (key.casefold() == _last(key) and (_last(key) == "id" or _letters([cell_of(row[key])])))
    ]
    others = [key for key in found if _last(key) not in lexicon_set("keys", "codes")]
    if certain:
        return min(certain, key=_order), True
    if others and len({_owner(key) for key in others}) == 1:
        return min(others, key=_order), False
    return None, False


def identifying_key(
    rows: Sequence[Mapping[str, object]],
    kind: str | None,
    *,
    distinct: bool = False,
    left_out: Collection[str] = (),
) -> str | None:
    """The key that tells the objects of a list apart.

    Args:
        rows: The objects.
        kind: What they are, such as the key of their list: *bookings*.
        distinct: Take no key that two objects share, and no text that is hardly a name.
        left_out: Keys that name other objects.

    Returns:
        A key such as ``name``; else an identifier that each of them has, of their kind rather than
        of another; else a text that each of them has, a name rather than a description; else None.
    """
    keys = sorted({key for row in rows for key in _texts(row) if key not in left_out})
    texts = {key: [text for row in rows if (text := cell_of(row.get(key)))] for key in keys}
    differ = {key for key, own in texts.items() if len(own) == len(rows) == len({*own})}
    folded = {key.casefold(): key for key in reversed(keys) if texts[key]}
    for name in NAME_COLUMNS:
        if name in folded and (not distinct or folded[name] in differ):
            return folded[name]
    owners = Counter(_owner(key) for key in differ if is_identifier(key))
    ranks = {key: _rank(key, texts[key], kind, owners) for key in differ}
    least = 5 if distinct else 6
    found = [key for key in differ if ranks[key] <= least]
    return min(found, key=lambda key: (ranks[key], *_order(key)), default=None)


def _rank(key: str, texts: Sequence[str], kind: str | None, owners: Mapping[str, int]) -> int:
    """How far a key is from the identifier of objects of a kind: 0 for their own."""
    last = _last(key)
    if is_identifier(key):
        if _is_of(key, kind) or key.casefold() == last:
            return 0
        if last in lexicon_set("keys", "names"):
            return 2 if owners[_owner(key)] > 1 else 3
        return 1 if _letters(texts) and owners[_owner(key)] == 1 else 4
    if not all(text[0].isalpha() for text in texts) or {*texts} <= {"true", "false"}:
        return 9
    named = all(not text[0].islower() or any(map(str.isdigit, text)) for text in texts)
    if not named or max(map(len, texts)) > LONGEST_NAME:
        return 6
    plurals = {f"{last}s", f"{last}es", f"{last.removesuffix('y')}ies"}
    return 5 if plurals.isdisjoint(property_words(kind or "").split()) else 0


def _texts(row: Mapping[str, object]) -> list[str]:
    """The keys of an object, without those of a Python dict that are no texts."""
    return [key for key in row if isinstance(key, str)]


def _order(key: str) -> tuple[int, str]:
    found, last = lexicon("keys")["identifiers"], _last(key)
    return found.index(last) if last in found else len(found), key


def _is_of(key: str, kind: str | None) -> bool:
    """True if a key is of the objects of a kind: *booking reference* of *get_bookings*."""
    own = content_stems(_owner(key))
    return bool(own) and own <= content_stems(property_words(kind or ""))


def _last(key: str) -> str:
    return property_words(key).rpartition(" ")[2]


def _owner(key: str) -> str:
    return property_words(key).rpartition(" ")[0]


def _letters(texts: Iterable[str | None]) -> bool:
    return all(any(map(str.isalpha, text or "")) for text in texts)


def cell_of(value: object) -> str | None:
    """The text of a cell; None for empty and nested ones."""
    return None if is_nested(value) else cell_text(value)


def content_of(value: object) -> str:
    """The content of an object as text, which does not depend on the order of its keys."""
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return cell_text(value) or ""
