"""Fits how much a judge's probabilities and the findings of checks weigh in a verdict.

``python -m training.weighing --data DATA [--judge FOLDER] [--write]`` runs the engine over the
held-out statements, the project's own among them, fits two logistic regressions for each kind of
evidence, prints what they and the thresholds are worth on evidence sets that they were not fitted
on, and with ``--write`` puts the weights into ``judge.json``.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import held_out
from guardrail.core.types import Evidence, Passage, Strictness, Triple, Verdict
from guardrail.core.types.weighing import Weighed, Weighing, Weights, features_of
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import parse
from guardrail.verdict.claims import GroundingRequest
from guardrail.verdict.grounder import Grounder
from judges.onnx import SHIPPED, OnnxJudge
from judges.sums import write_sums
from training.statements import is_held_out, read_own_rows, read_statement_rows

__all__ = ["Seen", "fitted", "main", "seen"]

RARE = 12
"""A feature met in fewer rows than this gets no weight."""

STRENGTH = 0.5
"""Inverse strength of the ridge penalty."""

KINDS = ("triples", "passages")

LABELS = (Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)


class Seen(NamedTuple):
    """A labelled sentence as the engine saw it."""

    group: str
    kind: str
    features: Mapping[str, float]
    label: Verdict


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
                    yield Seen(group, kind, features_of(grounding, findings), label)


TOGETHER = 64
"""Answers that go through the engine at once."""


def fitted(rows: Sequence[Seen]) -> Weighing:
    """Fit the weights of both kinds of evidence."""
    return Weighing(**{kind: _weights([row for row in rows if row.kind == kind]) for kind in KINDS})


def _weights(rows: Sequence[Seen]) -> Weights:
    return Weights(
        support=_logistic(rows, Verdict.SUPPORTED, without="contradiction"),
        contradiction=_logistic(rows, Verdict.CONTRADICTED, without=""),
    )


def _logistic(rows: Sequence[Seen], label: Verdict, *, without: str) -> dict[str, float]:
    from sklearn.linear_model import LogisticRegression

    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        for name, value in row.features.items():
            counts[name] += value != 0.0
    names = sorted(
        name for name, count in counts.items() if count >= RARE and name not in ("bias", without)
    )
    table = np.array([[row.features.get(name, 0.0) for name in names] for row in rows])
    model = LogisticRegression(C=STRENGTH, max_iter=1_000)
    model.fit(table, [row.label is label for row in rows])
    found = {"bias": float(model.intercept_[0])}
    found |= dict(zip(names, map(float, model.coef_[0]), strict=True))
    return {name: round(weight, 3) for name, weight in found.items()}


def crossed(rows: Sequence[Seen], folds: int = 5) -> list[Weighed]:
    """Weigh each evidence set by what is fitted on the others."""
    place = [
        next((k for k in range(1, folds) if held_out(row.group, 1 / folds, salt=f"fold {k}")), 0)
        for row in rows
    ]
    result: list[Weighed] = [Weighed(0.0, 0.0)] * len(rows)
    for fold in range(folds):
        weighing = fitted([row for row, at in zip(rows, place, strict=True) if at != fold])
        for number, row in enumerate(rows):
            if place[number] == fold:
                result[number] = getattr(weighing, row.kind).weigh(row.features)
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(prog="python -m training.weighing", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the data folder")
    parser.add_argument("--judge", type=Path, default=SHIPPED, help="folder of the judge")
    parser.add_argument("--write", action="store_true", help="put the weights into judge.json")
    options = parser.parse_args(arguments)
    grounder = Grounder(OnnxJudge(options.judge))
    raw = [
        row for part in ("valid", "valid_hard") for row in read_statement_rows(options.data, part)
    ]
    raw += [row for row in read_own_rows() if is_held_out(row["set"])]
    rows = list(seen(grounder, raw))
    weighed = crossed(rows)
    alone = Weights(support={"support": 1.0}, contradiction={"contradiction": 1.0})
    bare = [alone.weigh(row.features) for row in rows]
    for kind in KINDS:
        places = [i for i, row in enumerate(rows) if row.kind == kind]
        labels = [rows[i].label for i in places]
        print(f"\n{kind}: {len(places):,} sentences that claim something")
        for name, values in (("judge alone", bare), ("weighed", weighed)):
            print(_table(name, [values[i] for i in places], labels))
    weighing = fitted(rows)
    for kind in KINDS:
        for of in ("support", "contradiction"):
            print(kind, of, getattr(getattr(weighing, kind), of))
    if options.write:
        path = options.judge / "judge.json"
        card = json.loads(path.read_text("utf-8"))
        card["weighing"] = weighing.model_dump()
        path.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
        write_sums(options.judge)


def _table(name: str, values: Sequence[Weighed], labels: Sequence[Verdict]) -> str:
    support = np.array([value.support for value in values])
    against = np.array([value.contradiction for value in values])
    true = np.array([label is Verdict.SUPPORTED for label in labels])
    wrong = np.array([label is Verdict.CONTRADICTED for label in labels])
    passed = support >= 0.5
    balanced = (passed[true].mean() + (~passed[~true]).mean()) / 2
    lines = [f"{name}: balanced accuracy {balanced:.3f}"]
    for preset in Strictness:
        at = preset.thresholds
        verdicts = [at.verdict(*value) for value in values]
        told = np.array([verdict is Verdict.CONTRADICTED for verdict in verdicts])
        acted = told & (against >= at.removal)
        shares = {
            "true marked": _share(support < at.support, true),
            "true called contradicted": _share(told, true),
            "true removed": _share(acted, true),
            "contradictions named": _share(told, wrong),
            "removed": _share(acted, wrong),
            "precision": _share(wrong, told),
            "false passed": _share(support >= at.support, ~true),
        }
        lines.append(f"  {preset.value}: {shares}")
    for least in (0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9):
        told = (against >= least) & (against > support)
        lines.append(
            f"  contradiction from {least}: of the true {_share(told, true)}, of the contradicted "
            f"{_share(told, wrong)}, precision {_share(wrong, told)}"
        )
    return "\n".join(lines)


def _share(picked: NDArray[np.bool_], among: NDArray[np.bool_]) -> str:
    return f"{picked[among].mean():.3f}" if among.any() else "–"


if __name__ == "__main__":
    main()
