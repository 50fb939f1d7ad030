"""Whom pronouns and descriptions stand for, and that nobody is guessed where it is open."""

import pytest

from guardrail.types import SpanKind, Triple
from tests.guardrail.test_attribution import ARTEMISIA, ORAZIO, Contrary, Credulous, attribute
from tests.guardrail.test_stated import told

CLARA, TASSI = "Clara Peeters", "Agostino Tassi"
WOMEN = (
    (ARTEMISIA, "sex or gender", "female"),
    (ARTEMISIA, "place of birth", "Rome"),
    (ARTEMISIA, "father", ORAZIO),
    (CLARA, "sex or gender", "female"),
    (CLARA, "place of birth", "Antwerp"),
    (ORAZIO, "sex or gender", "male"),
    (ORAZIO, "child", ARTEMISIA),
    (ORAZIO, "place of birth", "Pisa"),
)
FATHER, CHILD, PISA = WOMEN[2], WOMEN[6], WOMEN[7]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (f"{ARTEMISIA} painted. {CLARA} painted too. She was born in Antwerp.", WOMEN[4]),
        (f"{CLARA} painted. {ARTEMISIA} and {ORAZIO} painted too. She was born in Rome.", WOMEN[1]),
        (f"{CLARA} painted. {ARTEMISIA} met {ORAZIO}. He was born in Pisa. She was born in Rome.",
         WOMEN[1]),
        (f"{ARTEMISIA} painted. {CLARA} met {ORAZIO}. He died. She was born in Antwerp.", WOMEN[4]),
    ],
)  # fmt: skip
def test_a_pronoun_stands_for_the_last_fitting_subject(
    text: str, fact: tuple[str, str, str]
) -> None:
    assert fact in told(text, *WOMEN)
    place = "Rome" if fact[2] == "Antwerp" else "Antwerp"
    assert told(text.replace(f"in {fact[2]}.", f"in {place}."), *WOMEN) == set()


@pytest.mark.parametrize(
    "before",
    [
        f"{ARTEMISIA} and {CLARA} painted.",
        f"{ARTEMISIA} painted. Judith Leyster painted too.",
    ],
)
def test_an_open_pronoun_contradicts_nobody_and_is_no_man(before: str) -> None:
    triples = tuple(Triple(subject=s, property=p, value=v) for s, p, v in WOMEN)
    last = attribute(f"{before} She was born in Haarlem.", triples, Contrary()).sentences[-1]
    assert not any(span.kind is SpanKind.CONTRADICTED for span in last.spans)
    assert told(f"{before} She was born in Pisa.", *WOMEN) == set()


@pytest.mark.parametrize(
    "text",
    [
        "Her father was born in Pisa.",
        "Artemisia Gentileschi's father was born in Pisa.",
        "The father of Artemisia Gentileschi was born in Pisa.",
    ],
)
def test_what_is_said_of_her_father_is_said_of_him(text: str) -> None:
    assert told(f"Artemisia Gentileschi painted. {text}", *WOMEN) == {FATHER, PISA}


@pytest.mark.parametrize(
    "text",
    [
        "Her mother was born in Pisa.",
        "Her father was born in Rome.",
        "Her first husband was born in Pisa.",
        f"Her father, {TASSI}, was born in Pisa.",
        f"Her father was {TASSI}, who was born in Pisa.",
    ],
)
def test_no_other_relation_is_taken_for_him(text: str) -> None:
    assert told(f"Artemisia Gentileschi painted. {text}", *WOMEN) == set()


def test_a_pronoun_beside_a_named_subject_stands_for_the_one_before() -> None:
    text = "Artemisia Gentileschi painted. Orazio Gentileschi was her {}."
    assert told(text.format("father"), *WOMEN) == {FATHER, CHILD}
    assert told(text.format("uncle"), *WOMEN) == set()
    assert told(text.format("son"), *WOMEN) == set()


def test_the_topic_is_followed_past_a_relation() -> None:
    triples = tuple(Triple(subject=s, property=p, value=v) for s, p, v in WOMEN)
    text = f"{ARTEMISIA} painted. {ORAZIO} was her father. She was born in Rome."
    last = attribute(text, triples, Credulous()).sentences[-1]
    assert [one.value for one in last.citations] == ["Rome"]
