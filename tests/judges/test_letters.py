"""What a judge reads of signs that show letters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.letters import plain_letters
from judges.onnx import open_judge

MODEL = open_judge(threads=1)._model


ORDINARY = (
    "20 °C, 5 m², 10³, H₂O, 2½ hours, note¹, 3rd, 1º, 2ⁿ, xᵢ",
    "Zoë Gérard, Straße, Łódź, 東京, Москва, Ελλάδα, “so” – isn’t it… €5 → £6 ±2 ×3",
    "一 means one, α is a letter",
)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Ⓐⓓⓐ ⓦⓐⓢ ①⑧①⑤", "Ada was 1815"),
        ("🅰🅳🅰 🅐🅓🅐 🄰🄳🄰 ❶❽❶❺", "ADA ADA ADA 1815"),
        ("𝐀𝓭𝕒 𝟏𝟪𝟙𝟻", "Ada 1815"),
        ("Ａｄａ １８１５", "Ada 1815"),
        ("🇦🇩🇦 in the 🇬🇧", "ADA in the   "),
        ("① Open it", "  Open it"),
        ("⑫ Open it", "  Open it"),
        ("1\ufe0f\u20e3 Open it", "    Open it"),
        *((ordinary, ordinary) for ordinary in ORDINARY),
    ],
)
def test_letters_in_other_signs_are_read_as_letters(written: str, read: str) -> None:
    assert plain_letters(written) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("London🎉❤\ufe0f and ∑x 🎉", "London  \ufe0f and  x  "),
        ("A\u20ddda", "A\u200bda"),
        ("5→6 ★ €5 20°C", "5→6 ★ €5 20°C"),
        ("⠏⠁ \ue041", "⠏⠁ \ue041"),
    ],
)
def test_no_symbol_hides_the_word_that_it_touches(written: str, read: str) -> None:
    assert MODEL.readable(written) == read


@given(st.text(alphabet=st.sampled_from("aZ1 .\n①❼Ⓐ🅰ﬁ㎞²½ﷺ\u20dd\u200b🎉🇫⠇\ue041é°\ud800")))
def test_every_sign_stays_where_it_was(written: str) -> None:
    assert len(plain_letters(written)) == len(written)
    assert len(MODEL.readable(written)) == len(written)
