"""Calibrates and measures what a judge says of statements: verdicts, words and citations."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.classification import area
from guardrail.core.types import Grounding, Verdict
from judges.base import GroundingItem, GroundingJudge
from judges.calibration import Calibration
from training.statements import Statement

__all__ = [
    "KINDS",
    "Grounded",
    "calibrated",
    "fit_calibration",
    "fit_calibrations",
    "ground",
    "kinds_table",
    "measure_grounding",
    "measured_table",
]

KINDS = ("triples", "passages")

LEAST_OF_A_KIND = 20
"""Statements of a kind that the table tells of; fewer say more of chance than of the judge."""

_LABEL = {Verdict.SUPPORTED: 0, Verdict.UNSUPPORTED: 1, Verdict.CONTRADICTED: 2}


class Grounded(NamedTuple):
    """What was measured on statements of one kind of evidence.

    Attributes:
        rows: Number of statements.
        balanced: Balanced accuracy of supported against not, over statements with a claim.
        auc: Area under the curve of the probability of support, over the same.
        true_passed: Share of supported statements called so.
        false_passed: Share of unsupported and contradicted ones called supported.
        contradicted_precision: Of statements called contradicted, those that are.
        contradicted_recall: Of contradicted statements, those called so.
        no_claim_f1: F1 of ``no_claim``, over all statements.
        word_f1: F1 of words that carry the problem, over unsupported and contradicted statements.
        citation_f1: F1 of the statements cited, over all that cite any.
    """

    rows: int
    balanced: float
    auc: float
    true_passed: float
    false_passed: float
    contradicted_precision: float
    contradicted_recall: float
    no_claim_f1: float
    word_f1: float
    citation_f1: float


def ground(judge: GroundingJudge, statements: Sequence[Statement]) -> list[Grounding]:
    """A judge's scores of statements, in order, each with all of its evidence."""
    return judge.ground(
        [
            GroundingItem(
                statement.statements,
                statement.sentence,
                statement.before,
                structured=statement.triples,
                windows=statement.windows,
            )
            for statement in statements
        ]
    )


class Labelled(Protocol):
    """A sentence whose verdict is known, of one kind of evidence."""

    @property
    def triples(self) -> bool: ...
    @property
    def verdict(self) -> Verdict: ...


def fit_calibrations(
    groundings: Sequence[Grounding], statements: Sequence[Labelled]
) -> dict[str, Calibration]:
    """Fit temperature and bias of each kind of evidence, so that 0.5 is the best threshold.

    Supported statements and the others count alike.

    Args:
        groundings: What the judge says without any calibration.
        statements: The statements.
    """
    found = {}
    for kind in KINDS:
        picked = [
            (grounding, statement)
            for grounding, statement in zip(groundings, statements, strict=True)
            if statement.triples == (kind == "triples") and statement.verdict in _LABEL
        ]
        if picked:
            logits = np.log(np.maximum([_claimed(item) for item, _ in picked], 1e-6))
            labels = np.array([_LABEL[statement.verdict] for _, statement in picked])
            found[kind] = fit_calibration(logits, labels)
    return found


def _claimed(grounding: Grounding) -> list[float]:
    """Probabilities of supported, unsupported and contradicted, given that a claim is made."""
    some = max(1e-9, 1.0 - grounding.no_claim)
    return [grounding.supported / some, grounding.unsupported / some, grounding.contradicted / some]


