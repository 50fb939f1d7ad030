"""SPARQL of KGQA sets read into the three shapes of CAQA; what does not fit is named, not guessed.

Covers what those sets write: basic graph patterns with ``;`` and ``,``, sequences of properties,
class constraints, and Wikidata's statement nodes (``p:``/``ps:``), which count as one hop.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Pattern", "Shape", "UnfitQueryError", "read_shape"]


class UnfitQueryError(ValueError):
    """A query is outside the three shapes; the message is the reason, in few words."""


class Pattern(NamedTuple):
    """One triple pattern; a term is a variable (``?x``) or an entity (id, or name in ``=``)."""

    subject: str
    property: str
    value: str


@dataclass(frozen=True, slots=True)
class Shape:
    """A query of one of the three shapes.

    Attributes:
        base: ``single``, ``path`` or ``tree``.
        answer: The variable asked for.
        patterns: Its patterns; class constraints are left out.
    """

    base: str
    answer: str
    patterns: tuple[Pattern, ...]


_PREFIX = re.compile(r"PREFIX\s+([\w-]*):\s*<([^>]*)>", re.IGNORECASE)
_LABEL_SERVICE = re.compile(r"SERVICE\s+wikibase:label\s*\{[^}]*\}\s*\.?", re.IGNORECASE)
_UNFIT = (
    ("aggregate", r"\b(?:COUNT|SUM|AVG|MIN|MAX|SAMPLE)\s*\(|\bGROUP\s+BY\b|\bHAVING\b|\bCOUNT\b"),
    ("yes or no", r"^\s*ASK\b"),
    ("filter", r"\bFILTER\b|\bBIND\b|\bVALUES\b"),
    ("order", r"\bORDER\s+BY\b|\bOFFSET\b"),
    ("alternative", r"\bUNION\b|\bOPTIONAL\b|\bMINUS\b|\bSERVICE\b"),
)
_TOKEN = re.compile(
    r"""<[^>\s]*>|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^\S+)?|'(?:[^'\\]|\\.)*'(?:@[\w-]+)?"""
    r"""|[?$]\w+|[\w-]*:[\w\-%()',]*(?:\.[\w\-%()',]+)*|[{}.;,/*+|^()]|[^\s{}.;,/*+|^()]+"""
)
_WIKIDATA = re.compile(
    r"^http://www\.wikidata\.org/(?:entity|prop/(?:direct|statement)|prop)/([QP]\d+)$"
)
_TYPES = frozenset({"P31", "=type", "a"})
_DEFAULTS = {
    "wd": "http://www.wikidata.org/entity/",
    "wdt": "http://www.wikidata.org/prop/direct/",
    "p": "http://www.wikidata.org/prop/",
    "ps": "http://www.wikidata.org/prop/statement/",
    "pq": "http://www.wikidata.org/prop/qualifier/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "dbo": "http://dbpedia.org/ontology/",
    "dbp": "http://dbpedia.org/property/",
    "dbr": "http://dbpedia.org/resource/",
    "res": "http://dbpedia.org/resource/",
}


def read_shape(sparql: str) -> Shape:
    """Read a query into a shape.

    Raises:
        UnfitQueryError: The query counts, filters, orders, branches or has another shape.
    """
    prefixes = {**_DEFAULTS, **dict(_PREFIX.findall(sparql))}
    text = _LABEL_SERVICE.sub(" ", _PREFIX.sub(" ", sparql))
    for reason, pattern in _UNFIT:
        if re.search(pattern, text, re.IGNORECASE):
            raise UnfitQueryError(reason)
    match = re.search(
        r"SELECT\s+(?:DISTINCT\s+)?[?$](\w+)\s*(?:WHERE\s*)?\{(.*)\}[^}]*$",
        text,
        re.IGNORECASE | re.DOTALL,
    )
    if match is None or "{" in match[2]:
        raise UnfitQueryError("not one variable of one pattern group")
    answer = f"?{match[1]}"
    patterns = _joined_statements(_patterns(_TOKEN.findall(match[2]), prefixes))
    kept = [p for p in patterns if not (p.property in _TYPES and not p.value.startswith("?"))]
    return Shape(_base(answer, kept), answer, tuple(kept))


