"""Which sentences of an answer claim anything."""

import pytest

from guardrail.core.types import Triple
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import ParsedText, parse
from guardrail.verdict.claims import GroundingRequest, claims_of

NOTHING = prepare([])


def test_headings_and_headers_of_tables_claim_nothing() -> None:
    text = (
        "## Plans\n\n| Plan | 2024 |\n|:---|---:|\n| Basic | 9 EUR |\n\n"
        "**Main facts:**\n\na | b\n--|--\nc | d\n"
    )
    claims = claims_of(GroundingRequest("", ParsedText(clean=text, marked=text), NOTHING))
    assert {claim.written: claim.prose for claim in claims} == {
        "Plans": False,
        "| Plan | 2024 |": False,
        "| Basic | 9 EUR |": True,
        "**Main facts:**": False,
        "a | b": False,
        "c | d": True,
    }


def test_a_bare_yes_is_read_beside_its_question() -> None:
    question = "Does the Fjell 3 have a warranty of five years?"
    answers = ("It does.", "The Fjell 3 has a warranty of five years.")
    asked = [
        claims_of(GroundingRequest(question, parse(answer), NOTHING))[0].asked for answer in answers
    ]
    assert asked == [question, ""]


@pytest.mark.parametrize(
    ("answer", "question", "proposition"),
    [
        ("Yes.", "Is the Fjell 3 waterproof?", "The Fjell 3 is waterproof."),
        ("No, it is not.", "Is the Fjell 3 waterproof?", "The Fjell 3 is waterproof."),
        ("No.", "Hello! Can I pay by card?", "I can pay by card."),
        ("False", "True or false: ships sink.", "Ships sink."),
        ("Yes, until Friday.", "Is the desk open?", None),
        ("Yes.", "When is the desk open?", None),
        ("Yes.", "", None),
    ],
)
def test_a_bare_answer_asserts_the_proposition_of_the_question(answer, question, proposition):
    evidence = prepare([Triple("Fjell 3", "waterproof", "yes")])
    [claim] = claims_of(GroundingRequest(question, parse(answer), evidence))
    assert (claim.text if claim.answers else None) == proposition
    assert claim.place.text == answer
