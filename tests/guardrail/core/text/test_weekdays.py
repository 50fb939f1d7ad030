"""Days of the week of a text."""

import pytest

from guardrail.core.text.weekdays import find_days


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on Saturday", [{5}]),
        ("Mon-Fri hours", [{0, 1, 2, 3, 4}]),
        ("Mon–Thu and Sat", [{0, 1, 2, 3, 5}]),
        ("Friday to Monday", [{4, 5, 6, 0}]),
        ("on weekdays, and at 9 on Sundays", [{0, 1, 2, 3, 4}, {6}]),
        ("at the weekend", [{5, 6}]),
        ("Tue, Thu, Fri", [{1, 3, 4}]),
        ("daily", [set(range(7))]),
        ("the sun sat low", []),
        ("a month", []),
    ],
)
def test_days_of_a_text(text: str, days: list[set[int]]) -> None:
    assert [set(item.days) for item in find_days(text)] == days
