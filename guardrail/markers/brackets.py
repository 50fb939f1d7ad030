r"""One marker, ``[Q…, property: value]``, ``[NA]`` or ``[corrected]``: find it, read it, write it.

The grammar of a marker::

    marker   = "[NA]" | "[corrected]" | "[" group *( "; " group ) "]"
    group    = entity 1*( ", " property ": " value )

Commas, colons and balanced brackets may stand inside a value: a comma ends a value only where
a new ``property: value``, a new entity or ``NA`` follows. What would still be read wrongly is
escaped with a backslash on rendering (``\,`` ``\:`` ``\;`` ``\[`` ``\]`` ``\\``, and
``\n`` for a line break). Text that is no marker is left alone: ``[1]``, ``[sic]``, a bracket
that is never closed on its line.

Language models write markers less strictly, so more is understood than is written:
``[Q1, a: b, Q2, c: d]``, ``[qid: Q1, a: b]``, ``[N/A]``, and citations with a part missing
(``[Q1]``, ``[Q1, occupation]``), whose missing parts are empty strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from guardrail.core.types.knowledge import Citation, Triple

NA = "[NA]"
CORRECTED = "[corrected]"
"""Stands behind words that the guardrail wrote in place of a model's; read only as written here."""

# Brackets inside a value may nest this deep. The bound makes parsing linear: a character is
# read again for each enclosing bracket that could be a marker, so at most this often.
_MAX_NESTING = 4

_BRACKETS = re.compile(r"\\[\\\[\]]|[\[\]\n]")
_SEPARATOR = re.compile(r"([,;]) ")
_IDENTIFIER = re.compile(r"[QPL]\d+$|[A-Za-z][A-Za-z0-9+.-]*:[^\s:,]\S*$")
_NOT_AVAILABLE = frozenset({"NA", "N/A"})
_INNER_MARKER = re.compile(r"(?<!\\)(?:\\\\)*\[(?:NA\]|[QPL]\d+[,\]])")
"""One that is not escaped: an escaped bracket is a value's own."""


class KnownFacts:
    """Triples that markers may cite; where they are known, ambiguous values are split right.

    Args:
        triples: The retrieved triples. An entity may be cited by its id or its label.
    """

    def __init__(self, triples: Iterable[Triple]) -> None:
        self.entities: set[str] = set()
        self.properties: set[str] = set()
        self.facts: dict[str, tuple[str, str]] = {}
        for triple in triples:
            self.entities.add(triple.subject)
            if triple.subject_id:
                self.entities.add(triple.subject_id)
            self.properties.add(triple.property)
            self.facts[f"{triple.property}: {triple.value}"] = (triple.property, triple.value)
        names = [*self.entities, *self.facts]
        # How many pieces between separators the longest known name spans.
        self.span = 1 + max([name.count(", ") + name.count("; ") for name in names], default=0)


def bracket_pairs(text: str) -> list[tuple[int, int]]:
    """Matched brackets on one line that nest no deeper than allowed, outer before inner."""
    pairs: list[tuple[int, int]] = []
    starts: list[int] = []
    heights: list[int] = []
    for token in _BRACKETS.finditer(text):
        symbol = token.group()
        if symbol == "[":
            starts.append(token.start())
            heights.append(0)
        elif symbol == "]" and starts:
            start, height = starts.pop(), heights.pop() + 1
            if height <= _MAX_NESTING:
                pairs.append((start, token.end()))
            if heights:
                heights[-1] = max(heights[-1], height)
        elif symbol == "\n":
            starts.clear()
            heights.clear()
    pairs.sort()
    return pairs


def open_bracket(text: str) -> int | None:
    """Where the first bracket opens that the end of the text leaves open on its line."""
    starts: list[int] = []
    for token in _BRACKETS.finditer(text):
        symbol = token.group()
        if symbol == "[":
            starts.append(token.start())
        elif symbol == "]" and starts:
            starts.pop()
        elif symbol == "\n":
            starts.clear()
    return starts[0] if starts else None


def read_bracket(content: str, known: KnownFacts | None) -> tuple[list[Citation], bool] | None:
    """Read what stands between two brackets.

    Returns:
        The citations and whether the bracket says NA; None for a bracket that is plain text.
    """
    if content.strip().upper() in _NOT_AVAILABLE:
        return [], True
    if _INNER_MARKER.search(content) and not (
        known and any(fact in content for fact in known.facts if "[" in fact)
    ):
        return None  # an earlier bracket was left open
    return _Reader(_split(content), known).read()


