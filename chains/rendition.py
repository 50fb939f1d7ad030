"""A guarded answer as text for a host: the markers in one of three styles, citations placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import quote

from guardrail import marked_text
from guardrail.markers.grammar import parse, render_marker
from guardrail.types import Action, Citation, GuardedAnswer, LinkedEntity, Sentence, SpanKind

__all__ = ["MarkerStyle", "PlacedCitation", "Rendition", "details", "render", "render_sentences"]


class MarkerStyle(StrEnum):
    """How citations stand in the text that a host receives.

    ``kalma``: ``[Q212657, place of birth: Rome]`` and ``[NA]``; ``footnotes``: ``[1]`` and
    ``[NA]``, the facts listed at the end; ``none``: clean text, citations in the host's own
    fields only.
    """

    KALMA = "kalma"
    FOOTNOTES = "footnotes"
    NONE = "none"


class PlacedCitation(NamedTuple):
    """A citation with the stretch of the returned text that it supports."""

    start: int
    end: int
    citation: Citation
    title: str
    url: str


class Rendition(NamedTuple):
    """Text for the host and the citations that belong to it."""

    text: str
    citations: tuple[PlacedCitation, ...]


def render(answer: GuardedAnswer, style: MarkerStyle) -> Rendition:
    """Render a whole answer, with its list of footnotes where the style asks for one."""
    footnotes: dict[Citation, int] = {}
    rendition = render_sentences(
        answer.text, answer.sentences, answer.entities, style, footnotes=footnotes
    )
    return rendition._replace(text=rendition.text + footnote_list(footnotes))


def render_sentences(
    text: str,
    sentences: Sequence[Sentence],
    entities: Sequence[LinkedEntity],
    style: MarkerStyle,
    *,
    footnotes: dict[Citation, int],
) -> Rendition:
    """Render a stretch of an answer.

    Args:
        text: The clean stretch; the sentences' offsets index it.
        sentences: The sentences in it.
        entities: Linked entities, for the pages that citations point to.
        style: How markers look.
        footnotes: Numbers given so far; new ones are added.
    """
    marked = marked_text(text, sentences)
    # Only markers that the guardrail wrote are re-styled: the text itself may hold brackets.
    known = [span.triple for s in sentences for span in s.spans if span.triple is not None]
    parsed = parse(marked, known)
    pieces: list[str] = []
    shifts: list[tuple[int, int]] = []
    position = length = 0
    for marker in parsed.markers:
        chunk = parsed.clean[position : marker.at]
        written = _write(marker.citations, marker.na, style, footnotes)
        written = marker.lead + written + marker.trail if written else ""
        pieces += [chunk, written]
        length += len(chunk) + len(written)
        shifts.append((marker.at, length - marker.at))
        position = marker.at
    pieces.append(parsed.clean[position:])
    return Rendition("".join(pieces), _place(sentences, entities, shifts))


def footnote_list(footnotes: Mapping[Citation, int], *, above: int = 0) -> str:
    """The list of facts that footnote numbers beyond ``above`` stand for, or nothing."""
    lines = [
        f"[{number}] {citation.entity}, {citation.property}: {citation.value}"
        for citation, number in footnotes.items()
        if number > above
    ]
    return "\n\n" + "\n".join(lines) if lines else ""


def details(answer: GuardedAnswer) -> dict[str, Any]:
    """The ``guardrail`` field of a host's message: decision, sentences and scores, as JSON.

    The reasons of a decision quote what they are about. Where the policy removed text, they
    would carry it to the reader after all, so they stay in the score log.
    """
    kept = answer.model_dump(
        mode="json", include={"id", "action", "sentences", "scorecard", "errors", "timings_ms"}
    )
    # Scores rest on sentences that may have been removed, too.
    for score in (kept["scorecard"]["overall"], *kept["scorecard"]["scores"].values()):
        score.pop("evidence")
    kept["marked"] = answer.marked
    if answer.action in (Action.PASS, Action.ANNOTATE):
        kept["reasons"] = list(answer.reasons)
    return kept


def _write(
    citations: Sequence[Citation], na: bool, style: MarkerStyle, footnotes: dict[Citation, int]
) -> str:
    if style is MarkerStyle.NONE:
        return ""
    if style is MarkerStyle.KALMA:
        return render_marker(citations, na=na)
    numbers = [footnotes.setdefault(citation, len(footnotes) + 1) for citation in citations]
    return "".join(f"[{number}]" for number in numbers) + ("[NA]" if na else "")


def _place(
    sentences: Sequence[Sentence],
    entities: Sequence[LinkedEntity],
    shifts: Sequence[tuple[int, int]],
) -> tuple[PlacedCitation, ...]:
    pages = {link.entity.id: link.entity.url for link in entities}
    placed = []
    for sentence in sentences:
        supported = {
            span.triple.citation: span
            for span in sentence.spans
            if span.kind is SpanKind.SUPPORTED and span.triple is not None
        }
        for citation in sentence.citations:
            span = supported.get(citation)
            start, end = (span.start, span.end) if span else (sentence.start, sentence.end)
            placed.append(
                PlacedCitation(
                    start=_moved(start, shifts),
                    end=_moved(end, shifts, closing=True),
                    citation=citation,
                    title=f"{citation.entity}, {citation.property}: {citation.value}",
                    url=pages.get(citation.entity)
                    or f"urn:kg-guardrail:{quote(citation.entity, safe='')}",
                )
            )
    return tuple(placed)


def _moved(offset: int, shifts: Sequence[tuple[int, int]], *, closing: bool = False) -> int:
    """Where a clean offset lies in the rendered text; an end stays before its own marker."""
    shift = 0
    for at, moved in shifts:
        if at < offset or (at == offset and not closing):
            shift = moved
        else:
            break
    return offset + shift
