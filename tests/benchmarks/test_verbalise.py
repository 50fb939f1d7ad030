from hypothesis import given
from hypothesis import strategies as st

from benchmarks.verbalise import (
    phrasing,
    predicate,
    questions,
    sentences,
    surface,
)
from guardrail.core.types import Triple

LABELS = st.text(
    st.characters(categories=("L", "Zs", "Nd"), include_characters="()/-'"), min_size=1
)
NAMES = st.text(st.characters(categories=("Lu", "Ll")), min_size=1, max_size=12)


def born(value: str) -> Triple:
    return Triple(subject="Ada Lovelace", property="place of birth", value=value)


def test_a_property_has_several_paraphrases() -> None:
    assert "Ada Lovelace was born in London." in sentences(born("London"))
    assert "London is the birthplace of Ada Lovelace." in sentences(born("London"))
    assert len(set(sentences(born("London")))) >= 4


def test_a_property_never_seen_reads_by_the_form_of_its_label() -> None:
    assert predicate("owned and run by", "Ada") == "was owned and run by Ada"
    assert predicate("vice president of", "Rome") == "is the vice president of Rome"
    assert predicate("has natural reservoir", "bats") == "has bats as natural reservoir"
    assert predicate("wheelbase", "2 metres") == "has 2 metres as wheelbase"
    assert predicate("resided in", "Rome") == "resided in Rome"
    assert questions("wheelbase", "Model T") == ("What is the wheelbase of Model T?",)
    assert not phrasing("wheelbase").known


@given(LABELS, NAMES, NAMES)
def test_every_sentence_of_any_property_names_subject_and_value(
    label: str, subject: str, value: str
) -> None:
    for text in sentences(Triple(subject=subject, property=label, value=value)):
        folded = text.casefold()
        assert subject.casefold() in folded
        assert value.casefold() in folded
        assert text.endswith((".", "?", "!"))


def test_a_first_of_january_is_a_year_and_years_below_zero_are_bc() -> None:
    assert surface("1889-01-01", 2) == "1889"
    assert surface("-0044-03-15", 0) == "15 March 44 BC"
    assert surface("-1216-01-01") == "1216 BC"


@given(st.text(), st.integers(min_value=0))
def test_surface_leaves_other_values_alone(value: str, form: int) -> None:
    if not any(c.isdigit() for c in value):
        assert surface(value, form) == value
