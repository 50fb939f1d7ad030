"""Cases through the engine's own pass, many at a time."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.verdicts.cases import Case
from benchmarks.verdicts.measure import Judged, judged
from guardrail.core.types import Strictness, VerdictThresholds
from guardrail.markers.grammar import ParsedText
from guardrail.verdict.grounder import Grounder, GroundingRequest

__all__ = ["judge_cases"]

TOGETHER = 32
"""Cases that go to the judge together."""


def judge_cases(
    grounder: Grounder,
    cases: Sequence[Case],
    thresholds: VerdictThresholds = Strictness.BALANCED.thresholds,
) -> list[Judged]:
    """Judge n cases, each as an answer of its own; the sentences before it are read, not judged."""
    found: list[Judged] = []
    for first in range(0, len(cases), TOGETHER):
        some = cases[first : first + TOGETHER]
        answers, problems = grounder.ground([_request(case, thresholds) for case in some])
        if problems:
            raise SystemExit(problems[0].message)
        found += [judged(case, answer) for case, answer in zip(some, answers, strict=True)]
    return found


def _request(case: Case, thresholds: VerdictThresholds) -> GroundingRequest:
    text = f"{case.before} {case.text}" if case.before else case.text
    answer = ParsedText(clean=text, marked=text)
    return GroundingRequest(
        case.question, answer, case.evidence, since=len(case.before), thresholds=thresholds
    )
