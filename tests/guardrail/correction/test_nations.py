"""Countries and peoples: which of them may be one, and how one is written in another's place."""

import pytest

from guardrail.correction.lists import names_listed
from guardrail.correction.nations import is_nation, may_be_one, nation_like


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("Singapore and Indonesia", ("Singapore", "Indonesia")),
        ("France, United States or China", ("France", "United States", "China")),
        ("Ada Ruiz / Ben Holt", ("Ada Ruiz", "Ben Holt")),
        ("Ada Ruiz, Ben Holt, and Cleo Vance", ("Ada Ruiz", "Ben Holt", "Cleo Vance")),
        ("Austin, Texas", ()),
        ("Anders Orlando", ()),
    ],
)
def test_a_value_may_list_names(value, names):
    assert names_listed(value) == names


@pytest.mark.parametrize(
    ("told", "value", "one"),
    [
        ("British", "English", True),
        ("English", "British", True),
        ("Britain", "England", True),
        ("Italy", "Italian", True),
        ("U.S.", "American", True),
        ("Scottish", "English", False),
        ("Scotland", "England", False),
        ("Croatian", "Serbian", False),
        ("Chinese", "English", False),
        ("Ethiopia", "Indonesia", False),
        ("Burger King", "Café Brazil", False),
        ("British", "Singapore and Indonesia", False),
    ],
)
def test_a_nation_may_be_a_part_of_another(told, value, one):
    assert may_be_one(told, value) is one


@pytest.mark.parametrize(
    ("told", "value", "written"),
    [
        ("Chinese", "Italy", "Italian"),
        ("Chinese", "French", "French"),
        ("China", "Italy", "Italy"),
        ("China", "Italian", None),
        ("Ethiopia", "Singapore and Indonesia", "Singapore and Indonesia"),
        ("Ethiopian", "Singapore and Indonesia", None),
        ("Burger King", "Italy", "Italy"),
    ],
)
def test_a_nation_is_written_as_another_is(told, value, written):
    assert nation_like(told, value) == written


def test_a_list_of_nations_is_told_as_one_is():
    assert is_nation("Singapore and Indonesia")
    assert not is_nation("Singapore and Burger King")
