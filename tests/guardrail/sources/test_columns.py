"""Numbers as spreadsheets write them."""

import pytest

from guardrail import Guardrail, Table
from guardrail.sources.columns import in_one_notation


@pytest.mark.parametrize(
    ("cells", "written"),
    [
        (["17,5", "15,2"], ["17.5", "15.2"]),
        (["2.490,00 €", "1.790,00 €"], ["2490.00 €", "1790.00 €"]),
        (["€2.490", "€17,50"], ["€2490", "€17.50"]),
        (["2 490", "1\u202f790"], ["2490", "1790"]),
        (["1.75E+01", "1.5e1"], ["17.5", "15"]),
        (["45%", "0.55"], ["45%", "55%"]),
        (["(250)", "300"], ["-250", "300"]),
        (["1'000", "2'500.50"], ["1000", "2500.50"]),
    ],
)
def test_a_column_of_numbers_gets_one_notation(cells: list[str], written: list[str]) -> None:
    assert in_one_notation(cells) == written


@pytest.mark.parametrize(
    "cells",
    [
        ["2,490", "1,790"],
        ["1,5", "1.5"],
        ["(2019)", "(2020)"],
        ["555 123 456", "111 222 333"],
        ["(250)", "see note"],
        ["2024-01-01", "10:30"],
        ["007", "1,234"],
    ],
)
def test_what_may_be_something_else_stays(cells: list[str]) -> None:
    assert in_one_notation(cells) == cells


def test_an_answer_is_judged_by_the_value_that_was_meant() -> None:
    bikes = [{"name": "Fjell 3", "weight_kg": "17,5"}, {"name": "Tarn", "weight_kg": "15,2"}]
    answer = Guardrail().check(
        "What do they weigh?",
        "The weight of the Fjell 3 is 17.5 kg. The weight of the Tarn is 152 kg.",
        evidence=Table(bikes, name="bikes"),
    )
    assert [str(sentence.category) for sentence in answer.sentences] == [
        "supportive",
        "contradictory",
    ]
