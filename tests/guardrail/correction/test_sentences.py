"""Contradicted sentences with the smaller shipped judge: what is mended, and what is left alone."""

import pytest

from guardrail import STRICT_CORRECT, Action, Guardrail, GuardrailConfig, Passage, Triple
from guardrail.core.types import SpanKind
from guardrail.log.records import open_log

FJELL = (Triple("Fjell 3", "price", "2,490 euros"), Triple("Fjell 3", "gears", "6"))
ADA = (
    Triple("Ada Lovelace", "place of birth", "London"),
    Triple("Ada Lovelace", "date of birth", "1815-12-10"),
)
BAKSO = (
    Triple("Bakso", "country", "Indonesia"),
    Triple("Bakso", "main ingredient", "Celery"),
)
BOAT = (
    Triple("Alba", "USB ports", "no"),
    Triple("Alba", "own lift", "no"),
    Triple("Alba", "waterproof", "no"),
    Triple("Alba", "parking lot", "no"),
    Triple("Alba", "heated seats", "no"),
)
EAGLE = (
    Triple("The Eagle", "eatType", "coffee shop"),
    Triple("The Eagle", "food", "English"),
    Triple("The Eagle", "priceRange", "high"),
    Triple("The Eagle", "customer rating", "average"),
    Triple("The Eagle", "familyFriendly", "yes"),
    Triple("The Eagle", "near", "Burger King"),
)
TEOW = (
    Triple("Beef kway teow", "INGREDIENT", "Oyster sauce"),
    Triple("Beef kway teow", "REGION", "Indonesia"),
    Triple("Beef kway teow", "COUNTRY", "Singapore and Indonesia"),
)
HOTEL = (
    Triple("Hotel", "swimming pool", "no"),
    Triple("Hotel", "sauna", "yes"),
    Triple("Hotel", "pets allowed", "yes"),
    Triple("Hotel", "airport shuttle", "no"),
)


@pytest.fixture(scope="module")
def guard():
    """The smaller judge alone: corrections are tested here, not what the pool makes of them."""
    with Guardrail(GuardrailConfig(judge="minilm")) as guard:
        yield guard


@pytest.mark.parametrize(
    ("evidence", "said", "expected"),
    [
        (FJELL, "The Fjell 3 costs 2,190 euros.", "The Fjell 3 costs 2,490 euros."),
        (FJELL, "The Fjell 3 has 5 gears.", "The Fjell 3 has 6 gears."),
        (ADA, "Ada Lovelace was born in Paris.", "Ada Lovelace was born in London."),
        (
            ADA,
            "Ada Lovelace was born in London on 12 December 1815.",
            "Ada Lovelace was born in London on 10 December 1815.",
        ),
        (
            (Triple("Louisiana 5", "INCUMBENT", "Riley Joseph Wilson"),),
            "Louisiana has S. William Green as the incumbent.",
            "Louisiana has Riley Joseph Wilson as the incumbent.",
        ),
        (
            (Triple("Bananaman", "STARRING", "Bill Oddie"),),
            "Scott Adsit stars in Bananaman.",
            "Bill Oddie stars in Bananaman.",
        ),
        (BOAT, "The Alba has heated seats.", "The Alba has no heated seats."),
        (BOAT, "The Alba has a parking lot.", "The Alba has no parking lot."),
        (HOTEL, "The hotel has a swimming pool.", "The hotel has no swimming pool."),
        (HOTEL, "The hotel has no sauna.", "The hotel has a sauna."),
        (HOTEL, "No, pets are not allowed.", "Yes, pets are allowed."),
        (
            HOTEL,
            "The hotel offers an airport shuttle.",
            "The hotel does not offer an airport shuttle.",
        ),
    ],
)
def test_the_words_that_conflict_are_exchanged(guard, evidence, said, expected):
    answer = guard.check("", said, evidence=evidence, policy=STRICT_CORRECT)
    assert (answer.text, answer.action) == (expected, Action.CORRECT)
    (sentence,) = answer.sentences
    assert sentence.correction.original == said
    assert sentence.citations
    assert answer.marked.count("[corrected]") == 1


def test_what_was_right_from_the_start_ranks_first_and_the_log_says_why(tmp_path):
    said = ["The Fjell 3 costs 2,190 euros.", "The Fjell 3 costs 2,490 euros."]
    with Guardrail(GuardrailConfig(log=tmp_path / "scores.sqlite")) as own:
        first, second = own.rank("", said, evidence=FJELL, policy=STRICT_CORRECT)
    assert (first.index, first.action) == (1, Action.PASS)
    assert (second.index, second.action) == (0, Action.CORRECT)
    with open_log(tmp_path / "scores.sqlite", read_only=True) as log:
        kept = {record.answer.index: record.answer.reasons for record in log.records()}
    assert kept == {1: first.reasons, 0: second.reasons}
    assert kept[1][0].startswith("rank 1 of 2: ")


