"""Values exchanged between the properties of one entity."""

from guardrail import Guardrail, GuardrailConfig
from guardrail.benchmarks.attribution import Statement
from guardrail.benchmarks.properties import exchanges, supported
from guardrail.types import Triple

FACTS = tuple(
    Triple(subject="Alan Shepard", property=label, value=value)
    for label, value in (
        ("BIRTH_PLACE", "New Hampshire"),
        ("DEATH_PLACE", "California"),
        ("MISSIONS", "2"),
        ("AWARD", "Medal of Freedom"),
        ("AWARD", "Langley Gold Medal"),
    )
)
STATEMENT = Statement(question="", text="unused", triples=FACTS)


def test_a_false_sentence_tells_the_value_of_another_property_of_the_same_kind() -> None:
    rows = exchanges([STATEMENT, STATEMENT])
    assert sorted(row.false for row in rows) == [
        "The birth place of Alan Shepard is California.",
        "The death place of Alan Shepard is New Hampshire.",
    ]
    for row in rows:
        assert row.told.value in row.true
        assert row.facts == FACTS
        assert set(row.without) == set(FACTS) - {row.told}


def test_of_persons_only_properties_with_one_value_are_told_in_prose() -> None:
    facts = tuple(
        Triple(subject="Anna Berg", property=label, value=value)
        for label, value in (
            ("place of birth", "Oslo"),
            ("residence", "Bergen"),
            ("occupation", "engineer"),
        )
    )
    (row,) = exchanges([Statement(question="", text="unused", triples=facts)], "people")
    assert (row.told.property, row.taken.property) == ("place of birth", "residence")
    assert "Bergen" in row.false
    assert "Oslo" not in row.false


def test_supportive_sentences_are_counted() -> None:
    guard = Guardrail(GuardrailConfig(judge="none"))
    rows = exchanges([STATEMENT])
    assert supported(guard, [(row.true, row.facts) for row in rows])[0] == len(rows)
    assert supported(guard, [(row.false, row.facts) for row in rows])[0] == 0
