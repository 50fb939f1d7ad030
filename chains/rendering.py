"""A guarded answer as text for a host: the markers in one of three styles, citations placed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from chains.options import MarkerStyle
from guardrail.core.types import (
    Action,
    Citation,
    Evidence,
    GuardedAnswer,
    Passage,
    Sentence,
    SpanKind,
    Triple,
)
from guardrail.markers.grammar import Marker, insert, render_marker
from guardrail.markers.rendering import markers_of

__all__ = [
    "MarkerStyle",
    "Notes",
    "PlacedCitation",
    "Rendition",
    "cited",
    "details",
    "render",
    "render_sentences",
    "safe_reasons",
]

PASSAGE = "passage"
"""The property that a citation of a passage has in place of a triple's."""

QUOTED = re.compile(r'".*"', re.DOTALL)
"""What a reason quotes: from the first quotation mark to the last, since the text may hold some."""

IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
"""An identifier of a graph without short ones: for machines, and no name to show to a reader."""


HARD_BREAK = "  \n"
"""A line break that pages which read Markdown keep."""


class PlacedCitation(NamedTuple):
    """A citation with the stretch of the returned text that it supports.

    Attributes:
        start: Offset of the stretch in the returned text.
        end: Offset past it.
        citation: As written in a marker.
        title: What is cited, for a person to read.
        url: Page to open; None where there is none.
        evidence: What is cited; None where the answer does not hold it.
        note: Number of its note in the text; None where it has none.
    """

    start: int
    end: int
    citation: Citation
    title: str
    url: str | None
    evidence: Evidence | None = None
    note: int | None = None


class Rendition(NamedTuple):
    """Text for the host and the citations that belong to it."""

    text: str
    citations: tuple[PlacedCitation, ...]


class _Cited(NamedTuple):
    """What a citation stands for: its title and page, and the key that tells notes apart."""

    key: object
    title: str
    url: str | None
    evidence: Evidence | None

    @property
    def line(self) -> str:
        """Its note, as a reader sees it: with the page, unless that is the id of a node alone."""
        node = isinstance(self.evidence, Triple) and self.evidence.subject_id == self.url
        return f"{self.title} ({self.url})" if self.url and not node else self.title


class Notes:
    """Numbered notes of one answer, in the order in which they are first cited."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._lines: list[str] = []

    def number(self, cited: _Cited) -> int:
        """The number of a note, a new one where it has none yet."""
        if cited.key not in self._numbers:
            self._numbers[cited.key] = len(self._lines) + 1
            self._lines.append(cited.line)
        return self._numbers[cited.key]

    def known(self, cited: _Cited) -> int | None:
        """The number of a note that has one."""
        return self._numbers.get(cited.key)

    def text(self) -> str:
        """The list of notes, to stand behind the answer; nothing where there are none."""
        lines = [f"[{number}] {line}" for number, line in enumerate(self._lines, start=1)]
        return "\n\n" + HARD_BREAK.join(lines) if lines else ""


def render(answer: GuardedAnswer, style: MarkerStyle) -> Rendition:
    """Render a whole answer, with its list of notes; one of a dry run as the model wrote it."""
    if answer.dry_run:
        return Rendition(answer.text if answer.original is None else answer.original, ())
    notes = Notes()
    rendition = render_sentences(answer.text, answer.sentences, answer, style, notes=notes)
    return rendition._replace(text=rendition.text + notes.text())


def render_sentences(
    text: str,
    sentences: Sequence[Sentence],
    answer: GuardedAnswer,
    style: MarkerStyle,
    *,
    notes: Notes,
) -> Rendition:
    """Render a stretch of an answer.

    Args:
        text: The clean stretch; the sentences' offsets index it.
        sentences: The sentences in it.
        answer: Whose evidence and entities the citations stand for.
        style: How markers look.
        notes: Numbers given so far; new ones are added.
    """
    cited = _Evidence(answer)
    # Markers are set, never read back: the text itself may hold brackets.
    markers = insert(
        text, [item for sentence in sentences for item in markers_of(sentence)]
    ).markers
    pieces: list[str] = []
    shifts: list[tuple[int, int]] = []
    position = length = 0
    for marker in markers:
        chunk = text[position : marker.at]
        written = _write(marker, style, cited, notes)
        written = marker.lead + written + marker.trail if written else ""
        pieces += [chunk, written]
        length += len(chunk) + len(written)
        shifts.append((marker.at, length - marker.at))
        position = marker.at
    pieces.append(text[position:])
    return Rendition("".join(pieces), _place(sentences, cited, notes, shifts))


def details(answer: GuardedAnswer, *, reasons: bool = True) -> dict[str, object]:
    """The ``guardrail`` field of a host's message: decision, sentences and scores, as JSON.

    The reasons of a decision quote what they are about. Where the policy removed text or refused
    the answer, they would carry it to the reader after all, so they come without what they quote
    of it; the score log holds them whole.

    Args:
        answer: The guarded answer.
        reasons: Whether reasons come with a refusal and with an answer whose text was removed
            or corrected, and what stood where something was corrected.
    """
    kept = answer.model_dump(
        mode="json",
        include={"id", "action", "sentences", "scorecard", "errors", "timings_ms"},
    )
    # Scores also depend on sentences that may have been removed.
    for score in (kept["scorecard"]["overall"], *kept["scorecard"]["scores"].values()):
        score.pop("evidence")
    kept["marked"] = answer.marked
    kept["evidence"] = {"from": list(answer.evidence_from), "count": len(answer.evidence)}
    if answer.action in (Action.PASS, Action.ANNOTATE) or answer.dry_run:
        kept["reasons"] = list(answer.reasons)
    elif answer.action in (Action.REFUSE, Action.FILTER, Action.CORRECT) and reasons:
        kept["reasons"] = safe_reasons(answer)
    if answer.would is not None:
        kept |= {"would": answer.would.value, "would_block": answer.would_block}
    if not reasons:
        _without_originals(kept["sentences"])
    return kept


def cited(citation: PlacedCitation) -> dict[str, object]:
    """What a host gets in addition to its own fields: the triple, or the passage's id."""
    if isinstance(citation.evidence, Passage):
        passage = {"id": citation.evidence.id, "title": citation.evidence.title}
        return {"passage": passage} | ({"note": citation.note} if citation.note else {})
    return {"triple": citation.citation.model_dump()}


