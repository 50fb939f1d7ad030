from hypothesis import given
from hypothesis import strategies as st

from kg.verbalise import DATE_FORMS, surface


def test_full_dates_have_several_written_forms() -> None:
    forms = {surface("1756-01-27", form) for form in range(DATE_FORMS)}
    assert forms == {
        "27 January 1756",
        "January 27, 1756",
        "1756-01-27",
        "the 27th of January 1756",
    }
    assert surface("24 June 2009", 1) == "June 24, 2009"


def test_a_first_of_january_is_a_year_and_years_below_zero_are_bc() -> None:
    assert surface("1889-01-01", 2) == "1889"
    assert surface("-0044-03-15", 0) == "15 March 44 BC"
    assert surface("-1216-01-01") == "1216 BC"


@given(st.text(), st.integers(min_value=0))
def test_surface_leaves_other_values_alone(value: str, form: int) -> None:
    if not any(c.isdigit() for c in value):
        assert surface(value, form) == value
