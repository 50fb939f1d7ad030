"""The layout of Markdown: what says something by itself, and what it stands under."""

import pytest

from guardrail.core.text.sentences import Piece, laid_out

HANDBOOK = """# Storage

**Opening**

The desk is open daily. It closes at 5 pm.

Bring:

- a photo ID,
- your card.

| Plan | Price (EUR) | Term |
|---|---|---|
| Basic | 12 | 1 year |
| **Plus** | 20 | |

1.
2. Shower first.
"""


def test_headings_labels_and_heads_are_context():
    assert list(laid_out(HANDBOOK)) == [
        Piece("The desk is open daily.", "Opening"),
        Piece("It closes at 5 pm.", "Opening"),
        Piece("Bring: a photo ID,", "Opening", label="Bring", is_item=True),
        Piece("Bring: your card.", "Opening", label="Bring", is_item=True),
        Piece("Basic, Price (EUR): 12.", "Opening", ("Basic", "Price (EUR)", "12")),
        Piece("Basic, Term: 1 year.", "Opening", ("Basic", "Term", "1 year")),
        Piece("Plus, Price (EUR): 20.", "Opening", ("Plus", "Price (EUR)", "20")),
        Piece("Shower first.", "Opening"),
    ]


@pytest.mark.parametrize(
    "text", ["", "3.", "## Fees", "**Storage**", "Bring:", "| a | b |\n|--|--|"]
)
def test_what_only_names_is_no_statement(text):
    assert list(laid_out(text)) == []


def test_a_bold_sentence_is_a_statement():
    assert [piece.text for piece in laid_out("**Dogs are welcome.**")] == ["**Dogs are welcome.**"]