def _without_originals(sentences: Sequence[dict[str, Any]]) -> None:
    """Leave out the original of a correction, but report that something was corrected."""
    for sentence in sentences:
        if sentence["correction"]:
            sentence["correction"]["original"] = ""
        for span in sentence["spans"]:
            span["instead_of"] = None


def safe_reasons(answer: GuardedAnswer) -> list[str]:
    """Why an answer was decided on, without what the reasons quote of it."""
    return list(dict.fromkeys(QUOTED.sub("…", reason) for reason in answer.reasons))


class _Evidence:
    """Finds what a citation stands for among an answer's evidence."""

    def __init__(self, answer: GuardedAnswer) -> None:
        self._triples: dict[Citation, Triple] = {}
        self._passages: dict[str, list[Passage]] = {}
        for place, item in enumerate(answer.evidence, start=1):
            if isinstance(item, Triple):
                self._triples.setdefault(item.citation, item)
            else:
                name = item.id or item.title or f"{PASSAGE} {place}"
                self._passages.setdefault(name, []).append(item)
        self._entities = {link.entity.id: link.entity for link in answer.entities}

    def cited(self, citation: Citation) -> _Cited:
        """What a citation stands for; by itself where the evidence does not hold it."""
        passage = self.passage(citation)
        if passage is not None:
            title = passage.title or passage.id or citation.entity
            # Pieces of one page are one note, whatever their ids.
            key = (title, passage.url or passage.id)
            return _Cited(key, title, passage.url, passage)
        entity = self._entities.get(citation.entity)
        title = f"{self._name(citation)}, {citation.property}: {citation.value}"
        page = entity.url if entity else None
        return _Cited(citation, title, page, self._triples.get(citation))

    def readable(self, citation: Citation) -> Citation:
        """A citation in a text that people read: the label in place of an IRI."""
        if not IRI.fullmatch(citation.entity):
            return citation
        return citation.model_copy(update={"entity": self._name(citation)})

    def _name(self, citation: Citation) -> str:
        triple, entity = self._triples.get(citation), self._entities.get(citation.entity)
        return triple.subject if triple else entity.label if entity else citation.entity

    def passage(self, citation: Citation) -> Passage | None:
        """The passage that a citation quotes: of several with one name the one that holds it."""
        if citation.property != PASSAGE:
            return None
        named = self._passages.get(citation.entity, [])
        quoted = citation.value.removesuffix("…").rstrip()
        return next(
            (item for item in named if quoted in " ".join(item.text.split())),
            named[0] if named else None,
        )


def _write(marker: Marker, style: MarkerStyle, evidence: _Evidence, notes: Notes) -> str:
    if style is MarkerStyle.NONE:
        return ""
    noted = [
        citation
        for citation in marker.citations
        if style is MarkerStyle.FOOTNOTES or evidence.passage(citation) is not None
    ]
    numbers = dict.fromkeys(notes.number(evidence.cited(item)) for item in noted)
    written = "".join(f"[{number}]" for number in numbers)
    rest = [citation for citation in marker.citations if citation not in noted]
    cited = [evidence.readable(item) for item in rest] if style is MarkerStyle.KALMA else []
    return written + render_marker(cited, na=marker.na, corrected=marker.corrected)


def _place(
    sentences: Sequence[Sentence],
    evidence: _Evidence,
    notes: Notes,
    shifts: Sequence[tuple[int, int]],
) -> tuple[PlacedCitation, ...]:
    placed: dict[tuple[int, int, object], PlacedCitation] = {}
    for sentence in sentences:
        supported = {
            span.triple.citation: span
            for span in sentence.spans
            if span.kind in (SpanKind.SUPPORTED, SpanKind.CORRECTED) and span.triple is not None
        }
        for citation in sentence.citations:
            span = supported.get(citation)
            start, end = (span.start, span.end) if span else (sentence.start, sentence.end)
            cited = evidence.cited(citation)
            placed_citation = PlacedCitation(
                start=_moved(start, shifts),
                end=_moved(end, shifts, closing=True),
                citation=citation,
                title=cited.title,
                url=cited.url,
                evidence=cited.evidence,
                note=notes.known(cited),
            )
            # Several sentences of one passage are one citation to a reader.
            placed.setdefault(
                (placed_citation.start, placed_citation.end, cited.key), placed_citation
            )
    return tuple(placed.values())


def _moved(offset: int, shifts: Sequence[tuple[int, int]], *, closing: bool = False) -> int:
    """Where a clean offset lies in the rendered text; an end stays before its own marker."""
    shift = 0
    for at, moved in shifts:
        if at < offset or (at == offset and not closing):
            shift = moved
        else:
            break
    return offset + shift