def write_bracket(citations: Iterable[Citation], *, na: bool = False) -> str:
    """Write citations as one bracket; neighbouring citations of an entity share its name.

    Returns:
        The bracket, ``[NA]`` where there is no citation and ``na`` is set, "" for neither.
    """
    groups: list[str] = []
    entity: str | None = None
    for citation in citations:
        fact = write_fact(citation)
        if citation.entity == entity:
            groups[-1] += f", {fact}"
        else:
            entity = citation.entity
            groups.append(f"{write_entity(entity)}, {fact}")
    brackets = f"[{'; '.join(groups)}]" if groups else ""
    if not na:
        return brackets
    return f"{brackets} {NA}" if brackets else NA


def write_entity(entity: str) -> str:
    """Write an entity for a bracket."""
    return _escape(entity).replace(": ", r"\: ")


def write_fact(citation: Citation) -> str:
    """Write ``property: value`` for a bracket."""
    # A property ends at the first colon and never goes on after a comma.
    name = _SEPARATOR.sub(r"\\\1 ", _escape_brackets(citation.property)).replace(": ", r"\: ")
    return f"{name}: {_escape(citation.value)}"


class _Piece:
    """A stretch of a bracket between two separators, and the separator before it."""

    __slots__ = ("colon", "separator", "text")

    def __init__(self, text: str, separator: str) -> None:
        self.text = text
        self.separator = separator
        colons = (match.start() for match in re.finditer(r"\\.|: ", text) if match.group() == ": ")
        self.colon = next(colons, -1)

    def parts(self) -> tuple[str, _Piece]:
        """What stands before the first ": ", as it reads, and the piece after it."""
        name = _join([_Piece(self.text[: self.colon], "")])
        return name, _Piece(self.text[self.colon + 2 :], "")


def _split(content: str) -> list[_Piece]:
    pieces = []
    position = depth = 0
    separator = ""
    for token in re.finditer(r"\\[\\\[\],:;n]|[\[\]]|, |; ", content):
        symbol = token.group()
        if symbol == "[":
            depth += 1
        elif symbol == "]":
            depth = max(0, depth - 1)
        elif depth == 0 and symbol in (", ", "; "):
            pieces.append(_Piece(content[position : token.start()], separator))
            separator, position = symbol, token.end()
    pieces.append(_Piece(content[position:], separator))
    return pieces


def _join(pieces: Sequence[_Piece]) -> str:
    joined = pieces[0].text + "".join(piece.separator + piece.text for piece in pieces[1:])
    sign = r"\\([\\\[\],:;n])"  # an escaped one
    return re.sub(sign, lambda match: "\n" if match[1] == "n" else match[1], joined).strip()


