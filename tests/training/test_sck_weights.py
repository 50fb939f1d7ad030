from __future__ import annotations

from pathlib import Path

import pytest

from guardrail.core.errors import InputError
from judges.encoder import create_encoder
from judges.sck import Intent, SCKInput, SCKReport, SCKScorer
from judges.sck.report import TABLE_3
from training.sck_weights import RatedAnswer, learn_weights, read_rated, table

ANSWERS = (
    "Rome.", "- it\n1. was", "Ada Lovelace was born.", "1. Ada\n5. Lovelace",
    "It is in London, I think, but nobody knows.", "Ada Lovelace lived in London.", "London.\n- 1",
    "",
)  # fmt: skip


@pytest.fixture(scope="module")
def reports() -> list[SCKReport]:
    return SCKScorer(create_encoder()).score(
        [
            SCKInput(question=f"Ada Lovelace, London {row}", answer=ANSWERS[row % len(ANSWERS)])
            for row in range(40)
        ]
    )


def test_ratings_that_follow_content_alone_move_the_weight_to_content(
    reports: list[SCKReport],
) -> None:
    rated = [report for report in reports if report.content.score.value is not None]
    ratings = [10 * (report.content.score.value or 0.0) for report in rated]
    learned = learn_weights(rated, ratings)
    weights = learned.weights[Intent.NONE]
    assert weights.structure < 0.02
    assert weights.content > 0.6
    assert weights.knowledge == pytest.approx(1 / 3, abs=0.01), "no row had evidence"
    assert weights.structure + weights.content + weights.knowledge == pytest.approx(1)
    assert learned.error < learned.error_before
    assert learned.weights[Intent.DEBATE] == TABLE_3[Intent.DEBATE]
    assert "error on held-out rows" in table(learned)


def test_equal_ratings_teach_nothing(reports: list[SCKReport]) -> None:
    with pytest.raises(InputError, match="all ratings are equal"):
        learn_weights(reports, [1.0] * len(reports))


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_a_sign_that_may_end_a_line_ends_no_row(sign: str, tmp_path: Path) -> None:
    rated = RatedAnswer(question="Who?", answer=f"One.{sign}Two.", rating=3)
    path = tmp_path / "rated.jsonl"
    path.write_text(rated.model_dump_json() + "\n\n", "utf-8")
    assert read_rated(path) == [rated]
    path.write_text(rated.model_dump_json() + "\n{\n", "utf-8")
    with pytest.raises(InputError, match="line 2"):
        read_rated(path)
