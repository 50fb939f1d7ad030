"""A guarded answer as text for a host: the markers in one of three styles, citations placed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

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
from guardrail.markers.grammar import Marker, render_marker
from guardrail.markers.rendering import markers_of


class PlacedCitation(NamedTuple):
    """A citation, and the span of the returned text that it supports.

    ``evidence`` is None if the answer does not hold it; ``note`` is the number of its note.
    """

    start: int
    end: int
    citation: Citation
    title: str
    url: str | None
    evidence: Evidence | None = None
    note: int | None = None

    @property
    def key(self) -> object:
        """Equal for citations that share one note: pieces of one page do, whatever their ids."""
        item = self.evidence
        return (self.title, item.url or item.id) if isinstance(item, Passage) else self.citation

    @property
    def line(self) -> str:
        """Its note: title, or else what it says, and the page unless that is the id of a node."""
        item, title = self.evidence, self.title
        if isinstance(item, Passage) and not (item.title or item.id):
            title = " ".join(self.citation.value.split())
        node = isinstance(item, Triple) and item.subject_id == self.url
        return f"{title} ({self.url})" if self.url and not node else title


class Rendering(NamedTuple):
    """Text for the host and the citations that belong to it."""

    text: str
    citations: tuple[PlacedCitation, ...]


class Notes:
    """Numbered notes of one answer, in the order in which they are first cited."""

    def __init__(self) -> None:
        self._notes: dict[object, tuple[int, str]] = {}

    def number(self, cited: PlacedCitation) -> int:
        """The number of a note, a new one if it has none yet."""
        return self._notes.setdefault(cited.key, (len(self._notes) + 1, cited.line))[0]

    def known(self, cited: PlacedCitation) -> int | None:
        """The number of a note that has one."""
        return self._notes[cited.key][0] if cited.key in self._notes else None

    def text(self) -> str:
        """The list of notes after the answer; empty if there are none."""
        lines = [f"[{number}] {line}" for number, line in self._notes.values()]
        return "\n\n" + "  \n".join(lines) if lines else ""  # Markdown keeps these line breaks


def render(answer: GuardedAnswer, style: MarkerStyle) -> Rendering:
    """Render a whole answer with its list of notes; in a dry run, as the model wrote it."""
    if answer.dry_run:
        return Rendering(answer.text if answer.original is None else answer.original, ())
    notes = Notes()
    rendered = render_sentences(answer, answer.sentences, style, notes)
    return rendered._replace(text=rendered.text + notes.text())


def render_sentences(
    answer: GuardedAnswer,
    sentences: Sequence[Sentence],
    style: MarkerStyle,
    notes: Notes,
    start: int = 0,
    end: int | None = None,
) -> Rendering:
    """Render the part of an answer between two offsets, with the markers of some sentences.

    ``notes`` has the numbers given so far; new ones are added.
    """
    evidence = _Evidence(answer)
    at_end = style is MarkerStyle.FOOTNOTES
    markers = [mark for sentence in sentences for mark in markers_of(sentence, at_end=at_end)]
    pieces: list[str] = []
    shifts: list[tuple[int, int]] = []
    position, length = start, 0
    for marker in sorted(markers, key=lambda marker: marker.at):
        written = _write(marker, style, evidence, notes)
        pieces += [answer.text[position : marker.at], f" {written}" if written else ""]
        position = max(position, marker.at)
        length += len(pieces[-2]) + len(pieces[-1])
        shifts.append((marker.at, length - marker.at))
    pieces.append(answer.text[position:end])
    placed: dict[object, PlacedCitation] = {}
    for sentence in sentences:
        spans = {
            span.triple.citation: span
            for span in sentence.spans
            if span.kind in (SpanKind.SUPPORTED, SpanKind.CORRECTED) and span.triple is not None
        }
        for citation in sentence.citations:
            found, span = evidence.cited(citation), spans.get(citation, sentence)
            first = _move(span.start, shifts, -start)
            last = _move(span.end, shifts, -start, closing=True)
            # Several sentences of one passage are one citation to a reader.
            key = (first, last, found.key)
            note = notes.known(found)
            placed.setdefault(key, found._replace(start=first, end=last, note=note))
    return Rendering("".join(pieces), tuple(placed.values()))


def _move(
    offset: int, shifts: Sequence[tuple[int, int]], shift: int, *, closing: bool = False
) -> int:
    """The rendered position of an offset in the clean text; an end stays before its own marker."""
    for at, moved in shifts:
        if at > offset or (at == offset and closing):
            break
        shift = moved
    return max(0, offset + shift)


def details(answer: GuardedAnswer, *, reasons: bool = True) -> dict[str, object]:
    """The ``guardrail`` field of a host's message: decision, sentences and scores, as JSON.

    The reasons of a decision quote the answer. If the policy removed text or refused the answer,
    they come without the quoted text; the score log holds them whole. Without ``reasons``, such an
    answer carries neither them nor the original of a correction.
    """
    fields = answer.model_dump(
        mode="json", include={"id", "action", "sentences", "scorecard", "errors", "timings_ms"}
    )
    # Scores also depend on sentences that may have been removed.
    for score in (fields["scorecard"]["overall"], *fields["scorecard"]["scores"].values()):
        score.pop("evidence")
    fields["marked"] = answer.marked
    fields["evidence"] = {"from": list(answer.evidence_from), "count": len(answer.evidence)}
    if answer.action in (Action.PASS, Action.ANNOTATE) or answer.dry_run:
        fields["reasons"] = list(answer.reasons)
    elif answer.action in (Action.REFUSE, Action.FILTER, Action.CORRECT) and reasons:
        fields["reasons"] = safe_reasons(answer)
    if answer.would is not None:
        fields |= {"would": answer.would.value, "would_block": answer.would_block}
    for sentence in () if reasons else fields["sentences"]:
        if sentence["correction"]:  # that there was one is still reported
            sentence["correction"]["original"] = ""
        for span in sentence["spans"]:
            span["instead_of"] = None
    return fields


def safe_reasons(answer: GuardedAnswer) -> list[str]:
    """The reasons of a decision, without what they quote of the answer."""
    # From the first quotation mark to the last, since the quoted text may hold some.
    return list(dict.fromkeys(re.sub(r'(?s)".*"', "…", reason) for reason in answer.reasons))


def cited(citation: PlacedCitation) -> dict[str, object]:
    """What a host gets in addition to its own fields: the triple, or the passage's id."""
    if isinstance(citation.evidence, Passage):
        passage = {"id": citation.evidence.id, "title": citation.evidence.title}
        return {"passage": passage} | ({"note": citation.note} if citation.note else {})
    return {"triple": citation.citation.model_dump()}