def _patterns(tokens: list[str], prefixes: dict[str, str]) -> list[Pattern]:
    found: list[Pattern] = []
    place = 0
    subject = verb = ""
    state = "subject"
    fresh = 0
    while place < len(tokens):
        token = tokens[place]
        if token in (".", ";", ","):
            state = {".": "subject", ";": "verb", ",": "value"}[token]
            place += 1
            continue
        if state == "subject":
            subject, state = _term(token, prefixes), "verb"
        elif state == "verb":
            steps = [token]
            while place + 1 < len(tokens) and tokens[place + 1] == "/":
                if place + 2 >= len(tokens):
                    raise UnfitQueryError("property path")
                steps.append(tokens[place + 2])
                place += 2
            if place + 1 < len(tokens) and tokens[place + 1] in ("*", "+"):
                if _property(steps[0], prefixes) not in _TYPES:
                    raise UnfitQueryError("property path")
                steps, place = steps[:1], place + 1
            if any(step in ("^", "|", "(", ")", "*", "+") for step in steps):
                raise UnfitQueryError("property path")
            if len(steps) > 1 and _property(steps[0], prefixes) in _TYPES:
                steps = steps[:1]
            for step in steps[:-1]:
                fresh += 1
                middle = f"?_{fresh}"
                found.append(Pattern(subject, _property(step, prefixes), middle))
                subject = middle
            verb, state = _property(steps[-1], prefixes), "value"
        else:
            found.append(Pattern(subject, verb, _term(token, prefixes)))
            state = "end"
        place += 1
    return found


def _expand(token: str, prefixes: dict[str, str]) -> str:
    if token.startswith("<"):
        return token[1:-1]
    prefix, colon, local = token.partition(":")
    if not colon or prefix not in prefixes:
        raise UnfitQueryError("unknown prefix or literal")
    return prefixes[prefix] + local


def _term(token: str, prefixes: dict[str, str]) -> str:
    if token[0] in "?$":
        return f"?{token[1:]}"
    if token[0] in "\"'" or token[0].isdigit():
        raise UnfitQueryError("literal")
    iri = _expand(token, prefixes)
    known = _WIKIDATA.match(iri)
    return known[1] if known else f"={_words(iri)}"


def _property(token: str, prefixes: dict[str, str]) -> str:
    if token == "a":
        return "a"
    if token[0] in "?$":
        raise UnfitQueryError("variable property")
    iri = _expand(token, prefixes)
    if iri.startswith("http://www.wikidata.org/prop/qualifier/"):
        raise UnfitQueryError("qualifier")
    known = _WIKIDATA.match(iri)
    if known:
        kind = iri.rsplit("/", 2)[-2]
        return f"{kind}:{known[1]}" if kind in ("prop", "statement") else known[1]
    local = re.split(r"[/#]", iri)[-1]
    return "=" + re.sub(r"(?<=[a-z])(?=[A-Z])", " ", local).replace("_", " ").lower()


def _words(iri: str) -> str:
    from urllib.parse import unquote

    return unquote(re.split(r"[/#]", iri)[-1]).replace("_", " ")


def _joined_statements(patterns: list[Pattern]) -> list[Pattern]:
    """Join ``?s p:P39 ?statement . ?statement ps:P39 ?o`` into one hop (App. B on CVT nodes)."""
    into = {p.value: p for p in patterns if p.property.startswith("prop:")}
    joined = []
    for pattern in patterns:
        if pattern.property.startswith("statement:"):
            first = into.get(pattern.subject)
            if first is None or first.property.split(":")[1] != pattern.property.split(":")[1]:
                raise UnfitQueryError("qualifier")
            joined.append(Pattern(first.subject, pattern.property.split(":")[1], pattern.value))
        elif not pattern.property.startswith("prop:"):
            joined.append(pattern)
    used = {p.subject for p in patterns if p.property.startswith("statement:")}
    if set(into) - used:
        raise UnfitQueryError("qualifier")
    return joined


def _base(answer: str, patterns: list[Pattern]) -> str:
    """Which shape the patterns have: at most two hops, at most two named entities."""
    ends = [{p.subject, p.value} for p in patterns]
    named = [sum(not term.startswith("?") for term in pair) for pair in ends]
    if len(patterns) == 1 and answer in ends[0] and named[0] == 1:
        return "single"
    if len(patterns) == 2:
        if all(answer in pair for pair in ends) and named == [1, 1]:
            return "tree"
        middle = ends[0] & ends[1]
        if sorted(named) == [0, 1] and len(middle) == 1 and answer in ends[0] ^ ends[1]:
            return "path"
    raise UnfitQueryError("other shape" if patterns else "class only")
