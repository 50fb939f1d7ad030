"""What a sentence denies or leaves open is not cited; a plain denial of a fact contradicts it."""

import pytest

from guardrail.denials import Stance, stance
from guardrail.phrases import parse
from guardrail.types import Category, SpanKind, Triple
from tests.guardrail.test_attribution import ARTEMISIA, ORAZIO, Credulous, attribute, cited

BIRTH, SPOUSE, JOB = "place of birth", "spouse", "occupation"


@pytest.mark.parametrize(
    ("text", "label", "word", "said"),
    [
        ("It is false that Anna was born in Rome.", BIRTH, "Rome", Stance.DENIED),
        ("It is not true that Anna was born in Rome.", BIRTH, "Rome", Stance.DENIED),
        ("It is a myth that Anna was born in Rome.", BIRTH, "Rome", Stance.DENIED),
        ("It is not a myth that Anna was born in Rome.", BIRTH, "Rome", Stance.STATED),
        ("The claim that Anna was born in Rome is wrong.", BIRTH, "Rome", Stance.DENIED),
        ("Anna was wrongly said to have been born in Rome.", BIRTH, "Rome", Stance.DENIED),
        ("Neither Anna nor Bruno was born in Rome.", BIRTH, "Rome", Stance.DENIED),
        ("Nobody in her family was born in Rome.", BIRTH, "Rome", Stance.DENIED),
        ("Anna was neither a singer nor a painter.", JOB, "painter", Stance.DENIED),
        ("Anna was neither a singer nor a painter.", JOB, "singer", Stance.DENIED),
        ("Anna was born in Pisa, not in Rome.", BIRTH, "Rome", Stance.DENIED),
        ("Anna was born in Pisa, not Rome.", BIRTH, "Rome", Stance.DENIED),
        ("Anna was born in Pisa, not in Rome.", BIRTH, "Pisa", Stance.STATED),
        ("Anna was not born in Pisa but in Rome.", BIRTH, "Rome", Stance.STATED),
        ("Anna was not born in Pisa but in Rome.", BIRTH, "Pisa", Stance.DENIED),
        ("Anna has never been married to Bruno.", SPOUSE, "Bruno", Stance.DENIED),
        ("Anna died in Rome without having married Bruno.", SPOUSE, "Bruno", Stance.DENIED),
        ("Anna did not die of cancer.", "cause of death", "cancer", Stance.DENIED),
        ("Anna denied being born in Rome.", BIRTH, "Rome", Stance.OPEN),
        ("Anna rejected the claim that she was born in Rome.", BIRTH, "Rome", Stance.OPEN),
        ("Anna never denied that she was born in Rome.", BIRTH, "Rome", Stance.STATED),
        ("There is no evidence that Anna was born in Rome.", BIRTH, "Rome", Stance.OPEN),
        ("There is no doubt that Anna was born in Rome.", BIRTH, "Rome", Stance.STATED),
        ("Nobody doubts that Anna was born in Rome.", BIRTH, "Rome", Stance.STATED),
        ("It is unclear whether Anna was born in Rome.", BIRTH, "Rome", Stance.OPEN),
        ("No one believes that Anna was born in Rome.", BIRTH, "Rome", Stance.OPEN),
        ("If Anna was born in Rome, she was Italian.", BIRTH, "Rome", Stance.OPEN),
        ("If you look for a pub, try the Anchor.", "eat type", "pub", Stance.STATED),
        ("Anna failed to marry Bruno.", SPOUSE, "Bruno", Stance.OPEN),
        ("Anna declined the Turner Prize.", "award received", "Prize", Stance.OPEN),
        ("Anna was nominated for the Turner Prize.", "award received", "Prize", Stance.OPEN),
        ("Anna was nominated for the Turner Prize.", "nominated for", "Prize", Stance.STATED),
        ("Anna was considered for the Turner Prize.", "award received", "Prize", Stance.OPEN),
        ("Anna was considered a painter.", JOB, "painter", Stance.STATED),
        ("Anna wanted to become a painter.", JOB, "painter", Stance.OPEN),
        ("Anna hoped to marry Bruno.", SPOUSE, "Bruno", Stance.OPEN),
        ("Anna was mistaken for a painter.", JOB, "painter", Stance.OPEN),
        ("Anna dreamt of being born in Rome.", BIRTH, "Rome", Stance.OPEN),
        ("Anna almost died in Rome.", "place of death", "Rome", Stance.OPEN),
        ("Anna died in Rome almost alone.", "place of death", "Rome", Stance.STATED),
        ("Anna, who wanted children, was a painter.", JOB, "painter", Stance.STATED),
        ("Anna wanted to sing and was born in Rome.", BIRTH, "Rome", Stance.STATED),
        ("Anna failed to mention that she was born in Rome.", BIRTH, "Rome", Stance.STATED),
        ("Anna died without knowing that Bruno was a painter.", JOB, "painter", Stance.STATED),
        ("Contrary to belief, Anna was born in Rome.", BIRTH, "Rome", Stance.STATED),
        ("Contrary to the claim that Anna was born in Rome, she was born in Pisa.",
         BIRTH, "Rome", Stance.DENIED),
        ("Born in Rome, Anna never married.", BIRTH, "Rome", Stance.STATED),
        ("Anna, who was never married, was a painter.", JOB, "painter", Stance.STATED),
    ],
)  # fmt: skip
def test_the_clauses_round_a_value_state_deny_or_leave_it_open(
    text: str, label: str, word: str, said: Stance
) -> None:
    (doc,) = parse([text])
    assert stance(next(one for one in doc if one.text == word), label) is said


@pytest.mark.parametrize(
    ("text", "contradicted"),
    [
        ("It is false that Artemisia Gentileschi was born in Rome.", True),
        ("Artemisia Gentileschi was not born in Rome.", True),
        ("Neither Artemisia Gentileschi nor Orazio Gentileschi was born in Rome.", False),
        ("Artemisia Gentileschi was never the daughter of Orazio Gentileschi.", True),
        ("Artemisia Gentileschi denied being born in Rome.", False),
        ("It is unclear whether Artemisia Gentileschi was born in Rome.", False),
        ("Artemisia Gentileschi was not born in Rome in 1599 by her own account.", False),
    ],
)
def test_a_denied_fact_is_contradicted_where_nothing_else_may_be_denied(
    text: str, contradicted: bool
) -> None:
    (one,) = attribute(text, judge=Credulous()).sentences
    assert cited(one) == set()
    assert (one.category is Category.CONTRADICTORY) is contradicted
    found = {s.triple.value for s in one.spans if s.kind is SpanKind.CONTRADICTED and s.triple}
    assert bool(found & {"Rome", ORAZIO}) is contradicted


def test_a_denial_of_another_value_contradicts_nothing() -> None:
    triples = (Triple(subject=ARTEMISIA, property=BIRTH, value="Rome"),)
    (one,) = attribute("Artemisia Gentileschi was not born in Pisa.", triples).sentences
    assert one.category is Category.IRRELEVANT