class _Evidence:
    """Finds the evidence of an answer by its citations."""

    def __init__(self, answer: GuardedAnswer) -> None:
        self._triples: dict[Citation, Triple] = {}
        self._passages: dict[str, list[Passage]] = {}
        for place, item in enumerate(answer.evidence, start=1):
            if isinstance(item, Triple):
                self._triples.setdefault(item.citation, item)
            else:
                name = item.id or item.title or f"passage {place}"
                self._passages.setdefault(name, []).append(item)
        self._entities = {link.entity.id: link.entity for link in answer.entities}

    def cited(self, citation: Citation) -> PlacedCitation:
        """A citation, still to be placed, with its evidence if the answer holds that."""
        passage = self.passage(citation)
        if passage is not None:
            title = passage.title or passage.id or citation.entity
            return PlacedCitation(0, 0, citation, title, passage.url, passage)
        entity = self._entities.get(citation.entity)
        title = f"{self._name(citation)}, {citation.property}: {citation.value}"
        page = entity.url if entity else None
        return PlacedCitation(0, 0, citation, title, page, self._triples.get(citation))

    def readable(self, citation: Citation) -> Citation:
        """A citation for readers: the label in place of an IRI, which is for machines."""
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", citation.entity):
            return citation
        return citation.model_copy(update={"entity": self._name(citation)})

    def _name(self, citation: Citation) -> str:
        triple, entity = self._triples.get(citation), self._entities.get(citation.entity)
        return triple.subject if triple else entity.label if entity else citation.entity

    def passage(self, citation: Citation) -> Passage | None:
        """The cited passage; of several with one name, the one that holds the quotation."""
        if citation.property != "passage":
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
