"""Columns of numbers in one notation, whatever the country and format of the spreadsheet.

The column resolves ambiguous cells: *2,490* has a decimal comma in a column with *17,5*, and
*(250)* is a negative amount among numbers without parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

__all__ = ["in_one_notation"]

_SPACE: Final = " \u00a0\u202f\u2009"
_NUMBER: Final = re.compile(
    rf"(?P<open>\()?(?P<before>[^\d().,+\-−]{{0,4}})(?P<sign>[+\-−]?)"
    rf"(?P<figures>\d+(?:[.,'’{_SPACE}]\d+)*)(?P<power>[eE][+-]?\d{{1,2}})?"
    rf"(?P<behind>[{_SPACE}]?[^\d().,+\-−]{{0,12}})(?P<close>\))?"
)
_COMMA: Final = re.compile(rf"(?:\d+|\d{{1,3}}(?:[.'’{_SPACE}]\d{{3}})+),\d+")
"""Numbers that may have a decimal comma."""
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+")
_SPACED: Final = re.compile(rf"[1-9]\d{{0,2}}(?:[{_SPACE}'’]\d{{3}})+(?:[.,]\d+)?")
_LONG: Final = 9
"""Digits from which on a number may be a telephone or account number, in groups of three too."""


def in_one_notation(cells: Sequence[str]) -> list[str]:
    """The cells of a column; numbers get decimal points, signs and plain digits.

    A column that does not consist of numbers is returned unchanged.

    Args:
        cells: The cells of a table, without missing ones.
    """
    numbers = [_NUMBER.fullmatch(cell) for cell in cells]
    found = [
        number for number in numbers if number and bool(number["open"]) == bool(number["close"])
    ]
    if not found or len(found) < len(cells):
        return list(cells)
    figures = [number["figures"] for number in found]
    comma = any(_COMMA.fullmatch(item) and not _THOUSANDS.fullmatch(item) for item in figures)
    comma = comma and all("," not in item or _COMMA.fullmatch(item) for item in figures)
    comma = comma and not any(re.search(r"\.\d{1,2}$|\.\d{4,}$", item) for item in figures)
    spaced = not all(sum(map(str.isdigit, item)) >= _LONG for item in figures)
    negative = not all(number["open"] for number in found)
    shares = any("%" in number["behind"] for number in found)
    return [
        _written(number, comma=comma, spaced=spaced, negative=negative, shares=shares)
        for number in found
    ]


def _written(
    number: re.Match[str], *, comma: bool, spaced: bool, negative: bool, shares: bool
) -> str:
    figures, behind, sign = number["figures"], number["behind"], number["sign"]
    if spaced and _SPACED.fullmatch(figures):
        figures = re.sub(rf"[{_SPACE}'’]", "", figures)
    if comma:
        figures = re.sub(rf"[.'’{_SPACE}]", "", figures).replace(",", ".")
    plain = re.fullmatch(r"\d{1,30}(?:\.\d{1,30})?", figures) is not None
    if number["power"] and plain:
        figures = f"{Decimal(figures + number['power']):f}"
    elif number["power"]:
        figures += number["power"]
    if shares and not behind.strip() and plain and Decimal(figures) <= 1:
        figures, behind = f"{(Decimal(figures) * 100).normalize():f}", "%"
    if number["open"]:
        if not negative:
            return number[0]
        sign = "-"
    return f"{number['before']}{sign}{figures}{behind}"
