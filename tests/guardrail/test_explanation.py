"""An explanation says what happened: the probabilities, thresholds and decision that were used."""

import math

import pytest

from guardrail import Guardrail, GuardrailConfig, Passage, Strictness, Triple
from guardrail.core.types import Explanation, Grounding, Verdict
from tests.guardrail.scripted import Scripted

GROUNDINGS = {
    f"The pool is {word}.": Grounding(
        supported=supported, unsupported=unsupported, contradicted=contradicted, no_claim=0.0
    )
    for word, supported, unsupported, contradicted in (
        ("warm", 0.9, 0.06, 0.04), ("deep", 0.1, 0.8, 0.1), ("shut", 0.02, 0.03, 0.95),
    )
}  # fmt: skip
ANSWER = " ".join(GROUNDINGS)
EVIDENCE = [Passage("The pool is warm and open.")]


def checked(strictness="balanced", policy="strict"):
    config = GuardrailConfig(graph={"location": "none"}, strictness=strictness, policy=policy)
    with Guardrail(config, grounding=Scripted(GROUNDINGS)) as guard:
        return guard.check("", ANSWER, evidence=EVIDENCE)


@pytest.mark.parametrize("strictness", list(Strictness))
def test_the_printed_numbers_are_those_that_were_used(strictness):
    answer = checked(strictness)
    explanations = answer.explain()
    assert [one.text for one in explanations] == [sentence.text for sentence in answer.judged]
    for one, sentence in zip(explanations, answer.judged, strict=True):
        at = strictness.thresholds
        assert one.thresholds == at
        assert (
            f"support {sentence.support:.2f} (threshold {at.support:.2f}), "
            f"contradiction {sentence.contradiction:.2f} "
            f"(threshold {at.contradiction:.2f}; {at.removal:.2f} to act on it)"
        ) in str(one)


def test_each_outcome_is_what_the_policy_did():
    explanations = {one.text: one for one in checked().explain()}
    assert {text: (one.verdict, one.outcome) for text, one in explanations.items()} == {
        "The pool is warm.": (Verdict.SUPPORTED, "shown"),
        "The pool is deep.": (Verdict.UNSUPPORTED, "marked"),
        "The pool is shut.": (Verdict.CONTRADICTED, "removed"),
    }


def test_a_verdict_that_a_finding_settles_depends_on_no_probability():
    config = GuardrailConfig(graph={"location": "none"}, policy="strict")
    with Guardrail(config, grounding=Scripted(GROUNDINGS)) as guard:
        copied = guard.check("", ANSWER, evidence=[Passage("The pool is deep.")])
    one = next(item for item in copied.explain() if item.text == "The pool is deep.")
    assert one.verdict is Verdict.SUPPORTED
    assert one.because.startswith("copied decides")
    assert one.otherwise == ()


def test_what_is_said_to_turn_a_verdict_does():
    """A threshold moved past the printed probability gives the verdict that was announced."""
    before = {one.text: one for one in checked().explain()}["The pool is shut."]
    assert any("only marked with contradiction below" in item for item in before.otherwise)
    past = before.contradiction + 0.01
    assert past < 1.0
    own = {"support": 0.5, "contradiction": 0.6, "removal": past}
    after = {one.text: one for one in checked(own).explain()}["The pool is shut."]
    assert (after.verdict, after.outcome) == (Verdict.CONTRADICTED, "marked")


def test_the_weights_add_up_to_the_probabilities():
    for sentence in checked().judged:
        for name in ("support", "contradiction"):
            total = math.fsum(getattr(weight, name) for weight in sentence.weights)
            assert 1 / (1 + math.exp(-total)) == pytest.approx(getattr(sentence, name), abs=0.02)


def test_without_a_judge_the_checks_decide_and_it_says_so():
    config = GuardrailConfig(graph={"location": "none"}, judge="none")
    with Guardrail(config) as guard:
        (one,) = guard.check("", "The pool is warm.", evidence=EVIDENCE).explain()
    assert one.thresholds is None
    assert "no judge was asked" in str(one)


def test_it_survives_the_way_through_json():
    (first, *_) = checked().explain()
    assert Explanation.model_validate_json(first.model_dump_json()) == first


def test_a_contradiction_without_a_conflicting_statement_says_so():
    said = "Grace Hopper was born in 1820."
    judge = Scripted({said: GROUNDINGS["The pool is shut."]})
    fact = Triple("Ada Lovelace", "date of birth", "1815-12-10")
    with Guardrail(GuardrailConfig(), grounding=judge) as guard:
        (one,) = guard.check("", said, evidence=[fact]).explain()
    assert one.verdict is Verdict.UNSUPPORTED
    assert "no statement about its subject that was read conflicts" in str(one)
    assert one.otherwise == ()


def test_each_sentence_says_which_items_were_read_for_it():
    evidence = [
        Passage(f"Bell {n} was cast in 19{n}. {'It is heavy. ' * 40}") for n in range(10, 40)
    ]
    said = {"Bell 12 was cast in 1912.", "Bell 31 was cast in 1931."}
    judge = Scripted(dict.fromkeys(said, GROUNDINGS["The pool is warm."]))
    with Guardrail(GuardrailConfig(), grounding=judge) as guard:
        answer = guard.check("", " ".join(sorted(said)), evidence=evidence)
    for one, number in zip(answer.explain(), (3, 22), strict=True):
        assert number in one.read
        assert len(one.read) < len(evidence)
        assert "read for it: " in str(one)
    assert "read" not in answer.model_dump()["sentences"][0]