def fit_calibration(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> Calibration:
    """Maximum likelihood of temperature and bias; supported rows and the others weigh a half each.

    Args:
        logits: Logarithms of the probabilities of the three verdicts, [n, 3].
        labels: Right verdicts, [n].
    """
    values, truth = torch.tensor(logits), torch.tensor(labels)
    supported = truth == 0
    weights = torch.where(supported, 0.5 / supported.sum(), 0.5 / (~supported).sum())
    log_t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([log_t, bias], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        rows = torch.log_softmax((values + bias) / log_t.exp(), -1)
        value = -(weights * rows[torch.arange(len(truth)), truth]).sum() + 1e-4 * (bias**2).sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    first, second, third = (bias - bias.mean()).tolist()
    return Calibration(
        temperature=round(math.exp(float(log_t)), 4),
        bias=(round(first, 4), round(second, 4), round(third, 4)),
    )


def calibrated(grounding: Grounding, calibration: Calibration) -> Grounding:
    """A grounding with other calibration, from one without any."""
    logits = np.log(np.maximum(_claimed(grounding), 1e-9)) + np.array(calibration.bias)
    scaled = np.exp((logits - logits.max()) / calibration.temperature)
    some = 1.0 - grounding.no_claim
    supported, unsupported, contradicted = (scaled / scaled.sum() * some).tolist()
    changed = {
        "supported": supported,
        "unsupported": unsupported,
        "contradicted": contradicted,
    }
    return grounding.model_copy(update=changed)


def measure_grounding(
    groundings: Sequence[Grounding], statements: Sequence[Statement]
) -> dict[str, Grounded]:
    """Measure by kind of evidence: ``triples``, ``passages`` and ``all``.

    Args:
        groundings: What the judge says, calibrated.
        statements: The statements.
    """
    pairs = list(zip(groundings, statements, strict=True))
    parts = {
        "triples": [pair for pair in pairs if pair[1].triples],
        "passages": [pair for pair in pairs if not pair[1].triples],
        "all": pairs,
    }
    return {name: _measure(part) for name, part in parts.items() if part}


def _measure(pairs: Sequence[tuple[Grounding, Statement]]) -> Grounded:
    claims = [(item, s) for item, s in pairs if s.verdict is not Verdict.NO_CLAIM]
    truth = np.array([s.verdict is Verdict.SUPPORTED for _, s in claims])
    passed = np.array([item.verdict in (Verdict.SUPPORTED, Verdict.NO_CLAIM) for item, _ in claims])
    scores = np.array([item.supported / max(1e-9, 1.0 - item.no_claim) for item, _ in claims])
    true_passed, false_passed = float(passed[truth].mean()), float(passed[~truth].mean())
    called = [item.verdict is Verdict.CONTRADICTED for item, _ in claims]
    against = [s.verdict is Verdict.CONTRADICTED for _, s in claims]
    hits = sum(a and b for a, b in zip(called, against, strict=True))
    none = [(item.verdict is Verdict.NO_CLAIM, s.verdict is Verdict.NO_CLAIM) for item, s in pairs]
    return Grounded(
        rows=len(pairs),
        balanced=(true_passed + 1.0 - false_passed) / 2.0,
        auc=area(scores, truth),
        true_passed=true_passed,
        false_passed=false_passed,
        contradicted_precision=hits / max(1, sum(called)),
        contradicted_recall=hits / max(1, sum(against)),
        no_claim_f1=_f1(none),
        word_f1=_f1([pair for item, s in claims for pair in _words(item, s)]),
        citation_f1=_f1([pair for item, s in claims if s.cited for pair in _citations(item, s)]),
    )


def _words(grounding: Grounding, statement: Statement) -> list[tuple[bool, bool]]:
    """Called and right per word, of a statement with a problem."""
    if statement.span is None:
        return []
    first, last = statement.span
    return [
        (word.missing + word.contradicted >= 0.5, first < word.end and word.start < last)
        for word in grounding.words
    ]


def _citations(grounding: Grounding, statement: Statement) -> list[tuple[bool, bool]]:
    """Called and right per statement of the evidence."""
    return [
        (score is not None and score.carries + score.conflicts >= 0.5, place in statement.cited)
        for place, score in enumerate(grounding.statements)
    ]


def _f1(pairs: Sequence[tuple[bool, bool]]) -> float:
    hits = sum(called and right for called, right in pairs)
    total = sum(called for called, _ in pairs) + sum(right for _, right in pairs)
    return 2 * hits / total if total else 0.0


def measured_table(measured: Mapping[str, Grounded]) -> str:
    """The measurements as a Markdown table, a column a kind of evidence."""
    names = [name.replace("_", " ") for name in Grounded._fields]
    lines = ["| | " + " | ".join(measured) + " |", "|---|" + "--:|" * len(measured)]
    for place, name in enumerate(names):
        cells = [
            f"{item[place]:,}" if place == 0 else f"{item[place]:.3f}" for item in measured.values()
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def kinds_table(groundings: Sequence[Grounding], statements: Sequence[Statement]) -> str:
    """Balanced accuracy by kind of phenomenon, worst first, in Markdown; rare kinds stay out."""
    parts: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for grounding, statement in zip(groundings, statements, strict=True):
        if statement.verdict is not Verdict.NO_CLAIM:
            passed = grounding.verdict in (Verdict.SUPPORTED, Verdict.NO_CLAIM)
            parts[statement.kind].append((passed, statement.verdict is Verdict.SUPPORTED))
    rows = []
    for kind, pairs in parts.items():
        true = [passed for passed, right in pairs if right]
        false = [passed for passed, right in pairs if not right]
        if true and false and len(pairs) >= LEAST_OF_A_KIND:
            let, kept = sum(false) / len(false), sum(true) / len(true)
            rows.append(((kept + 1 - let) / 2, kind, len(pairs), kept, let))
    lines = ["| kind | rows | balanced | true passed | false passed |", "|---|--:|--:|--:|--:|"]
    lines += [
        f"| {kind.replace('_', ' ')} | {count} | {balanced:.3f} | {kept:.3f} | {let:.3f} |"
        for balanced, kind, count, kept, let in sorted(rows)
    ]
    return "\n".join(lines)
