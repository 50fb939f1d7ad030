"""What the scorers of the papers put on a score card."""

from guardrail.report.summary import INTENT_LINE
from guardrail.scorers import sck_scorer
from guardrail.scoring import ScoringRequest
from guardrail.types import AttributedAnswer


def test_the_sck_score_names_the_intent_by_which_reports_group_answers() -> None:
    text = "First open the valve. Then wait a minute. Finally close it."
    answer = AttributedAnswer(text=text, marked=text, sentences=())
    questions = ["How do I bleed a radiator?", "Which is better, tea or coffee?"]
    scorer = sck_scorer()
    cards = scorer.score([ScoringRequest(question, answer, (), ()) for question in questions])
    lines = [card["sck"].evidence[-1] for card in cards]
    assert lines[0].startswith(f"{INTENT_LINE}instruction (")
    assert lines[1].startswith((f"{INTENT_LINE}debate (", f"{INTENT_LINE}comparison ("))
    assert all(card["sck"].value is not None for card in cards)
