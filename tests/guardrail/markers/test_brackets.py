"""One marker: found, read and written."""

import pytest

from guardrail import Triple
from guardrail.core.types import Citation
from guardrail.markers.brackets import (
    KnownFacts,
    bracket_pairs,
    open_bracket,
    read_bracket,
    write_bracket,
)


def texts(text):
    return [text[start:end] for start, end in bracket_pairs(text)]


def test_brackets_pair_on_their_line_alone():
    assert texts("a [b [c] d] e") == ["[b [c] d]", "[c]"]
    assert texts("a [b\nc] d") == []
    assert texts(r"a \[b\] [c]") == ["[c]"]
    assert texts("[" * 9 + "]" * 9) == ["[[[[]]]]", "[[[]]]", "[[]]", "[]"]


def test_the_first_bracket_that_stays_open():
    assert open_bracket("a [b [c] d") == 2
    assert open_bracket("a [b] c") is None
    assert open_bracket("a [b\nc") is None


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("NA", ([], True)),
        ("n/a", ([], True)),
        ("Q1, a: b", ([("Q1", "a", "b")], False)),
        ("Q1, a: b, c; Q2, d: e", ([("Q1", "a", "b, c"), ("Q2", "d", "e")], False)),
        ("Q1", ([("Q1", "", "")], False)),
        ("sic", None),
        ("1", None),
        ("Q1, a: [Q2, b: c", None),
        ("0: ", None),
        ("id: ", None),
        ("qid: Q1, a: b", ([("Q1", "a", "b")], False)),
        (r"id\: x: Q1", None),
        ("Q1, a: b, id: Q2, c: d", ([("Q1", "a", "b"), ("Q2", "c", "d")], False)),
        (r"Q1, a: b, id\: Q2, c: d", ([("Q1", "a", "b, id: Q2"), ("Q1", "c", "d")], False)),
        ("Otto, age: 7, id: 5", ([("Otto", "age", "7"), ("Otto", "id", "5")], False)),
        (r"Q1, id\: x: y", ([("Q1", "id: x", "y")], False)),
    ],
)
def test_what_a_bracket_says(content, read):
    found = read_bracket(content, None)
    if read is None:
        assert found is None
    else:
        citations, na = found
        assert [(c.entity, c.property, c.value) for c in citations] == read[0]
        assert na is read[1]


def test_known_facts_split_what_could_be_read_in_two_ways():
    known = KnownFacts([Triple(subject="Ada", property="motto", value="x, age: 3")])
    [one], _ = read_bracket("Ada, motto: x, age: 3", known)
    assert one.value == "x, age: 3"
    two, _ = read_bracket("Q1, motto: x, age: 3", None)
    assert [c.value for c in two] == ["x", "3"]


def test_a_known_fact_of_a_property_named_id_is_no_entity():
    known = KnownFacts([Triple("Otto", "qid", "Q5"), Triple("Ada", "age", "3")])
    [one], _ = read_bracket("Otto, qid: Q5", known)
    assert (one.entity, one.property, one.value) == ("Otto", "qid", "Q5")
    _, two = read_bracket("Otto, qid: Q5, id: Ada, age: 3", known)[0]
    assert (two.entity, two.property, two.value) == ("Ada", "age", "3")


def test_what_is_written_is_read_back():
    citations = [Citation(entity="Q1", property="a", value="b, c: d"),
                 Citation(entity="Q1", property="e", value="f]\ng")]  # fmt: skip
    written = write_bracket(citations)
    assert "\n" not in written
    assert read_bracket(written[1:-1], None) == (citations, False)
    assert write_bracket([], na=True) == "[NA]"
    assert write_bracket([]) == ""
