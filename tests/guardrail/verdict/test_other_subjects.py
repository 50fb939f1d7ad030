"""Facts about one subject support no sentence about another, however sure the judge is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from guardrail import Guardrail, GuardrailConfig, Triple
from guardrail.core.text.words import content_stems
from guardrail.core.types import Grounding, StatementScore, Verdict
from judges.base import GroundingItem
from tests.guardrail.scripted import Ready

FACTS = """
Kestrel | removes | malware
Kestrel | developed by | Marlow Soft
Kestrel Cleaner | removes | temporary files left by Kestrel
Marlow Soft | founded | 2009
Ines Varga | is | director of Open Rivers
Ines Varga | accepted an award for | Open Rivers
Open Rivers | is | coalition of fishing clubs
Open Rivers | founded in | 2011
Lake Orra | outflow | River Telt
River Telt | mouth | Bay of Sund
Anna Lund | spouse | Per Holm
Anna Lund | occupation | painter
Per Holm | occupation | cellist
"""
EVIDENCE = [Triple(*line.split(" | ")) for line in FACTS.strip().splitlines()]


class Values(Ready):
    """Supports every sentence by all statements whose value it contains."""

    name = "values-1"

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        return [
            Grounding(
                supported=0.95,
                unsupported=0.03,
                contradicted=0.02,
                no_claim=0.0,
                statements=tuple(
                    StatementScore(
                        carries=0.95 if _value(text) <= content_stems(item.sentence) else 0.01,
                        conflicts=0.0,
                    )
                    for text in item.statements
                ),
            )
            for item in items
        ]


def _value(statement: str) -> frozenset[str]:
    return content_stems(statement.partition(": ")[2])


@pytest.fixture(scope="module")
def guard() -> Iterator[Guardrail]:
    config = GuardrailConfig(graph={"location": "none"})
    with Guardrail(config, grounding=Values()) as made:
        yield made


@pytest.mark.parametrize(
    "sentence",
    [
        "Kestrel Cleaner removes malware.",  # a longer name, and a value that only mentions it
        "Kestrel was founded in 2009.",  # of its developer
        "Ines Varga is a coalition of fishing clubs.",
        "The is of Ines Varga is a coalition of fishing clubs.",
        "Ines Varga was founded in 2011.",
        "Anna Lund works as a cellist.",
    ],
)
def test_a_fact_about_another_subject_supports_nothing(guard: Guardrail, sentence: str) -> None:
    [found] = guard.check("", sentence, evidence=EVIDENCE).sentences
    assert found.verdict is not Verdict.SUPPORTED


@pytest.mark.parametrize(
    "sentence",
    [
        "Kestrel removes malware.",
        "Ines Varga is the director of a coalition of fishing clubs.",
        "Lake Orra has an outflow that ends in the Bay of Sund.",
        "Anna Lund has a spouse who is a cellist.",
    ],
)
def test_a_relation_that_the_sentence_names_leads_to_facts(guard: Guardrail, sentence: str) -> None:
    [found] = guard.check("", sentence, evidence=EVIDENCE).sentences
    assert found.verdict is Verdict.SUPPORTED
