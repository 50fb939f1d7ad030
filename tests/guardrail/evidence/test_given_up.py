"""Work on much evidence stops where nobody waits for it any more."""

from contextvars import copy_context

import pytest

from guardrail import Passage
from guardrail.core.cancellation import GivenUpError, watch
from guardrail.evidence.index import StatementIndex
from guardrail.evidence.statements import statements_of
from guardrail.verdict.premises import IndexedEvidence

EVIDENCE = [Passage("The Fjell 3 costs 40 euros. It is green.")]
STATEMENTS = tuple(statements_of(EVIDENCE))


@pytest.mark.parametrize(
    "work",
    [
        lambda: statements_of(EVIDENCE),
        lambda: StatementIndex(STATEMENTS),
        lambda: IndexedEvidence(STATEMENTS).values,
    ],
    ids=["statements", "index", "values"],
)
def test_each_long_part_looks_whether_it_was_given_up(work) -> None:
    given_up = copy_context()
    given_up.run(watch, lambda: True)
    with pytest.raises(GivenUpError):
        given_up.run(work)
    assert work()
