"""Measures a judge by AUC, all evidence given, without checks: ``python -m training measure``."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.caqa.build import build_rows
from benchmarks.caqa.sources import assemble
from benchmarks.classification import area
from guardrail.core.types import Grounding, Verdict
from judges.base import AttributionItem, Pair
from judges.folder import HEADS
from judges.onnx import SECOND, open_judge
from training.data import load_nli
from training.gathered import load_gathered
from training.grounding import KINDS, ground
from training.recipe import SEED
from training.rows import Row
from training.statements import Statement, shared_statements, statements_in

__all__ = ["UNSEEN", "areas", "areas_table", "pairs_table", "write_card"]

CARD = Path(__file__).with_name("card.md")

UNSEEN = Path(__file__).parents[1] / "benchmarks" / "unseen"
"""Sentences of authors from whom the judge never learns."""


def areas_table(folder: Path, data: Path, *, most: int | None = None) -> str:
    """AUC of support and of contradiction by set and kind of evidence, in Markdown.

    Args:
        folder: The judge.
        data: The data folder.
        most: Most evidence sets of each; all by default.
    """
    sets = {part: list(shared_statements(data, part)) for part in ("valid", "valid_hard")}
    for path in sorted(UNSEEN.glob("*.jsonl")):
        sets[f"unseen {path.stem}"] = [
            s for s in statements_in(UNSEEN) if s.group.startswith(path.stem)
        ]
    judge = open_judge(folder)
    lines = [f"| {judge.name} | rows | triples | passages |", "|---|--:|--:|--:|"]
    for name, statements in sets.items():
        some = _some(statements, most)
        measured = areas(ground(judge, some), some)
        cells = [" ".join(f"{value:.3f}" for value in measured[kind]) for kind in KINDS]
        lines.append(f"| {name} | {len(some):,} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def pairs_table(folder: Path, data: Path, *, most: int = 300) -> str:
    """Accuracy on NLI validation rows and on CAQA test rows, in Markdown.

    Args:
        folder: The judge.
        data: The data folder.
        most: Most rows of each set.
    """
    judge = open_judge(folder)
    chooser = random.Random(0)
    by_source: dict[str, list[Row]] = defaultdict(list)
    for row in (*load_nli(data).validation, *load_gathered(data, seed=SEED).validation):
        if row.nli >= 0 and not row.statements:
            by_source[row.source].append(row)
    lines = ["| rows from | rows | accuracy |", "|---|--:|--:|"]
    for source, rows in sorted(by_source.items()):
        some = chooser.sample(rows, min(most, len(rows)))
        scores = judge.judge([Pair(row.premise, row.hypothesis) for row in some])
        right = [
            score.label == HEADS["nli"][row.nli] for score, row in zip(scores, some, strict=True)
        ]
        lines.append(f"| {source} | {len(some)} | {sum(right) / len(some):.3f} |")
    made = list(build_rows(assemble(data), n=most, seed=SEED, split="test"))
    items = [AttributionItem(one.question, one.answer, tuple(one.evidence)) for one in made]
    found = judge.attribute(items)
    right = [one.category == row.category for one, row in zip(found, made, strict=True)]
    lines.append(f"| CAQA, category | {len(made)} | {sum(right) / len(made):.3f} |")
    return "\n".join(lines)


def write_card(folder: Path, measured: str) -> None:
    """Write the model card, ``README.md`` of the folder of the larger model.

    Args:
        folder: The judge, calibrated.
        measured: Tables in Markdown.
    """
    calibrated = json.loads((folder / "judge.json").read_text("utf-8")).get("calibrated")
    folder = folder / SECOND if (folder / SECOND).is_dir() else folder
    card = json.loads((folder / "judge.json").read_text("utf-8"))
    eight = ", ".join(f"{name} {value}" for name, value in card["eight_bits"].items())
    text = CARD.read_text("utf-8").format(
        version=card["version"],
        measured=measured,
        eight_bits=eight,
        calibrated=calibrated or "not calibrated",
    )
    (folder / "README.md").write_text(text, encoding="utf-8")


def areas(
    groundings: Sequence[Grounding], statements: Sequence[Statement]
) -> dict[str, tuple[float, float]]:
    """AUC of support, and of contradiction against support, by kind of evidence.

    Sentences without a claim are left out; a probability of no claim counts as support, as such
    a sentence passes.
    """
    found = {}
    for kind in KINDS:
        some = [
            (grounding, statement.verdict)
            for grounding, statement in zip(groundings, statements, strict=True)
            if statement.triples is (kind == KINDS[0]) and statement.verdict is not Verdict.NO_CLAIM
        ]
        support = np.array([item.supported + item.no_claim for item, _ in some])
        against = np.array([item.contradicted for item, _ in some])
        true = np.array([verdict is Verdict.SUPPORTED for _, verdict in some], bool)
        wrong = np.array([verdict is Verdict.CONTRADICTED for _, verdict in some], bool)
        either = true | wrong
        if true.any() and wrong.any():
            found[kind] = (area(support, true), area(against[either], wrong[either]))
        else:
            found[kind] = (float("nan"), float("nan"))
    return found


def _some(statements: Sequence[Statement], most: int | None) -> list[Statement]:
    groups = sorted({item.group for item in statements})
    if most is not None and len(groups) > most:
        groups = random.Random(0).sample(groups, most)
    return [item for item in statements if item.group in set(groups)]
