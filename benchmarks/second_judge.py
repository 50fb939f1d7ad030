"""What a second judge is worth, and what it costs, by the share of sentences it is asked about.

    python -m benchmarks.second_judge --second chat:MODEL [--base-url URL] [--data DIR]
        [--sets alder,valid,…] [--limit N] [--judge onnx] [--scores FILE] [--band B] [--seed N]
    python -m benchmarks.second_judge --labelled FILE.jsonl --sets valid --limit N --data DIR

The statements about one piece of evidence stand for the sentences of one answer. Each is judged by
the first judge alone and again with the second one; a share takes the second result of as many of
an answer's sentences as the engine would ask about. Brackets hold 95 % intervals, by bootstrap over
the pieces of evidence. A line gives the second judge's own AUC and the expected calibration error
of its support, before and after calibration on the other half.

The second form judges nothing: it writes the sentences as a file for ``guardrail tune --labelled``.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.classification import area, balanced_accuracy
from benchmarks.data import PATIENCE_S, exit_on_error, read_jsonl
from benchmarks.newcomer.domains import Domain
from benchmarks.provenance import provenance
from benchmarks.verdicts.cases import Case
from benchmarks.verdicts.judging import judge_cases
from benchmarks.verdicts.measure import Judged
from benchmarks.verdicts.scores import KeptScores
from benchmarks.verdicts.sets import statement_case
from guardrail.core.types import Category, Triple, Verdict
from guardrail.core.types.judging import Weighing
from guardrail.verdict.grounder import Grounder
from judges.base import GroundingJudge, NLIJudge
from judges.chat import ChatJudge
from judges.grounding import as_grounding
from judges.registry import create_nli
from judges.second_opinion import OwnOpinion, SecondJudge, SecondOpinions, nearest
from judges.service import RememberedGrounding
from judges.settings import Calibration, ChatSettings, SecondJudgeSettings, fit

__all__ = ["Both", "Point", "cases_of", "curve", "judged_by_both", "main"]

SHARES = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)
COMPANIES = ("alder", "birch", "cedar")
STATEMENTS = ("valid", "valid_hard")
ANSWER = 8
"""Most sentences about one piece of evidence: as many as a usual answer has."""
BINS = 10
RESAMPLES = 1_000
LABELS = (Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)


class Both(NamedTuple):
    """The cases of a set, judged.

    Attributes:
        cases: The cases.
        first: Verdicts of the first judge.
        both: Verdicts with the second judge, wherever the band allows it.
        own: Verdicts by the second judge's probabilities alone, not calibrated.
        spent_s: Seconds that the second judge took for all of them.
    """

    cases: Sequence[Case]
    first: Sequence[Judged]
    both: Sequence[Judged]
    own: Sequence[Judged]
    spent_s: float


class Measured(NamedTuple):
    """A figure with its 95 % interval; None for a single piece of evidence."""

    value: float
    interval: tuple[float, float] | None

    def __str__(self) -> str:
        if self.interval is None:
            return f"{self.value:.3f}"
        low, high = self.interval
        return f"{self.value:.3f} ({low:.2f} to {high:.2f})"


class Point(NamedTuple):
    """One point of the curve.

    Attributes:
        share: Greatest share of an answer's sentences.
        asked: Sentences that the second judge is asked about.
        sentences: All of them.
        balanced: Balanced accuracy; None where all sentences are of one kind.
        auc: Area under the curve of support; None likewise.
        seconds: Time of the second judge for each sentence of the set.
    """

    share: float
    asked: int
    sentences: int
    balanced: Measured | None
    auc: Measured | None
    seconds: float


def cases_of(name: str, data: Path, limit: int, *, seed: int = 1) -> list[Case]:
    """The sentences of a set that claim something, those about one piece of evidence together.

    Args:
        name: A company of the newcomer benchmark, or ``valid`` or ``valid_hard``.
        data: The folder of public data, for the latter two.
        limit: Number of cases after which no further evidence is begun; 0 for all.
        seed: Chooses the evidence.

    Raises:
        InputError: The file of the set is missing.
    """
    groups: dict[object, list[Case]] = {}
    for key, case in _company(name) if name in COMPANIES else _statements(name, data):
        if case.label is not Verdict.NO_CLAIM:
            groups.setdefault(key, []).append(case)
    rng = random.Random(seed)
    order = list(groups.values())
    rng.shuffle(order)
    found: list[Case] = []
    for group in order:
        if limit and len(found) >= limit:
            break
        found += sorted(rng.sample(group, min(len(group), ANSWER)), key=group.index)
    return found


def _statements(name: str, data: Path) -> Iterator[tuple[object, Case]]:
    for row in read_jsonl(data / "statements" / f"{name}.jsonl.gz"):
        yield row["set"], statement_case(name, row)


def _company(name: str) -> Iterator[tuple[object, Case]]:
    for number, answer in enumerate(Domain(name).answers):
        request = answer.request
        for sentence in answer.sentences:
            before = request.answer[: sentence.start].strip()
            text = request.answer[sentence.start : sentence.end]
            evidence = request.evidence or ()
            yield number, Case(name, evidence, text, sentence.label, request.question, before)


def judged_by_both(
    cases: Sequence[Case],
    first: GroundingJudge,
    second: NLIJudge,
    name: str,
    band: float,
    weighing: Weighing | None = None,
) -> Both:
    """Judge cases by one judge, and by both.

    Args:
        cases: The cases.
        first: The first judge, which remembers its scores.
        second: The second one.
        name: Its name.
        band: Greatest distance from another verdict at which it is asked.
        weighing: Weights of the first judge and of the checks.
    """
    bounds = SecondJudgeSettings(judge=second.name, band=band, share=1.0, timeout_s=PATIENCE_S)
    opinions = (SecondOpinions(kind(second, name), bounds) for kind in (SecondJudge, OwnOpinion))
    with_both, by_own = (Grounder(first, weighing=weighing, second=one) for one in opinions)
    alone = Grounder(first, weighing=weighing)
    judge_cases(alone, cases)  # from here on the first judge's time does not count
    begin = time.perf_counter()
    by_first = judge_cases(alone, cases)
    between = time.perf_counter()
    by_both = judge_cases(with_both, cases)
    spent = (time.perf_counter() - between) - (between - begin)
    with _uncalibrated(second):
        own = judge_cases(by_own, cases)
    return Both(cases, by_first, by_both, own, max(0.0, spent))


@contextmanager
def _uncalibrated(judge: NLIJudge) -> Iterator[None]:
    """A chat model's probabilities as its endpoint gives them."""
    if not isinstance(judge, ChatJudge):
        yield
        return
    before, judge.calibration = judge.calibration, Calibration()
    try:
        yield
    finally:
        judge.calibration = before


