"""What a run found, and what turned since the last one."""

import json

import pytest

from guardrail import Guardrail, GuardrailConfig
from guardrail.evaluation import Requirement
from guardrail.evaluation.runs import EvalResult, compare, evaluation_job, summarise
from guardrail.intervals import Rate, paired_difference, wilson


def result(row_id: str | None, verdict: str, *, passed: bool, **fields: object) -> EvalResult:
    return EvalResult.model_validate({"id": row_id, "verdict": verdict, "passed": passed} | fields)


def test_the_interval_of_a_paired_difference_is_the_published_one() -> None:
    """Fagerland, Lydersen and Laake (Statistics in Medicine, 2014), airway responsiveness."""
    changes = [1] + 7 * [-1] + 13 * [0]
    found = paired_difference(changes, [str(row) for row in range(21)])
    expected = pytest.approx((-0.286, -0.508, -0.013), abs=5e-4)
    assert (found.value, found.low, found.high) == expected
    assert paired_difference([], []) == Rate(value=0.0, low=-1.0, high=1.0, rows=0)


def test_clusters_that_agree_make_the_difference_less_certain() -> None:
    changes = 10 * [1] + 30 * [0]
    alone = paired_difference(changes, [str(row) for row in range(40)])
    spread = paired_difference(changes, [str(row % 10) for row in range(40)])
    together = paired_difference(changes, [str(row // 10) for row in range(40)])
    assert alone.value == together.value == 0.25
    assert spread == alone  # rows that differ within a cluster are as good as independent ones
    assert alone.low > 0 > together.low
    few = paired_difference([1, 0, 0, 0], list("abcd"))
    assert together.low <= few.low < few.high <= together.high
    assert paired_difference(40 * [0], 40 * ["a"]).high == paired_difference([0], ["a"]).high


def test_changed_rows_are_listed_with_their_sentences_and_the_cause() -> None:
    old = result(
        "a", "supported", passed=True, answer="One. Two.", versions={"judge_hash": "1"},
        sentences={"One.": "supported", "Two.": "supported"},
    )  # fmt: skip
    new = result(
        "a", "contradicted", passed=False, answer="One. Three.", versions={"judge_hash": "2"},
        sentences={"One.": "contradicted", "Three.": "supported"},
    )  # fmt: skip
    found = compare([old, result("gone", "supported", passed=True)], [new])
    assert (found.rows, found.added, found.gone, found.better, found.worse) == (1, 0, 1, 0, 1)
    (turn,) = found.turned
    assert (turn.before, turn.after, turn.changed) == (
        "supported", "contradicted", ("answer", "judge"),
    )  # fmt: skip
    assert turn.sentences == {"One.": ("supported", "contradicted")}
    assert found.difference.value == -1.0
    assert found.difference.low < found.difference.high < 1.0


def test_rows_without_ids_go_together_by_question_and_place() -> None:
    last = [
        result(None, "supported", passed=True, question="Q"),
        result(None, "unsupported", passed=False, question="Q"),
    ]
    found = compare(last, [*last, result(None, "supported", passed=True, question="New")])
    assert (found.rows, found.added, found.turned) == (2, 1, ())
    assert found.before.value == 0.5


@pytest.mark.parametrize("evidence", [{}, {"evidence": []}, {"passages": []}, {"evidence": " "}])
def test_rows_that_bring_no_evidence_are_groups_by_question(evidence: dict[str, object]) -> None:
    """The graph, or files of the settings, are asked: each question finds something else."""
    settings = GuardrailConfig.model_validate({"judge": "none", "graph": "none"})
    lines = [json.dumps({"question": f"Q{n}", "answer": "A.", **evidence}) for n in range(300)]
    with Guardrail(settings) as guard:
        found = list(evaluation_job(guard, Requirement()).results(lines))
    rows = [
        EvalResult.model_validate(row).model_copy(update={"passed": place >= 30})
        for place, row in enumerate(found)
    ]
    passed = summarise(rows, rows)
    assert (passed.passed.low, passed.passed.high) == pytest.approx(wilson(0.9, 300))
    assert passed.comparison is not None
    assert passed.comparison.difference.high < 0.02
    # Ten answers to each of thirty questions tell what thirty do, where all ten go one way.
    asked = [row.model_copy(update={"question": f"Q{n // 10}"}) for n, row in enumerate(rows)]
    few = summarise(asked, None).passed
    assert (few.low, few.high) == pytest.approx(wilson(0.9, 29), abs=0.01)
    # Without a question each stands alone.
    alone = [row.model_copy(update={"question": ""}) for row in rows]
    assert summarise(alone, None).passed == passed.passed


def test_a_summary_counts_what_was_expected_and_what_was_not_checked() -> None:
    summary = summarise(
        [
            result("a", "supported", passed=True, expected="supported"),
            result("b", "unsupported", passed=False, expected="contradicted"),
            EvalResult(id="c", error="line 3: not JSON"),
        ],
        None,
    )
    assert summary.verdicts == {"supported": 1, "unsupported": 1, "not checked": 1}
    assert summary.expected == {"supported: supported": 1, "contradicted: unsupported": 1}
    assert (summary.rows, summary.errors) == (3, 1)
    assert summary.passed.value == pytest.approx(1 / 3)