class _Reader:
    """Reads the pieces of one bracket from left to right."""

    def __init__(self, pieces: list[_Piece], known: KnownFacts | None) -> None:
        self.pieces = pieces
        self.known = known
        self.citations: list[Citation] = []
        self.na = False
        # For each piece, the next one (itself included) that has a ": ".
        self.next_fact = [len(pieces)] * (len(pieces) + 1)
        for index in range(len(pieces) - 1, -1, -1):
            self.next_fact[index] = index if pieces[index].colon > 0 else self.next_fact[index + 1]

    def read(self) -> tuple[list[Citation], bool] | None:
        entity, index = self._entity(0)
        if entity is None:
            return None
        identified = bool(_IDENTIFIER.match(entity))
        bare = True  # no fact of this entity was read yet
        while index < len(self.pieces):
            following, after = self._next_entity(index, identified)
            if following is not None:
                if bare:
                    self._cite(entity, "", "")
                entity, index, bare = following, after, True
                continue
            if self._says_na(index):
                self.na, bare = True, False
                index += 1
                continue
            index = self._fact(entity, index)
            bare = False
        if bare:
            self._cite(entity, "", "")
        if self.known and not (identified or self._recognised()):
            return None
        return self.citations, self.na

    def _recognised(self) -> bool:
        """True when the bracket names a known entity or property: it means to cite."""
        return self.known is not None and any(
            citation.entity in self.known.entities or citation.property in self.known.properties
            for citation in self.citations
        )

    def _cite(self, entity: str, name: str, value: str) -> None:
        self.citations.append(Citation(entity=entity, property=name, value=value))

    def _says_na(self, index: int) -> bool:
        return self.pieces[index].text.strip() in _NOT_AVAILABLE

    def _entity(self, index: int) -> tuple[str | None, int]:
        """The entity that the bracket opens with, and where its facts start."""
        pieces = self.pieces
        first = pieces[index]
        found = self._known_entity(index)
        if found:
            return found
        text = _join([first])
        if _IDENTIFIER.match(text):
            return text, index + 1
        if first.colon > 0:
            name, rest = first.parts()
            if name.lower() in ("qid", "id"):
                return _join([rest]) or None, index + 1
            if self.known and name in self.known.properties:
                return "", index
            return None, index
        if text.upper() in _NOT_AVAILABLE and len(pieces) > 1:
            self.na = True
            return self._entity(index + 1)
        after = self.next_fact[index]
        if after == len(pieces) or not text:
            return None, index
        return _join(pieces[index:after]), after

    def _known_entity(self, index: int) -> tuple[str, int] | None:
        if self.known is None:
            return None
        for after in range(min(index + self.known.span, len(self.pieces)), index, -1):
            name = _join(self.pieces[index:after])
            if name in self.known.entities:
                return name, after
        return None

    def _next_entity(self, index: int, identified: bool) -> tuple[str | None, int]:
        """A further entity that starts at a piece; None where the piece goes on with facts."""
        piece = self.pieces[index]
        text = _join([piece])
        if _IDENTIFIER.match(text) and piece.colon <= 0:
            return text, index + 1
        if piece.colon > 0 and self._known_fact(index) is None:
            name, rest = piece.parts()
            named = _join([rest])
            known = _IDENTIFIER.match(named) or (self.known and named in self.known.entities)
            if name in ("qid", "id") and known:  # else a property of that name
                return named, index + 1
        found = self._known_entity(index)
        if found and found[1] < len(self.pieces) and self.pieces[found[1]].colon > 0:
            return found
        if piece.separator == "; " and not identified and piece.colon <= 0:
            after = self.next_fact[index]
            if after < len(self.pieces):
                return _join(self.pieces[index:after]), after
        return None, index

    def _fact(self, entity: str, index: int) -> int:
        """Read one fact, record it, and return where the next piece starts."""
        known = self._known_fact(index)
        if known:
            (name, value), after = known
            self._cite(entity, name, value)
            return after
        piece = self.pieces[index]
        if piece.colon <= 0:
            self._cite(entity, _join([piece]), "")
            return index + 1
        after = index + 1
        identified = bool(_IDENTIFIER.match(entity))
        while (
            after < len(self.pieces)
            and self.pieces[after].colon <= 0
            and not self._says_na(after)
            and self._next_entity(after, identified)[0] is None
        ):
            after += 1
        name, rest = piece.parts()
        self._cite(entity, name, _join([rest, *self.pieces[index + 1 : after]]))
        return after

    def _known_fact(self, index: int) -> tuple[tuple[str, str], int] | None:
        if self.known is None:
            return None
        for after in range(min(index + self.known.span, len(self.pieces)), index, -1):
            fact = self.known.facts.get(_join(self.pieces[index:after]))
            if fact:
                return fact, after
        return None


def _escape(part: str) -> str:
    """Escape what would be read as structure and no more."""
    text = _escape_brackets(part)
    return _SEPARATOR.sub(r"\\\1 ", text) if _ambiguous(text) else text


def _escape_brackets(part: str) -> str:
    text = part.replace("\\", "\\\\").replace("\n", "\\n")
    bare = "[" not in text and "]" not in text
    return text if bare or _balanced(text) else text.replace("[", "\\[").replace("]", "\\]")


def _balanced(text: str) -> bool:
    depth = deepest = 0
    for symbol in text:
        if symbol == "[":
            depth += 1
            deepest = max(deepest, depth)
        elif symbol == "]":
            depth -= 1
            if depth < 0:
                return False
    return depth == 0 and deepest < _MAX_NESTING and not _INNER_MARKER.search(text)


def _ambiguous(part: str) -> bool:
    """True when a comma or semicolon inside a name or value would be read as its end."""
    pieces = _split(part) if ", " in part or "; " in part else []
    return len(pieces) > 1 and any(
        piece.colon > 0
        or piece.separator == "; "
        or piece.text.strip() in _NOT_AVAILABLE
        or _IDENTIFIER.match(piece.text.strip())
        for piece in pieces
    )
