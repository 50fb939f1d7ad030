"""What a second judge is worth, and what it costs, by the share of sentences it is asked about.

    python -m benchmarks.second_judge --data DIR --second JUDGE [--judge onnx] [--sets triples,…]
        [--limit N] [--band B] [--seed N]

The statements about one piece of evidence stand for the sentences of one answer. Each is judged by
the first judge alone, and again with the second one wherever the band lets it be asked; a share
takes the second result of as many of an answer's sentences as the engine would ask about. A first
table tells how often the first judge is right by its distance from another verdict: where that is
as often as the second judge is, a wider band gains nothing.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.data import errors_told
from benchmarks.verdicts.cases import Case
from benchmarks.verdicts.judging import judge_cases
from benchmarks.verdicts.measure import Judged, summed
from benchmarks.verdicts.sets import read_set
from guardrail.core.types import Verdict
from guardrail.verdict.grounder import Grounder
from judges.base import NLIJudge
from judges.grounding import as_grounding
from judges.memory import RememberedGrounding
from judges.registry import create_nli
from judges.second_opinion import SecondJudge, SecondOpinions, nearest
from judges.second_settings import SecondJudgeSettings

__all__ = ["Both", "Point", "curve", "judged_by_both", "main", "right_by_distance"]

SHARES = (0.0, 0.1, 0.2, 0.4, 1.0)
SETS = ("triples", "passages")
BINS = (0.1, 0.2, 0.3, 0.4, 0.5, 1.0)
"""Upper ends of the distances that are told apart."""
PATIENCE_S = 86_400.0
"""Seconds that the second judge has for a batch: here it is measured, not bounded."""
PASSED = (Verdict.SUPPORTED, Verdict.NO_CLAIM)


class Both(NamedTuple):
    """The cases of a set, judged.

    Attributes:
        cases: The cases.
        first: What the first judge made of each.
        both: What came of each where the second was asked wherever the band lets it be.
        spent_s: Seconds that the second judge took for all of them.
    """

    cases: Sequence[Case]
    first: Sequence[Judged]
    both: Sequence[Judged]
    spent_s: float


class Point(NamedTuple):
    """One point of the curve.

    Attributes:
        share: Greatest share of an answer's sentences.
        asked: Sentences that the second judge is asked about.
        sentences: All of them.
        balanced: Balanced accuracy; None where the set has but one kind of sentence.
        milliseconds: Time of the second judge, per sentence of the set.
    """

    share: float
    asked: int
    sentences: int
    balanced: float | None
    milliseconds: float


def judged_by_both(
    cases: Sequence[Case], judge: NLIJudge, second: SecondJudge, band: float
) -> Both:
    """Judge cases by one judge, and by both.

    Args:
        cases: The cases.
        judge: The first judge.
        second: The second one.
        band: Greatest distance from another verdict at which it is asked.

    Raises:
        SystemExit: One of them gave no answer.
    """
    first = RememberedGrounding(as_grounding(judge))
    weighing = getattr(judge, "weighing", None)
    opinions = SecondOpinions(second, band=band, share=1.0, timeout_s=PATIENCE_S)
    alone = Grounder(first, weighing=weighing)
    judge_cases(alone, cases)  # from here on the first judge's time does not count
    begin = time.perf_counter()
    by_first = judge_cases(alone, cases)
    between = time.perf_counter()
    by_both = judge_cases(Grounder(first, weighing=weighing, second=opinions), cases)
    spent = (time.perf_counter() - between) - (between - begin)
    for item in by_both:
        for sentence in item.sentences:
            if sentence.second_opinion is not None and sentence.second_opinion.missing is not None:
                raise SystemExit(f"{second.name}: {sentence.second_opinion.missing}")
    return Both(cases, by_first, by_both, max(0.0, spent))


def curve(judged: Both, shares: Sequence[float] = SHARES) -> list[Point]:
    """Balanced accuracy and cost at each share.

    Args:
        judged: The cases of one set.
        shares: Greatest shares of an answer's sentences.
    """
    answers: dict[object, list[int]] = {}
    for place, case in enumerate(judged.cases):
        answers.setdefault(case.evidence, []).append(place)
    could = [_asked(item) for item in judged.both]
    distances = [
        _distance(item) if asked else None for item, asked in zip(judged.first, could, strict=True)
    ]
    each = judged.spent_s * 1000.0 / max(1, sum(could))
    points = []
    for share in shares:
        found = list(judged.first)
        for places in answers.values():
            most = math.ceil(round(share * len(places), 6))
            near = nearest([distances[place] for place in places], band=math.inf, most=most)
            for number in near:
                found[places[number]] = judged.both[places[number]]
        asked = sum(_asked(item) for item in found)
        balanced = summed(judged.cases, found).balanced
        points.append(Point(share, asked, len(found), balanced, asked * each / max(1, len(found))))
    return points


def right_by_distance(judged: Both) -> list[tuple[float, int, float]]:
    """How often the first judge passes what is true and marks what is not, by distance.

    Returns:
        Of each stretch of distances with a sentence: its upper end, sentences, share right.
    """
    found: dict[float, list[bool]] = {end: [] for end in BINS}
    for case, item in zip(judged.cases, judged.first, strict=True):
        distance = _distance(item)
        if distance is not None:
            end = next(end for end in BINS if distance <= end)
            found[end].append(item.passed == (case.label in PASSED))
    return [(end, len(held), sum(held) / len(held)) for end, held in found.items() if held]


def _asked(item: Judged) -> bool:
    return any(sentence.second_opinion is not None for sentence in item.sentences)


def _distance(item: Judged) -> float | None:
    """The least of a case's sentences; it is mostly one."""
    told = [
        sentence.thresholds.distance(sentence.support, sentence.contradiction)
        for sentence in item.sentences
        if sentence.thresholds is not None
        and sentence.support is not None
        and sentence.contradiction is not None
    ]
    return min(told, default=None)


def _print(name: str, judged: Both) -> None:
    print(f"\n| {name}: distance up to | sentences | first judge right |\n|--:|--:|--:|")
    for end, size, right in right_by_distance(judged):
        print(f"| {end:g} | {size} | {right:.3f} |")
    print(f"\n| {name}: share | asked | of | balanced | ms a sentence |\n|--:|--:|--:|--:|--:|")
    for point in curve(judged):
        balanced = "–" if point.balanced is None else f"{point.balanced:.3f}"
        cost = f"{point.asked} | {point.sentences} | {balanced} | {point.milliseconds:.1f}"
        print(f"| {point.share:g} | {cost} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="What a second judge is worth, by its share.")
    parser.add_argument("--data", type=Path, required=True, help="the folder of public data")
    parser.add_argument("--second", required=True, help="the second judge, by name")
    parser.add_argument("--judge", default="onnx", help="the first judge, by name")
    parser.add_argument("--sets", default=",".join(SETS), help=f"of {', '.join(SETS)}")
    parser.add_argument("--limit", type=int, default=0, help="most cases of a set; 0 for all")
    parser.add_argument(
        "--band",
        type=float,
        default=SecondJudgeSettings.model_fields["band"].default,
        help="greatest distance from another verdict",
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    judge = create_nli(options.judge)
    second = SecondJudge(create_nli(options.second), options.second)
    judge.warm_up()
    second.warm_up()
    print(f"{judge.name}, then {second.name} within {options.band:g}")
    for name in [item for item in options.sets.split(",") if item]:
        cases = read_set(name, options.data, options.limit or None, seed=options.seed)
        _print(name, judged_by_both(cases, judge, second, options.band))
    second.close()
    return 0


if __name__ == "__main__":
    with errors_told():
        sys.exit(main())
