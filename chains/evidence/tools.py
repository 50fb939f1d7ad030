"""Results of tools as evidence: the newest ones, up to a number of characters and cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import NamedTuple

from chains.evidence.base import EvidenceSettings, Found, Source
from chains.evidence.objects import Limit, facts_of, pieces_of
from guardrail.core.incoming import cut_text
from guardrail.core.types import Evidence, Passage, Problem, Triple
from guardrail.core.workers import stop_if_given_up
from guardrail.evidence.retrieval import MOST_CHARS, too_long
from guardrail.sources.tables import MOST_CELLS

MOST_RESULT_CHARS = 100_000
"""Characters of all tool results of one request; a longer text is cut."""


class ToolResult(NamedTuple):
    """The result of one tool call: text or data, and documents that come with it, read once."""

    content: object
    tool: str | None = None
    documents: Iterable[Evidence] = ()


def evidence_of_tools(results: Sequence[ToolResult], settings: EvidenceSettings) -> Found:
    """Read the 16 newest results of tools, up to ``MOST_RESULT_CHARS`` characters.

    Texts and documents become passages, rows and other objects facts. A text that is too long is
    cut after a paragraph, a line or a sentence; what was not read is reported as a problem.
    """
    if not settings.tools:
        return Found()
    found: list[Evidence] = []
    room, cut, left_out = MOST_RESULT_CHARS, 0, 0
    shortest = Triple(subject="s", property="", value="v")
    limit = Limit(min(MOST_CELLS, room // len(shortest.text) + 1))
    newest = results[:-17:-1]  # 16 of them, from the last on
    read = pieces_of([(result.content, result.tool) for result in newest])
    items = chain.from_iterable(
        chain(result.documents, *(facts_of(piece, limit) for piece in pieces))
        for result, pieces in zip(newest, read, strict=True)
    )
    for item in islice(items, MOST_CELLS):
        stop_if_given_up()
        fitting = _within(item, room)
        if fitting is None:
            left_out += 1
            continue
        cut += fitting is not item
        room -= len(fitting.text)
        found.append(fitting)
    rest = " and everything after them" if next(items, None) is not None else ""
    left_out += limit.left_out
    problems = []
    if cut or left_out or rest:
        problems.append(
            f"tools returned more than the limit of {MOST_RESULT_CHARS:,} characters, or "
            f"names of more than {MOST_CHARS:,}; texts that were cut: {cut}, texts and facts left "
            f"out: {left_out}{rest}; let the tools return less"
        )
    if len(results) > len(newest):
        problems.append(
            f"of {len(results)} tool results the newest {len(newest)} were read; send fewer"
        )
    return Found.of(Source.TOOLS, found or None)._replace(
        problems=tuple(Problem(part="evidence", message=message) for message in problems)
    )


def _within(item: Evidence, room: int) -> Evidence | None:
    """The item, or as much of its text as there is room for; None for nothing."""
    if too_long(item):  # not the caller's fault: the tool may return anybody's text
        return None
    if len(item.text) <= room:
        return item
    text = cut_text(item.text, room) if isinstance(item, Passage) else ""
    return item.model_copy(update={"text": text}) if text else None
