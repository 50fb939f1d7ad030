"""What a person reads in a terminal."""

from rich.console import Console

from guardrail import Triple
from guardrail.commands.render import show_answer, show_ranking
from guardrail.core.types import Action, GuardedAnswer, Problem, Score, ScoreCard


def printed(what) -> str:
    console = Console(width=90, force_terminal=False)
    with console.capture() as capture:
        what(console)
    return capture.get()


def test_a_ranking_is_shown_best_first_with_what_ordered_it(exact_guard):
    ranked = exact_guard.rank(
        question="When was the bridge opened?",
        answers=["It was opened in 1950.", "It was opened in 1932."],
        evidence=[Triple(subject="Sydney Harbour Bridge", property="opened", value="1932-03-19")],
        policy="best-of-n",
    )
    shown = printed(lambda console: show_ranking(console, ranked))
    titles = [line.strip("╭╮─ ") for line in shown.split("\n") if line.startswith("╭")]
    assert titles == ["answer 2: rank 1", "answer 1: rank 2"]
    assert "rank 1 of 2: grounded 1.00" in shown


def test_each_reason_has_a_line_and_a_problem_is_shown_once():
    message = "the model cannot be reached"
    answer = GuardedAnswer(
        id="1", question="Who?", text="No answer.", marked="No answer.", action=Action.REFUSE,
        reasons=("it is short", message, "it is late"),
        scorecard=ScoreCard(overall=Score(reason=message)),
        errors=(Problem(part="model", message=message),),
    )  # fmt: skip
    text = printed(lambda console: show_answer(console, answer))
    assert [line.strip("│ ") for line in text.split("\n") if "·" in line] == [
        "· it is short",
        "· it is late",
    ]
    assert text.count(message) == 1
    assert f"problem in model: {message}" in text
