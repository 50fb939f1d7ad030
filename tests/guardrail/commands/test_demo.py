"""The demo and the company that it is about."""

import re

from typer.testing import CliRunner

from guardrail.cli import app
from guardrail.company import QUESTION, company_graph, handbook, recorded_answers


def test_the_company_s_graph_holds_what_its_products_are() -> None:
    (found,) = company_graph().find(["Fjell 3"])
    assert [entity.label for entity in found] == ["Fjell 3"]
    titles = [section.title for section in handbook()]
    assert titles == ["Returns", "Delivery", "Batteries", "Service"]


def test_the_demo_shows_verdicts_evidence_ranking_filter_and_log() -> None:
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 0, done.output
    shown = re.sub(r"[│\s]+", " ", done.output)
    assert QUESTION in shown
    assert "recorded (written down, not sampled)" in shown
    assert "✗ Fjell 3, price: 2,490 euros." in shown  # the wrong price is compared by value
    _, _, filtered, corrected, logged = re.split(
        "1. Every answer|2. What a user sees|3. The first answer|4. One row of the score log", shown
    )
    assert "2,190 euros" not in filtered
    assert "2,190 euros" in corrected  # struck out
    assert "corrected ✓ Fjell 3, price: 2,490 euros." in corrected
    assert '"contradicted_share"' in logged
    places = [int(place) for place in re.findall(r"answer (\d): rank \d", shown)]
    assert sorted(places) == list(range(1, len(recorded_answers()) + 1))
