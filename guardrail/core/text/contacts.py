"""Phone numbers, addresses and codes: each is one value, whatever figures it contains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["MAIL", "PHONE", "WEB", "Contact", "find_contacts"]

PHONE, MAIL, WEB = "phone number", "e-mail address", "web address"
IBAN, ISBN, COLOUR = "bank account", "book number", "colour"

CODES = {
    IBAN: re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){3,7}(?:[ ]?[A-Z0-9]{1,3})?(?!\w)"),
    ISBN: re.compile(r"(?<![\w-])97[89](?:[- ]?\d){9}[- ]?[\dX](?![\w-])"),
    COLOUR: re.compile(r"(?<!\w)#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?!\w)"),
}
"""Codes that are written with or without gaps, or in either case."""

MAIL_FORM = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
WEB_FORM = re.compile(
    r"(?<![\w@])(?:https?://|www\.|(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}/)"
    r"[^\s<>\"'|(){}\[\]]*[^\s<>\"'|(){}\[\].,;:!?]",
    re.IGNORECASE,
)
ABROAD = re.compile(r"(?<![\w+])\+\d[\d ()./-]{6,24}(?<=\d)")
AT_HOME = re.compile(
    r"(?<![\w.,:+/-])(?!\d{4} ?- ?\d{4}(?!\d)|[12]\d{3}-)"  # hours, such as 0900-1700, and years
    r"(?!\d{1,2}([ /-])\d{1,2}\1\d{2}(?:\d{2})?(?!\d))"  # days
    r"(?:\(?0\d{1,5}\)?(?:[ /-]{1,3}\d{2,}){1,5}|\(\d{3}\) ?\d{3}-\d{4}|\d{1,5}(?:-\d+){2,5})"
    r"(?![\w/-]|[.,]\d)"
)
"""Groups of figures that write no number: the first begins with 0 or is in brackets, or three
and more are joined by hyphens, as in numbers of books as well."""

ABROAD_DIGITS, HOME_DIGITS, MOST_DIGITS = 9, 7, 15
"""Fewest figures with a code of a country and without; most figures (ITU-T E.164)."""


class Contact(NamedTuple):
    """A phone number, an address or a code.

    Attributes:
        form: ``PHONE``, ``MAIL``, ``WEB``, or one of ``CODES``.
        groups: The figures of a phone number, group by group; an address or code alone, written
            plainly.
        start: Offset of its first character.
        end: Offset past its last.
    """

    form: str
    groups: tuple[str, ...]
    start: int
    end: int

    def same(self, known: Contact) -> bool | None:
        """Whether this names the same as another; None where one may be a part of the other."""
        if self.form != known.form:
            return None
        mine, theirs = "".join(self.groups), "".join(known.groups)
        if self.form == PHONE:
            return any(_ends_alike(text, theirs) for text in self._beginnings()) or any(
                _ends_alike(text, mine) for text in known._beginnings()
            )
        if self.form in CODES:
            return mine == theirs
        within = mine.startswith(f"{theirs}/") or theirs.startswith(f"{mine}/")
        return None if within else mine == theirs

    def _beginnings(self) -> Iterator[str]:
        """The number, and what it is where its last groups count something else: *24 hours*."""
        for place in range(len(self.groups), 0, -1):
            yield "".join(self.groups[:place])


def find_contacts(text: str) -> Iterator[Contact]:
    """The phone numbers and addresses of a plain text, those of one form after another's."""
    for form, pattern in ((MAIL, MAIL_FORM), (WEB, WEB_FORM)):
        for match in pattern.finditer(text):
            plain = re.sub(r"^https?://|^www\.", "", match.group().lower())
            yield Contact(form, (plain.removeprefix("www.").rstrip("/"),), *match.span())
    for form, pattern in CODES.items():
        for match in pattern.finditer(text):
            code = re.sub(r"[ -]", "", match.group()).upper()
            if form == COLOUR and len(code) == 4:
                code = "#" + "".join(sign * 2 for sign in code[1:])
            yield Contact(form, (code,), *match.span())
    for pattern, least in ((ABROAD, ABROAD_DIGITS), (AT_HOME, HOME_DIGITS)):
        for match in pattern.finditer(text):
            groups = tuple(re.findall(r"\d+", match.group()))
            if least <= len("".join(groups)) <= MOST_DIGITS:
                yield Contact(PHONE, groups, *match.span())


def _ends_alike(one: str, other: str) -> bool:
    """Whether two numbers are the same, one of them perhaps without the code of its country."""
    short, long = sorted((one.lstrip("0"), other.lstrip("0")), key=len)
    return short == long or (len(short) >= HOME_DIGITS and long.endswith(short))
