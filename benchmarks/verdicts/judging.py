"""Cases through the engine's own pass, many at a time."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.verdicts.cases import Case
from benchmarks.verdicts.measure import Judged, judged
from benchmarks.verdicts.scores import KeptScores
from benchmarks.verdicts.sets import SETS
from guardrail import GuardrailConfig
from guardrail.core.types import Strictness, VerdictThresholds
from guardrail.engine.parts import Parts
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import ParsedText
from guardrail.verdict.claims import GroundingRequest
from guardrail.verdict.grounder import Grounder
from judges.base import GroundingJudge
from judges.service import RememberedGrounding

__all__ = ["Opened", "add_options", "judge_cases", "opened"]

TOGETHER = 32
"""Cases that go to the judge together."""


class Opened(NamedTuple):
    """A judge and the engine round it.

    Attributes:
        judge: The judge, warm.
        remembered: The same; it says nothing twice.
        grounder: Makes an engine of a judge, which weighs findings as the judge's card says.
    """

    judge: GroundingJudge
    remembered: GroundingJudge
    grounder: Callable[..., Grounder]


def add_options(parser: ArgumentParser) -> None:
    """Add what the tables of verdicts are measured with."""
    parser.add_argument(
        "--data", type=Path, default=Path(), help="the folder of public data; here by default"
    )
    parser.add_argument("--sets", default="", help=f"of {', '.join(SETS)}; all but train")
    parser.add_argument("--limit", type=int, default=400, help="most cases of a set; 0 for all")
    parser.add_argument("--judge", default="onnx")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scores", type=Path, help="a file that keeps the judge's scores")


def opened(options: Namespace) -> tuple[list[str], Opened]:
    """The names of the sets and the judge that options ask for.

    Raises:
        SystemExit: They name no judge.
    """
    names = [item for item in options.sets.split(",") if item] or [
        name for name in SETS if not name.startswith("train")
    ]
    parts = Parts(GuardrailConfig(judge=options.judge), {}, ())
    judge = parts.grounding
    if judge is None:
        raise SystemExit("a judge is needed: --judge")
    judge.warm_up()
    remembered = KeptScores(judge, options.scores) if options.scores else RememberedGrounding(judge)
    return names, Opened(judge, remembered, partial(Grounder, weighing=parts.weighing))


def judge_cases(
    grounder: Grounder,
    cases: Sequence[Case],
    thresholds: VerdictThresholds = Strictness.BALANCED.thresholds,
) -> list[Judged]:
    """Judge n cases, each as an answer of its own; the sentences before it are read, not judged."""
    found: list[Judged] = []
    for first in range(0, len(cases), TOGETHER):
        some = cases[first : first + TOGETHER]
        answers, _, problems = grounder.ground([_request(case, thresholds) for case in some])
        if problems:
            raise SystemExit(problems[0].message)
        found += [judged(case, answer) for case, answer in zip(some, answers, strict=True)]
    return found


def _request(case: Case, thresholds: VerdictThresholds) -> GroundingRequest:
    text = f"{case.before} {case.text}" if case.before else case.text
    answer = ParsedText(clean=text, marked=text)
    return GroundingRequest(
        case.question, answer, prepare(case.evidence), since=len(case.before), thresholds=thresholds
    )
