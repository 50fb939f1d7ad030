from hypothesis import given
from hypothesis import strategies as st

from benchmarks.verbalise import sentences, surface
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
