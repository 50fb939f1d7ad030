"""What counts as writing: letters in other signs do, pictures and flags do not."""

import pytest

from guardrail.core.text.sentences import split_sentences
from guardrail.core.text.words import hides_letters, is_writing


@pytest.mark.parametrize("sign", [*"aé東١①ⓐ🅰🇦⠇\ue041\U000e0800\u0378"])
def test_letters_and_figures_in_any_signs_are_writing(sign: str) -> None:
    assert is_writing(sign)
    assert len(split_sentences(sign * 3)) == 1


@pytest.mark.parametrize("sign", [*" .-€°→★🎉⭐💌🔠\U0001fae8\u2800\u200d"])
def test_pictures_and_symbols_are_none(sign: str) -> None:
    assert not is_writing(sign)
    assert split_sentences(f"{sign} {sign}") == []


@pytest.mark.parametrize("text", ["Zoë in 東京 🎉", "🇫🇷 🇩🇪", "x² ≤ ∑xᵢ·𝑥, ½ of Ⅷ", "⠀⠀"])
def test_letters_as_such_hide_nothing(text: str) -> None:
    assert not hides_letters(text)


@pytest.mark.parametrize("text", ["⠏⠁⠗⠊⠎", "Ⓟaris", "🇵🇦🇷🇮🇸", "\ue041"])
def test_letters_in_other_signs_are_hidden(text: str) -> None:
    assert hides_letters(text)
