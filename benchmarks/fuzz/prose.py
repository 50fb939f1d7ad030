"""Targets that read prose: answers, evidence, documents, replies of models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import pairwise

from benchmarks.fuzz.inputs import ANY_TEXT, Target, almost, repeated
from guardrail.core.documents.markdown import Page, sections_of
from guardrail.core.text.sentences import laid_out
from guardrail.core.text.values import find_values
from guardrail.core.types import Entity, Subgraph, Triple
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import parse
from guardrail.models.base import Completion, SampleRequest
from guardrail.models.generation import generate
from guardrail.verdict.claims import GroundingRequest, claims_of
from judges.sck import structure

__all__ = ["PROSE"]

SIGNS = (" ", "\t", "\n", "#", "|", "-", ".", "0", "a", "[", "*", "_", ">")
"""Signs that runs are made of."""
UNITS = (
    "The depot holds 12 seeds. ", "a | b. ", "# a\n", "- a\n", "1. a\n", "| a | b |\n", "|-|-|\n",
    "a | b\n-|-\nc | d\n", "```\n", "```a\n", "\n\n", "\n \n", "**a** ", "a: ", "5 May ", "1-1 ",
    "10:30 ", "1,000 ", "1.1", "+1 ", "[Q1, a: b]", "(a) ", "' ", "a@", "v1.",
)  # fmt: skip
"""What prose, lists and tables are made of."""
BEGINNINGS = ("a | b\n", "# a", "```\n", "5 May", "May 5")
"""What a run may go on from."""
PROSE_TEXTS = (
    "# Storage\n\nThe desk is **open** daily. Bring:\n\n- a photo ID\n- 5 km\n\n```\ncode\n```\n",
    "| Plan | Price |\n|:--|--:|\n| Basic | 12 |\n\n1. One.\n2. Two [Q1, price: 12].\n",
    "It opened on 5 May 2019 at 10:30 and holds 1,000 seeds of v1.2.3, between 5 and 6 km.",
)
TRIPLES = (Triple("Depot", "holds", "12 seeds"),)
KNOWN = Subgraph(entity=Entity(id="Q1", label="Depot"), triples=TRIPLES)


def hostile(size: int) -> Mapping[str, str]:
    """Texts of about so many characters: runs of signs, lines of many sentences, wide tables."""
    half = size // 2
    return {
        **repeated((*SIGNS, *UNITS), size, end="x"),
        **{f"{a} {b!r}": f"{a}{b * size}x" for a in BEGINNINGS for b in SIGNS[:8]},
        **{f"{b!r} {a!r}": b * half + a * half + "x" for a, b in pairwise(SIGNS)},
        "a line of sentences": "The depot is open. " * (size // 19),
        "a row of sentences": f"a | b\n-|-\n{'The depot is open. | ' * (size // 21)}",
        "a wide table": f"{'a|' * (size // 6)}\n{'-|' * (size // 6)}\n{'b|' * (size // 6)}",
        "a long label": f"{'a|' * (size // 8)}\n-|-\n{'a' * half}|{'b|' * (size // 8)}",
        "a long column": f"a|{'b' * half}\n-|-\n" + "a|c\n" * (size // 8),
    }


def _claims(text: str) -> None:
    claims_of(GroundingRequest("How many?", parse(text, TRIPLES), prepare(TRIPLES)))


def _sections(text: str) -> None:
    for section in sections_of([Page(text, 1), Page(text, 2)]):
        assert section.text.strip()


class _Model:
    """A model that replies with one text, whole or cut off.

    Args:
        text: The text.
    """

    name = "fixed"

    def __init__(self, text: str) -> None:
        self._text = text

    def warm_up(self) -> None:
        """Load nothing."""

    def close(self) -> None:
        """Release nothing."""

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """The text, once as a whole answer and once as one that ran into its limit."""
        return [Completion(text=self._text, finish_reason=why) for why in ("stop", "length")]


def _reply(text: str) -> None:
    asyncio.run(generate("How many seeds does the depot hold?", [KNOWN], _Model(text), n=2))


def _target(run: Callable[[str], object]) -> Target:
    return Target(ANY_TEXT | almost(PROSE_TEXTS, (*SIGNS, *UNITS)), run, hostile)  # type: ignore[arg-type]


PROSE: dict[str, Target] = {
    "layout": _target(lambda text: list(laid_out(text))),
    "claims": _target(_claims),
    "sections": _target(_sections),
    "values": _target(find_values),
    "sck layout": _target(structure.detect),
    "model replies": _target(_reply),
}
"""By name."""