def curve(judged: Both, shares: Sequence[float] = SHARES) -> list[Point]:
    """Balanced accuracy, AUC and cost at each share.

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
    each = judged.spent_s / max(1, sum(could))
    points = []
    for share in shares:
        found = list(judged.first)
        for places in answers.values():
            most = math.ceil(round(share * len(places), 6))
            near = nearest([distances[place] for place in places], band=math.inf, most=most)
            for number in near:
                found[places[number]] = judged.both[places[number]]
        asked = sum(_asked(item) for item in found)
        balanced, auc = _measured(judged.cases, found)
        seconds = asked * each / max(1, len(found))
        points.append(Point(share, asked, len(found), balanced, auc, seconds))
    return points


def _measured(
    cases: Sequence[Case], found: Sequence[Judged]
) -> tuple[Measured | None, Measured | None]:
    """Balanced accuracy, and AUC of support."""
    supports = np.array(
        [
            min((sentence.support or 0.0 for sentence in item.sentences), default=0.0)
            for item in found
        ]
    )
    passed = np.array([float(item.passed) for item in found])
    truth = np.array([case.label is Verdict.SUPPORTED for case in cases])
    if truth.all() or not truth.any():
        return None, None
    places: dict[object, list[int]] = {}
    for place, case in enumerate(cases):
        places.setdefault(case.evidence, []).append(place)
    groups = [np.array(group) for group in places.values()]
    rng = np.random.default_rng(1)
    drawn = (
        np.concatenate([groups[n] for n in rng.integers(len(groups), size=len(groups))])
        for _ in range(RESAMPLES)
    )
    samples = [sample for sample in drawn if 0 < truth[sample].sum() < len(sample)]

    def measured(measure: Callable[[Any, Any], float], scores: Any) -> Measured:
        found = [measure(scores[sample], truth[sample]) for sample in samples]
        low, high = np.quantile(found, [0.025, 0.975])
        return Measured(measure(scores, truth), (low, high) if len(groups) > 1 else None)

    return measured(balanced_accuracy, passed), measured(area, supports)


def _asked(item: Judged) -> bool:
    return any(sentence.second_opinion is not None for sentence in item.sentences)


def _distance(item: Judged) -> float | None:
    """The least of a case's sentences; it is mostly one."""
    found = [
        sentence.thresholds.distance(sentence.support, sentence.contradiction)
        for sentence in item.sentences
        if sentence.thresholds is not None
        and sentence.support is not None
        and sentence.contradiction is not None
    ]
    return min(found, default=None)


