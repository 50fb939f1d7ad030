"""What is told for a text in another language."""

import pytest

from guardrail.text.english import in_english


@pytest.mark.parametrize(
    "text",
    [
        "You're welcome! Let me know if you need anything else.",
        "- Born: 10 December 1815\n- Father: Lord Byron\n- Mother: Anne Isabella Byron",
        "| Field | Value |\n| Born | 10 December 1815 |\n| Father | Lord Byron | Mother | Anne |",
        "Yes, ships free within two working days, usually arrives sooner, no extra cost.",
        "red, green, blue, black, white, orange, purple, brown, yellow, pink, grey, cyan",
        "Add flour, eggs, milk, sugar, butter; mix well, bake twenty minutes, serve warm.",
        "Try restarting, clearing cookies, updating drivers, reinstalling, then call support.",
        "Die casting makes metal parts; see Van der Berg and De la Cruz on cost per piece.",
        "She was a mathematician, known for computing machines, analytical engines and poetry.",
    ],
)
def test_english_and_lists_of_names_pass(text: str) -> None:
    assert in_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "Geboren wurde sie in London und sie starb in Marylebone, wo sie auch begraben liegt.",
        "Да, доставка бесплатна, если вы заказали больше двух велосипедов.",
        "保修期为五年，但电池的保修期只有两年，请在冰点以上的温度下充电。",
        "El precio es de dos mil euros y la garantía del cuadro es de cinco años.",
        "Ada Lovelace est née à Londres et elle est morte à Marylebone en 1852.",
    ],
)
def test_other_languages_are_told(text: str) -> None:
    assert not in_english(text)
