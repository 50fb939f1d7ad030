"""Statements put to the judge with values as the sentence writes them."""

import pytest

from guardrail.evidence.statements import statements_of
from guardrail.evidence.wording import in_wording_of
from guardrail.text.values import find_values
from guardrail.types import Passage, Triple


@pytest.mark.parametrize(
    ("sentence", "evidence", "expected"),
    [
        (
            "It is open from 7 am to 9 pm.",
            Passage("The pool is open from 7:00 to 21:00."),
            "The pool is open from 7 am to 9 pm.",
        ),
        (
            "Ada was born on 10 December 1815.",
            Triple("Ada", "date of birth", "1815-12-10"),
            "Ada, date of birth: 10 December 1815.",
        ),
        ("It goes 110 km.", Triple("Fjell 3", "range km", "110"), "Fjell 3, range km: 110 km."),
        ("Ada was born in 1815.", Triple("Ada", "born", "1815-12-10"), "Ada, born: 1815-12-10."),
        ("It may take 3 cm.", Passage("It takes 20–30 mm."), "It takes 20-30 mm."),
        ("It costs £248.", Passage("It costs £249."), "It costs £249."),
    ],
    ids=["times", "a date", "the unit of a label", "told more roughly", "a range", "another value"],
)
def test_values_stand_as_in_the_sentence_where_they_are_the_same(sentence, evidence, expected):
    (statement,) = statements_of([evidence])
    found = in_wording_of(find_values(sentence), statement)
    assert found.replace("–", "-") == expected
