"""What contradicts a sentence is named, whatever the evidence is made of."""

import pytest

from guardrail import STRICT, Action, Guardrail, GuardrailConfig, Passage, Triple
from guardrail.core.types import Category, Grounding, StatementScore
from guardrail.engine.decision import feedback
from tests.guardrail.scripted import Scripted

SAID = "The Kestrel has ninety rooms."
TRUE = "The pool is open daily."
FACT = Triple(subject="Kestrel", property="rooms", value="forty-two")
PASSAGE = Passage(text="The Kestrel has forty-two rooms.", id="d1", title="Guide")
POOL = Passage(text=TRUE, id="d2", title="Pool")


def judged(conflicts: float) -> Scripted:
    """A judge that is told so by the first statement."""
    against = StatementScore(carries=0.1, conflicts=conflicts)
    neither = StatementScore(carries=0.0, conflicts=0.0)
    carries = StatementScore(carries=0.9, conflicts=0.0)
    return Scripted(
        {
            SAID: Grounding(
                supported=0.02, unsupported=0.08, contradicted=0.9, no_claim=0.0,
                statements=(against, neither, neither),
            ),
            TRUE: Grounding(
                supported=0.96, unsupported=0.02, contradicted=0.02, no_claim=0.0,
                statements=(neither, carries, neither),
            ),
        }
    )  # fmt: skip


def check(evidence, *, conflicts=0.9, said=f"{SAID} {TRUE}", policy=STRICT):
    config = GuardrailConfig(graph={"location": "none"})
    with Guardrail(config, grounding=judged(conflicts)) as guard:
        return guard.check("Is there a pool?", said, evidence=evidence, policy=policy)


@pytest.mark.parametrize(
    ("first", "named"), [(PASSAGE, PASSAGE.text), (FACT, "Kestrel, rooms: forty-two.")]
)
def test_a_reason_names_what_contradicts(first, named):
    answer = check([first, POOL])
    assert answer.action is Action.FILTER
    assert answer.reasons == (f'contradicted: "{SAID}" against {named}',)
    marked = check([first, POOL], policy="annotate")
    assert marked.sentences[0].against == (named,)
    assert marked.sentences[1].against == ()
    (failed,) = feedback(marked.sentences)
    assert (failed.text, failed.reason) == (SAID, f"but {named}")


def test_without_a_statement_that_conflicts_a_sentence_is_only_unsupported():
    answer = check([POOL], conflicts=0.0, policy="annotate")
    assert answer.sentences[0].category is Category.IRRELEVANT
    assert answer.sentences[0].na
    assert [item.text for item in feedback(answer.sentences)] == [SAID]


def test_what_the_answer_cited_is_no_part_of_what_contradicts_it():
    """A reason may be shown where the answer may not."""
    said = f"{SAID[:-1]} [Kestrel, rooms: zanzibar]. {TRUE}"
    answer = check([FACT, POOL], said=said, policy="annotate")
    assert "zanzibar" in answer.sentences[0].note
    assert answer.sentences[0].against == (FACT.text,)
    assert "zanzibar" not in answer.reasons[0]
