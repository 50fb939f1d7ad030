"""Calibrates a judge on statements that never train: ``python -m training calibrate``.

The engine runs once over the held-out statements. Its probabilities are calibrated for each kind of
evidence, the weights of the judge and of the checks are fitted by two logistic regressions each,
and thresholds are found: one from which a contradiction is reported, and one from which a policy
acts on it. What it prints is measured on evidence sets that it was not fitted on.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.classification import area
from benchmarks.data import held_out
from guardrail.core.types import (
    Evidence,
    Finding,
    Grounding,
    Passage,
    Strictness,
    Triple,
    Verdict,
    VerdictThresholds,
)
from guardrail.core.types.judging import Weighed, Weighing, Weights, features_of
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import parse
from guardrail.verdict.claims import GroundingRequest
from guardrail.verdict.grounder import Grounder
from judges.base import Pair
from judges.evidence_judge import PAIRS, EvidenceJudge
from judges.onnx import SECOND, OnnxJudge, agreed, open_judge
from judges.session import write_sums
from judges.settings import Calibration
from training.data import load_nli
from training.grounding import KINDS, calibrated, fit_calibration, fit_calibrations
from training.rows import Row
from training.statements import is_held_out, read_own_rows, read_statement_rows

__all__ = ["Seen", "calibrate", "fitted", "seen"]

RARE = 12
"""A feature met in fewer rows than this gets no weight."""

STRENGTH = 0.5
"""Inverse strength of the ridge penalty."""

REPORTING, ACTING = 0.85, 0.92
"""Precision at which a contradiction is reported, and at which a policy acts on it."""

LABELS = (Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)

PAIR_ROWS = 100
"""Validation rows of each NLI set that pairs are calibrated on."""

TOGETHER = 64
"""Answers that go through the engine at once."""


class Seen(NamedTuple):
    """A labelled sentence as the engine saw it.

    Attributes:
        group: Its evidence set.
        kind: Kind of its evidence.
        grounding: What the judge says, without calibration.
        findings: What the checks found.
        verdict: The right verdict.
    """

    group: str
    kind: str
    grounding: Grounding
    findings: tuple[Finding, ...]
    verdict: Verdict

    @property
    def triples(self) -> bool:
        """True if the evidence is triples."""
        return self.kind == KINDS[0]

    @property
    def features(self) -> dict[str, float]:
        """What is weighed."""
        return features_of(self.grounding, self.findings)


def calibrate(folder: Path, data: Path, *, most: int | None = None) -> str:
    """Calibrate the judge of a folder and write its ``judge.json``.

    Of an ensemble the pooled verdicts are calibrated; calibrate its parts before.

    Args:
        folder: The judge.
        data: The data folder.
        most: Most statements; all by default. Evidence sets are taken whole.

    Returns:
        What was measured, each part on what it was not fitted on.
    """
    path = folder / "judge.json"
    card = json.loads(path.read_text("utf-8"))
    pooled = (folder / SECOND).is_dir()
    target = card.setdefault("ensemble", {}) if pooled else card
    target["grounding"] = {}
    sure = target.pop("sure", None)
    card |= {"weighing": None, "thresholds": {}}
    _write(folder, card)
    judge = open_judge(folder)
    statements = _held_out(data, most)
    rows = list(seen(Grounder(judge), statements))
    alone = rows if sure is None else list(seen(Grounder(OnnxJudge(folder)), statements))
    crossed_rows = _gated(_crossed_calibration(rows), alone, sure)
    fitted_weights = _crossed_weights(crossed_rows)
    usual = [getattr(Weighing(), row.kind).weigh(row.features) for row in crossed_rows]
    better = _quality(fitted_weights, rows) > _quality(usual, rows)
    weighed = fitted_weights if better else usual
    name = "weighed, fitted" if better else "weighed as without fitted weights, which are worse"
    lines = [_report(crossed_rows, weighed, name)]
    calibrations = fit_calibrations([row.grounding for row in rows], rows)
    final = _gated([_calibrated(row, calibrations) for row in rows], alone, sure)
    thresholds = {
        kind: thresholds_of(
            [value for value, row in zip(weighed, rows, strict=True) if row.kind == kind],
            [row.verdict for row in rows if row.kind == kind],
        )
        for kind in KINDS
    }
    lines += [f"{kind}: {item.model_dump()}" for kind, item in thresholds.items()]
    if isinstance(judge, EvidenceJudge):
        calibrations[PAIRS] = _pair_calibration(judge, data)
    target["grounding"] = {kind: item.model_dump() for kind, item in calibrations.items()}
    if sure is not None:
        target["sure"] = sure
    card["weighing"] = fitted(final).model_dump() if better else None
    card["calibrated"] = "\n".join(lines).strip()
    card["thresholds"] = {kind: item.model_dump() for kind, item in thresholds.items()}
    _write(folder, card)
    return "\n".join(lines)


def _gated(pooled: Sequence[Seen], alone: Sequence[Seen], sure: float | None) -> list[Seen]:
    """What an ensemble says: its smaller model alone where that is sure."""
    if sure is None:
        return list(pooled)
    return [
        both._replace(grounding=agreed(one.grounding, both.grounding, sure=sure))
        for one, both in zip(alone, pooled, strict=True)
    ]


def _pair_calibration(judge: EvidenceJudge, data: Path) -> Calibration:
    """Calibration of NLI pairs, on validation rows of each NLI set alike."""
    by_source: dict[str, list[Row]] = defaultdict(list)
    for row in load_nli(data).validation:
        if row.nli >= 0:
            by_source[row.source].append(row)
    chooser = random.Random(0)
    rows = [
        row
        for some in by_source.values()
        for row in chooser.sample(some, min(PAIR_ROWS, len(some)))
    ]
    scores = judge.judge([Pair(row.premise, row.hypothesis) for row in rows])
    chances = np.array([[s.entailment, s.neutral, s.contradiction] for s in scores])
    labels = np.array([row.nli for row in rows])
    return fit_calibration(np.log(np.maximum(chances, 1e-6)), labels)


def _write(folder: Path, card: Mapping[str, object]) -> None:
    text = json.dumps(card, indent=1) + "\n"
    (folder / "judge.json").write_text(text, encoding="utf-8")
    write_sums(folder)


def _held_out(data: Path, most: int | None) -> list[Mapping[str, object]]:
    """The held-out statements of the data folder and of the project, some sets of them."""
    rows: list[Mapping[str, object]] = [
        row for part in ("valid", "valid_hard") for row in read_statement_rows(data, part)
    ]
    rows += [row for row in read_own_rows() if is_held_out(row["set"])]
    if most is None:
        return rows
    sets: dict[str, list[Mapping[str, object]]] = defaultdict(list)
    for row in rows:
        sets[str(row["set"])].append(row)
    names = sorted(sets)
    random.Random(0).shuffle(names)
    taken: list[Mapping[str, object]] = []
    for name in names:
        if len(taken) < most:
            taken += sets[name]
    return taken


def seen(grounder: Grounder, rows: Sequence[Mapping[str, object]]) -> Iterator[Seen]:
    """Run labelled statements through the engine; those that claim nothing are left out."""
    requests, wanted = [], []
    for row in rows:
        label = Verdict(str(row["label"]))
        if label not in LABELS:
            continue
        evidence: list[Evidence] = []
        raw = row["evidence"]
        assert isinstance(raw, list)
        for item in raw:
            if "triple" in item:
                subject, name, value = item["triple"]
                evidence.append(Triple(subject=subject, property=name, value=value))
            else:
                evidence.append(Passage(text=item["passage"]))
        before = f"{row['context']} " if row["context"] else ""
        answer = parse(before + str(row["sentence"]), ())
        requests.append(
            GroundingRequest(
                str(row["question"]), answer, prepare(evidence), since=len(before.rstrip()) + 1
            )
        )
        kind = KINDS[0] if isinstance(evidence[0], Triple) else KINDS[1]
        wanted.append((str(row["set"]), kind, label))
    for start in range(0, len(requests), TOGETHER):
        asked = grounder.look(requests[start : start + TOGETHER])
        for (group, kind, label), found in zip(wanted[start:], asked, strict=False):
            for grounding, findings in found[-1:]:
                if grounding is not None and grounding.no_claim < 0.5:
                    yield Seen(group, kind, grounding, tuple(findings), label)


def fitted(rows: Sequence[Seen]) -> Weighing:
    """Fit the weights of both kinds of evidence, and go half of the way from those in the code.

    The statements have few of the errors that the checks find for certain: weights of these rows
    alone cost the people graph .016 of balanced accuracy. What contradicts or is missing keeps its
    weight, and so do all findings in the probability of contradiction.
    """
    usual = Weighing()
    return Weighing(
        **{
            kind: _halfway(
                getattr(usual, kind), _weights([row for row in rows if row.kind == kind])
            )
            for kind in KINDS
        }
    )


def _halfway(usual: Weights, found: Weights) -> Weights:
    return Weights(support=_mean(usual.support, found.support), contradiction=usual.contradiction)


def _mean(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    names = sorted({*one, *other} - {"contradicts", "missing"})
    found = {name: round((one.get(name, 0.0) + other.get(name, 0.0)) / 2, 3) for name in names}
    return found | {name: one[name] for name in ("contradicts", "missing") if name in one}


def _weights(rows: Sequence[Seen]) -> Weights:
    return Weights(
        support=_logistic(rows, Verdict.SUPPORTED, without="contradiction"),
        contradiction=_logistic(rows, Verdict.CONTRADICTED, without=""),
    )


def _logistic(rows: Sequence[Seen], label: Verdict, *, without: str) -> dict[str, float]:
    from sklearn.linear_model import LogisticRegression

    features = [row.features for row in rows]
    counts: dict[str, int] = defaultdict(int)
    for one in features:
        for name, value in one.items():
            counts[name] += value != 0.0
    names = sorted(
        name for name, count in counts.items() if count >= RARE and name not in ("bias", without)
    )
    table = np.array([[one.get(name, 0.0) for name in names] for one in features])
    model = LogisticRegression(C=STRENGTH, max_iter=1_000)
    model.fit(table, [row.verdict is label for row in rows])
    found = {"bias": float(model.intercept_[0])}
    found |= dict(zip(names, map(float, model.coef_[0]), strict=True))
    return {name: round(weight, 3) for name, weight in found.items()}


def _fold(group: str, folds: int = 5) -> int:
    return next((k for k in range(1, folds) if held_out(group, 1 / folds, salt=f"fold {k}")), 0)


def _calibrated(row: Seen, calibrations: Mapping[str, Calibration]) -> Seen:
    calibration = calibrations.get(row.kind, Calibration())
    return row._replace(grounding=calibrated(row.grounding, calibration))


def _crossed_calibration(rows: Sequence[Seen]) -> list[Seen]:
    """Calibrate each fold of the evidence sets by what is fitted on the others."""
    folds = [_fold(row.group) for row in rows]
    result = list(rows)
    for fold in set(folds):
        rest = [row for row, at in zip(rows, folds, strict=True) if at != fold]
        fitted_on_rest = fit_calibrations([row.grounding for row in rest], rest)
        for number, row in enumerate(rows):
            if folds[number] == fold:
                result[number] = _calibrated(row, fitted_on_rest)
    return result


def _crossed_weights(rows: Sequence[Seen]) -> list[Weighed]:
    """Weigh each fold of the evidence sets by what is fitted on the others."""
    folds = [_fold(row.group) for row in rows]
    result: list[Weighed] = [Weighed(0.0, 0.0)] * len(rows)
    for fold in set(folds):
        weighing = fitted([row for row, at in zip(rows, folds, strict=True) if at != fold])
        for number, row in enumerate(rows):
            if folds[number] == fold:
                result[number] = getattr(weighing, row.kind).weigh(row.features)
    return result


def thresholds_of(weighed: Sequence[Weighed], verdicts: Sequence[Verdict]) -> VerdictThresholds:
    """Thresholds at which a contradiction is reported and acted on; see ``REPORTING``.

    A precision that is never reached gives the threshold 1: nothing is reported, or acted on.
    """
    against = np.array([value.contradiction for value in weighed])
    called = np.array([value.contradiction > value.support for value in weighed])
    wrong = np.array([verdict is Verdict.CONTRADICTED for verdict in verdicts])
    found = []
    for precision in (REPORTING, ACTING):
        good = [
            least
            for least in np.arange(0.3, 1.0, 0.01)
            if (picked := called & (against >= least)).any() and wrong[picked].mean() >= precision
        ]
        found.append(round(float(min(good, default=1.0)), 2))
    return VerdictThresholds(contradiction=found[0], removal=max(found))


def _quality(weighed: Sequence[Weighed], rows: Sequence[Seen]) -> float:
    """Mean area under the curve of support and of contradiction, over the kinds of evidence."""
    found = []
    for kind in KINDS:
        pairs = [(v, row.verdict) for v, row in zip(weighed, rows, strict=True) if row.kind == kind]
        true = np.array([verdict is Verdict.SUPPORTED for _, verdict in pairs])
        wrong = np.array([verdict is Verdict.CONTRADICTED for _, verdict in pairs])
        found.append(area(np.array([value.support for value, _ in pairs]), true))
        found.append(area(np.array([value.contradiction for value, _ in pairs]), wrong))
    return float(np.mean(found))


def _report(rows: Sequence[Seen], weighed: Sequence[Weighed], title: str) -> str:
    alone = Weights(support={"support": 1.0}, contradiction={"contradiction": 1.0})
    bare = [alone.weigh(row.features) for row in rows]
    lines = []
    for kind in KINDS:
        places = [i for i, row in enumerate(rows) if row.kind == kind]
        verdicts = [rows[i].verdict for i in places]
        lines.append(f"\n{kind}: {len(places):,} sentences that claim something")
        for name, values in (("judge alone", bare), (title, weighed)):
            lines.append(_table(name, [values[i] for i in places], verdicts))
    return "\n".join(lines)


def _table(name: str, values: Sequence[Weighed], labels: Sequence[Verdict]) -> str:
    support = np.array([value.support for value in values])
    against = np.array([value.contradiction for value in values])
    true = np.array([label is Verdict.SUPPORTED for label in labels])
    wrong = np.array([label is Verdict.CONTRADICTED for label in labels])
    passed = support >= 0.5
    balanced = (passed[true].mean() + (~passed[~true]).mean()) / 2
    either = true | wrong
    areas = area(support, true), area(against[either], wrong[either])
    lines = [
        f"{name}: balanced accuracy {balanced:.3f}",
        f"  AUC of support {areas[0]:.3f}, of contradiction {areas[1]:.3f}",
    ]
    for preset in Strictness:
        at = preset.thresholds
        verdicts = [at.verdict(*value) for value in values]
        called = np.array([verdict is Verdict.CONTRADICTED for verdict in verdicts])
        acted = called & (against >= at.removal)
        shares = {
            "true marked": _share(support < at.support, true),
            "true called contradicted": _share(called, true),
            "true removed": _share(acted, true),
            "contradictions named": _share(called, wrong),
            "removed": _share(acted, wrong),
            "precision": _share(wrong, called),
            "false passed": _share(support >= at.support, ~true),
        }
        lines.append(f"  {preset.value}: {shares}")
    for least in (0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9):
        called = (against >= least) & (against > support)
        lines.append(
            f"  contradiction from {least}: of the true {_share(called, true)}, "
            f"of the contradicted {_share(called, wrong)}, precision {_share(wrong, called)}"
        )
    return "\n".join(lines)


def _share(picked: NDArray[np.bool_], among: NDArray[np.bool_]) -> str:
    return f"{picked[among].mean():.3f}" if among.any() else "–"
