"""Work on much evidence stops where nobody waits for it any more."""

from contextvars import copy_context

import pytest

from guardrail import Passage, Table
from guardrail.core.workers import GivenUpError, watch
from guardrail.evidence.prepared import prepare
from guardrail.evidence.statements import statements_of
from guardrail.sources.items import evidence_items

EVIDENCE = [Passage("The Fjell 3 costs 40 euros. It is green.")]


@pytest.mark.parametrize(
    "work",
    [
        lambda: statements_of(EVIDENCE),
        lambda: prepare(EVIDENCE).select("It costs 40 euros."),
        lambda: prepare(EVIDENCE).values or True,
        lambda: evidence_items(["The Fjell 3 costs 40 euros."]),
        lambda: Table([{"name": "Fjell 3", "price_eur": 40}]),
        lambda: Table.from_bytes(b"name,price_eur\nFjell 3,40\n", "bikes.csv"),
    ],
    ids=["statements", "index", "values", "items", "table", "file"],
)
def test_each_long_part_looks_whether_it_was_given_up(work) -> None:
    given_up = copy_context()
    given_up.run(watch, lambda: True)
    with pytest.raises(GivenUpError):
        given_up.run(work)
    assert work()