def _own_words(judged: Both) -> list[tuple[int, tuple[float, float, float], int]]:
    """Case, probabilities by the second judge alone, and label of sentences that it answered."""
    found = []
    for place, (case, item) in enumerate(zip(judged.cases, judged.own, strict=True)):
        if len(item.sentences) != 1 or case.label not in LABELS:
            continue
        [sentence] = item.sentences
        opinion, judgement = sentence.second_opinion, sentence.judgement
        if opinion is None or opinion.missing is not None or judgement is None:
            continue
        support = judgement.scores[Category.SUPPORTIVE]
        against = judgement.scores[Category.CONTRADICTORY]
        shares = (support, max(0.0, 1.0 - support - against), against)
        found.append((place, shares, LABELS.index(case.label)))
    return found


def errors_of(judged: Both) -> list[float]:
    """Expected calibration error of the second judge's support: raw, and fitted on the other half.

    The halves are of the evidence, so that no evidence is in both.
    """
    rows = _own_words(judged)
    if not rows:
        return []
    groups = list(dict.fromkeys(judged.cases[place].evidence for place, _, _ in rows))
    half = [groups.index(judged.cases[place].evidence) % 2 for place, _, _ in rows]
    fitted = list(rows)
    for part in (0, 1):
        rest = [row for row, of in zip(rows, half, strict=True) if of != part]
        by = fit([shares for _, shares, _ in rest], [label for _, _, label in rest])
        fitted = [
            (place, by.shares(shares), label) if of == part else row
            for row, (place, shares, label), of in zip(fitted, rows, half, strict=True)
        ]
    return [
        _expected_calibration_error(
            [shares[0] for _, shares, _ in some], [label == 0 for _, _, label in some]
        )
        for some in (rows, fitted)
    ]


