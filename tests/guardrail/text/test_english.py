"""What is told for a text in another language."""

import pytest

from guardrail.text.english import in_english


@pytest.mark.parametrize(
    "text",
    [
        "You're welcome! Let me know if you need anything else.",
        "- Born: 10 December 1815\n- Father: Lord Byron\n- Mother: Anne Isabella Byron",
        "| Field | Value |\n| Born | 10 December 1815 |\n| Father | Lord Byron | Mother | Anne |",
        "She was a mathematician, known for computing machines, analytical engines and poetry.",
    ],
)
def test_english_and_lists_of_names_pass(text: str) -> None:
    assert in_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "Geboren wurde sie in London und sie starb in Marylebone, wo sie auch begraben liegt.",
        "Ada Lovelace est née à Londres et elle est morte à Marylebone en 1852.",
    ],
)
def test_other_languages_are_told(text: str) -> None:
    assert not in_english(text)