def test_a_correction_is_told_with_its_fact_and_what_stood_there(guard):
    answer = guard.check(
        "", "The Fjell 3 costs 2,190 euros.", evidence=FJELL, policy="strict-correct"
    )
    (span,) = answer.sentences[0].spans
    assert (span.kind, span.text, span.instead_of) == (
        SpanKind.CORRECTED, "2,490 euros", "2,190 euros",
    )  # fmt: skip
    assert span.triple == FJELL[0]
    assert answer.text[span.start : span.end] == span.text
    assert answer.marked == (
        "The Fjell 3 costs 2,490 euros [Fjell 3, price: 2,490 euros] [corrected]."
    )
    assert answer.original == "The Fjell 3 costs 2,190 euros."
    assert answer.explain()[0].outcome == "corrected"
    assert "2,190" in answer.reasons[0]


def test_of_a_passage_the_value_of_the_same_thing_is_written(guard):
    text = "A bicycle can be sent back within 30 days of delivery if it was ridden under 50 km."
    answer = guard.check(
        "Can I send it back?",
        "A bicycle can be sent back within 60 days of delivery.",
        evidence=[Passage(text)],
        policy=STRICT_CORRECT,
    )
    assert answer.text == "A bicycle can be sent back within 30 days of delivery."
    assert answer.sentences[0].citations


def test_a_value_of_another_thing_in_prose_is_not_written(guard):
    """Both are told within days, of delivery; only one is what the sentence is about."""
    evidence = [
        Passage("Bicycles are delivered within 7 working days."),
        Passage("A purchase may be returned for 30 days."),
    ]
    said = "You can send it back within 60 days of delivery."
    answer = guard.check("Can I send it back?", said, evidence=evidence, policy=STRICT_CORRECT)
    assert "7 days" not in answer.text
    assert not [item for item in answer.judged if item.correction]


def test_the_name_of_the_subject_alone_does_not_tell_which_value_is_meant(guard):
    text = "At its deepest Lake Sorvane has 330 m of water. It lies at 1,450 m above the sea."
    said = "Lake Sorvane lies at an elevation of 1540 m."
    evidence = [Passage(text, title="Lake Sorvane")]
    answer = guard.check("", said, evidence=evidence, policy=STRICT_CORRECT)
    assert "330 m" not in answer.text


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        # Of two children the sentence may mean either.
        (
            (Triple("Mary", "child", "Percy"), Triple("Mary", "child", "Clara")),
            "The child of Mary was William.",
        ),
        # Whom a sentence is about is not exchanged, though the number in its name differs.
        ((Triple("Fjell 3", "gears", "6"),), "The Fjell 3 has 6 gears."),
        # Another spelling of a name is no contradiction to mend.
        (
            (Triple("Belgium", "leader", "Philippe of Belgium"),),
            "The leader of Belgium is Phillipe of Belgium.",
        ),
        # A piece of a longer name, and names of countries, are left alone.
        (BAKSO, "Bakso comes from Indonesia, and Brown sauce is its main ingredient."),
        (TEOW, "Beef kway teow is a dish found in Ethiopia."),
        # To deny these takes more than a word.
        (BOAT, "The Alba has two USB ports."),
        (BOAT, "The Alba has its own lift."),
        (BOAT, "The Alba has always been waterproof."),
        (BOAT, "The Alba has a parking lot, which is free."),
    ],
)
def test_what_is_not_sure_is_not_exchanged(guard, evidence, said):
    answer = guard.check("", said, evidence=evidence, policy=STRICT_CORRECT)
    assert not [item for item in answer.judged if item.correction]


def test_what_is_british_may_be_english(guard):
    said = "The Eagle is located just below the river, near Ranch."
    true = "It serves high priced British food."
    answer = guard.check("", f"{said} {true}", evidence=EAGLE, policy=STRICT_CORRECT)
    assert "English" not in answer.text
    assert answer.text.startswith("The Eagle is located just below the river, near Burger King.")


def test_what_else_lacks_support_keeps_a_sentence_from_being_released(guard):
    said = "The Fjell 3 costs 2,190 euros and was voted bicycle of the year in Norway."
    answer = guard.check("", f"{said} It has 6 gears.", evidence=FJELL, policy=STRICT_CORRECT)
    assert "2,490" not in answer.text
    assert not [item for item in answer.judged if item.correction]
