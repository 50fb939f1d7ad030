"""Heads of tables: which only name their columns, and which assert something in their place."""

from __future__ import annotations

from guardrail.core.text.layout import Line, cells_of
from guardrail.core.text.letters import hides_letters
from guardrail.core.text.quantities import Quantity
from guardrail.core.text.sentences import Stretch
from guardrail.core.text.tagging import parse
from guardrail.core.text.values import find_values

__all__ = ["is_bare", "measures", "names_columns"]

BARE_WORDS = 3
"""Most words of a heading, of a label above a list or of a column's name that only names."""

FINITE = frozenset({"MD", "VBD", "VBP", "VBZ"})
"""Tags of verbs that make a sentence of its words."""

SUBJECTS = frozenset({"expl", "nsubj", "nsubjpass"})
ASKING = frozenset({"WDT", "WP", "WP$", "WRB"})


def names_columns(line: Line, stretch: Stretch) -> bool:
    """Whether a sentence of a line is the head of a table with rows, whose cells assert nothing."""
    if not line.is_table_head(stretch) or not line.has_rows:
        return False
    cells = [cell for cell in cells_of(stretch.text) if not is_bare(cell)]
    return not (any(map(hides_letters, cells)) or _asserts(cells))


def measures(text: str) -> bool:
    """Whether an amount with its unit stands in a text, such as *range 777 km*."""
    values = (item.value for item in find_values(text))
    return any(isinstance(value, Quantity) and value.unit is not None for value in values)


def is_bare(text: str) -> bool:
    """Whether a heading, a label or a head is of hardly a word, in letters, and of no figures."""
    few = len(text.split()) <= BARE_WORDS
    return few and not (hides_letters(text) or any(sign.isdigit() for sign in text))


def _asserts(cells: list[str]) -> bool:
    """Whether one of some cells is a sentence: a subject and what is said of it.

    *Price per person per night* is none, nor are *Year in which it opened* and *Is it free?*.
    """
    for doc in parse([cell for cell in cells if not cell.endswith("?")]):
        for root in (token for token in doc if token.head.i == token.i):
            said = [root, *(child for child in root.children if child.dep_.startswith("aux"))]
            subject = any(child.dep_ in SUBJECTS for child in root.children)
            asks = doc[0].tag_ in ASKING
            if subject and not asks and any(token.tag_ in FINITE for token in said):
                return True
    return False
