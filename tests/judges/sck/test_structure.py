from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.sck.intents import Intent, agreement, seven
from judges.sck.language import read
from judges.sck.layout import Format, detect


@pytest.mark.parametrize(
    ("answer", "layout"),
    [
        ("Step 1: Open it.\nStep 2: Close it.", Format.STEP_LIST),
        ("**1.** Open it.\n   - with care\n**2.** Close it.", Format.STEP_LIST),
        ("1. Open it.\n3. Close it.\n2. Wait.", Format.BROKEN),
        ("- one\n2. two\n- three", Format.BROKEN),
        ("- red\n- green", Format.BULLET_LIST),
        ("- **Cats**: they purr.\n- **Dogs**: they bark.", Format.SIDE_BY_SIDE),
        ("| | cat | dog |\n|---|---|---|\n| sound | purr | bark |", Format.SIDE_BY_SIDE),
        ("Pros:\n- cheap\n\nCons:\n- loud", Format.POINT_COUNTERPOINT),
        ("Some people argue that it helps. Critics disagree.", Format.POINT_COUNTERPOINT),
        ("It is cheap.\n\nHowever, it is loud.", Format.POINT_COUNTERPOINT),
        ("It is cheap.\n\nIt is loud.", Format.PARAGRAPHS),
        ("It is cheap. It is loud. It is red.", Format.PARAGRAPH),
        ("In 1990 it rained. In 2000 as well.", Format.SENTENCES),
        ("```\nx = 1\n```", Format.CODE),
        ("  \n", Format.EMPTY),
    ],
)
def test_layouts(answer: str, layout: Format) -> None:
    assert detect(answer).format is layout


@given(st.text(max_size=300))
def test_any_text_has_a_layout(answer: str) -> None:
    assert detect(answer).format in Format


def test_tense_person_and_imperatives_are_read_off_the_words() -> None:
    past, future, imperative = read(
        [
            "I noticed that she left.",
            "You will see that it works.",
            "1. Open the box.\n2. Press the button.",
        ]
    )
    assert past.tenses == {"past": 2}
    assert past.persons == {"1st": 1, "3rd": 1}
    assert future.tenses == {"future": 1, "present": 1}
    assert imperative.persons == {"2nd": 2}


def test_agreement_is_one_for_equal_and_zero_for_disjoint_distributions() -> None:
    reason, debate = {Intent.REASON.value: 1.0}, {Intent.DEBATE.value: 1.0}
    assert agreement(reason, reason) == 1
    assert agreement(reason, debate) == 0
    assert agreement(seven({}), seven({})) == 1