def _expected_calibration_error(chances: Sequence[float], right: Sequence[bool]) -> float:
    """Mean gap between probability and share of right ones over ten bins of equal width."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for chance, held in zip(chances, right, strict=True):
        bins[min(BINS - 1, int(chance * BINS))].append((chance, held))
    gaps = (
        abs(sum(chance for chance, _ in items) - sum(held for _, held in items)) for items in bins
    )
    return sum(gaps) / max(1, len(chances))


def _print(name: str, judged: Both) -> None:
    print(f"\n| {name}: share | asked | of | balanced | AUC | s a sentence |")
    print("|--:|--:|--:|--:|--:|--:|")
    for point in curve(judged):
        balanced, auc = (
            "–" if value is None else str(value) for value in (point.balanced, point.auc)
        )
        print(
            f"| {point.share:g} | {point.asked} | {point.sentences} | {balanced} | {auc} "
            f"| {point.seconds:.2f} |",
            flush=True,
        )
    rows = _own_words(judged)
    if rows:
        truth = np.array([label == 0 for _, _, label in rows])
        alone = area(np.array([shares[0] for _, shares, _ in rows]), truth)
        before, after = errors_of(judged)
        print(
            f"\nThe second judge alone, {len(rows)} sentences: AUC {alone:.3f}, expected "
            f"calibration error {before:.3f}, fitted on the other half {after:.3f}"
        )
    missing = Counter(
        sentence.second_opinion.missing
        for item in judged.both
        for sentence in item.sentences
        if sentence.second_opinion is not None and sentence.second_opinion.missing
    )
    for why, count in missing.most_common():
        print(f"First verdict kept on {count} sentences: {why}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="What a second judge is worth, by its share.")
    todo = parser.add_mutually_exclusive_group(required=True)
    todo.add_argument("--second", help="the second judge, by name")
    todo.add_argument("--labelled", type=Path, help="write the sentences here for `tune`")
    parser.add_argument("--base-url", help="endpoint of a chat model")
    parser.add_argument("--detail", action="store_true", help="ask a chat model for words, too")
    parser.add_argument("--concurrency", type=int, default=8, help="calls of a chat model at once")
    parser.add_argument("--judge", default="onnx", help="the first judge, by name")
    parser.add_argument("--scores", type=Path, help="a file that keeps the first judge's scores")
    parser.add_argument("--data", type=Path, help="the folder of public data")
    parser.add_argument("--sets", help=f"of {', '.join((*COMPANIES, *STATEMENTS))}")
    parser.add_argument("--limit", type=int, default=0, help="sentences of a set; 0 for all")
    parser.add_argument("--band", type=float, default=1.0, help="distance from another verdict")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    sets = (options.sets or ",".join((*COMPANIES, *(STATEMENTS if options.data else ())))).split(
        ","
    )
    chosen = {
        name: cases_of(name, options.data or Path(), options.limit, seed=options.seed)
        for name in sets
    }
    if options.labelled:
        lines = [labelled_line(case) for cases in chosen.values() for case in cases]
        options.labelled.write_text("".join(lines), encoding="utf-8")
        return 0
    judge = create_nli(options.judge)
    second = create_nli(options.second, **_chat_options(options))
    judge.warm_up()
    second.warm_up()
    inner_first = as_grounding(judge)
    first = (
        KeptScores(inner_first, options.scores)
        if options.scores
        else RememberedGrounding(inner_first)
    )
    weighing = getattr(judge, "weighing", None)
    print(provenance(judge=options.judge, model=options.second, seed=options.seed))
    print(f"{judge.name}, then {second.name} within {options.band:g}, --limit {options.limit}")
    for name, cases in chosen.items():
        _print(name, judged_by_both(cases, first, second, options.second, options.band, weighing))
    if isinstance(second, ChatJudge):
        counts = second.in_use().counts
        print("\n" + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
        second.close()
    return 0


def labelled_line(case: Case) -> str:
    """A case as a line of JSON that ``guardrail tune --labelled`` reads."""
    row = {
        "question": case.question,
        "answer": case.text,
        "evidence": [
            {"triple": [item.subject, item.property, item.value]}
            if isinstance(item, Triple)
            else item.model_dump(mode="json")
            for item in case.evidence
        ],
        "label": case.label,
    }
    return json.dumps(row, ensure_ascii=False) + "\n"


def _chat_options(options: argparse.Namespace) -> dict[str, object]:
    if not options.second.startswith("chat:"):
        return {}
    settings = ChatSettings(base_url=options.base_url, concurrency=options.concurrency)
    return {"settings": settings, "detail": options.detail, "timeout_s": PATIENCE_S}


if __name__ == "__main__":
    with exit_on_error():
        sys.exit(main())
