"""What a sentence cites bears on it; a wrong citation is worse than none."""

import pytest

from guardrail.core.types import Evidence, Passage, Triple
from guardrail.evidence.prepared import prepare
from guardrail.evidence.statements import statements_of
from guardrail.markers.grammar import ParsedText
from guardrail.verdict.citations import bears_on
from guardrail.verdict.claims import GroundingRequest, claims_of

SENTENCE = "The Germination Test costs forty-eight euros and includes a certificate."


@pytest.mark.parametrize(
    ("evidence", "bears"),
    [
        (Triple("Germination Test", "price (EUR)", "48"), True),
        (Triple("Germination Test", "certificate", "yes"), True),
        (Triple("Germination Test", "duration (days)", "14"), False),
        (Triple("Germination Test", "laboratory", "Fern House"), False),
        (Passage("Every certificate is sent by post."), True),
        (Passage("Samples are kept in a cold room."), False),
    ],
)
def test_a_statement_bears_on_a_sentence_by_words_of_its_own(evidence: Evidence, bears: bool):
    (claim,) = claims_of(
        GroundingRequest("", ParsedText(clean=SENTENCE, marked=SENTENCE), prepare([]))
    )
    (statement,) = statements_of([evidence])
    assert bears_on(claim, statement) is bears


@pytest.mark.parametrize(
    ("said", "held", "bears"),
    [
        ("Sivland Kayaks employs nine people.", "Sivland Kayaks was founded in 2009.", False),
        ("Sivland Kayaks founded a school.", "Sivland Kayaks was founded in 2009.", True),
        ("Sivland Kayaks is led by Marit Ekdal.", "Sivland Kayaks was Marit Ekdal's idea.", True),
        ("Marit Ekdal leads Sivland Kayaks.", "Sivland Kayaks was founded in 2009.", True),
    ],
)
def test_the_name_that_both_tell_of_bears_on_nothing(said: str, held: str, bears: bool):
    (claim,) = claims_of(GroundingRequest("", ParsedText(clean=said, marked=said), prepare([])))
    (statement,) = statements_of([Passage(held)])
    assert bears_on(claim, statement) is bears
