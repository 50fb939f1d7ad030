"""What the scorers of the papers put on a score card."""

from collections.abc import Iterator

import pytest

from guardrail import CheckRequest, Guardrail, GuardrailConfig, Triple
from guardrail.config import GraphConfig
from guardrail.core.types import AttributedAnswer
from guardrail.log.entries import INTENT
from guardrail.markers.grammar import parse
from guardrail.scorers import ScoringRequest, sck_input, sck_scorer
from judges.encoder import create_encoder
from judges.sck import SCKScorer


def test_the_sck_score_names_the_intent_by_which_reports_group_answers() -> None:
    text = "First open the valve. Then wait a minute. Finally close it."
    answer = AttributedAnswer(text=text, marked=text, sentences=())
    questions = ["How do I bleed a radiator?", "Which is better, tea or coffee?"]
    scorer = sck_scorer()
    cards = scorer.score([ScoringRequest(question, answer, (), ()) for question in questions])
    lines = [card["sck"].evidence[-1] for card in cards]
    assert lines[0].startswith(f"{INTENT}instruction (")
    assert lines[1].startswith((f"{INTENT}debate (", f"{INTENT}comparison ("))
    assert all(card["sck"].value is not None for card in cards)


FACTS = (
    Triple(subject="Ada Lovelace", property="place of birth", value="London"),
    Triple(subject="Ada Lovelace", property="date of birth", value="1815-12-10"),
)
ANSWERS = (
    ("Where was Ada Lovelace born?", "Ada Lovelace was born in London."),
    ("Who was Ada Lovelace?", "She was born on 10 December 1815 in London. She knew Babbage."),
    ("How do I bleed a radiator?", "1. Open the valve.\n2. Wait a minute.\n3. Close it."),
    ("", "Ada Lovelace died in Paris [Q7259, place of death]."),
)


@pytest.fixture(scope="module")
def guard() -> Iterator[Guardrail]:
    config = GuardrailConfig(scorers=("sck",), graph=GraphConfig(location="none"))
    with Guardrail(config) as made:
        made.warm_up()
        yield made


def requests() -> list[CheckRequest]:
    return [CheckRequest(question=q, answer=a, evidence=FACTS) for q, a in ANSWERS]


def test_a_batch_has_the_scores_of_its_answers_one_by_one(guard: Guardrail) -> None:
    together = guard.check_batch(requests())
    for request, answer in zip(requests(), together, strict=True):
        [alone] = guard.check_batch([request])
        assert alone.scorecard == answer.scorecard
        assert alone.scorecard.scores["sck"].value is not None


def test_the_guardrails_parse_gives_the_scores_that_the_scorers_own_reading_gives(
    guard: Guardrail,
) -> None:
    scorer = SCKScorer(create_encoder())
    for answer in guard.check_batch(requests()):
        attributed = AttributedAnswer(
            text=parse(answer.original).clean, marked="", sentences=answer.sentences
        )
        request = ScoringRequest(answer.question, attributed, answer.evidence, answer.entities)
        [report] = scorer.score([sck_input(request)])
        for name, score in report.scores.items():
            assert answer.scorecard.scores[name].value == score.value
