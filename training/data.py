"""Loads the public NLI files into training and validation rows, split by page, table or premise."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from benchmarks.data import held_out, read_jsonl
from guardrail.core.types import Triple, linearise
from training.rows import Row, nli_row, without_overlap

__all__ = ["Split", "clean", "load_nli"]

VITAMINC_SHARE = 0.12
"""Share of VitaminC's pages held out."""


class Split(NamedTuple):
    """Rows to train on and rows that stay unseen."""

    train: list[Row]
    validation: list[Row]


def load_nli(data: Path) -> Split:
    """Load every NLI file under ``data/nli``.

    Half of the premises of SNLI and MNLI, a share of VitaminC's pages and InfoTabS's own
    development tables are held out. Training rows that share a text with them are dropped.

    Args:
        data: Folder with the subfolder ``nli``.
    """
    train: list[Row] = []
    validation: list[Row] = []
    for name in ("vitaminc_real", "vitaminc_synthetic"):
        for raw in read_jsonl(data / "nli" / f"{name}.jsonl.gz"):
            row = nli_row(clean(raw["premise"]), clean(raw["hypothesis"]), raw["label"], name)
            unseen = held_out(raw["page"], VITAMINC_SHARE, salt="vitaminc")
            (validation if unseen else train).append(row)
    for name in ("snli_dev", "mnli_dev_matched"):
        for raw in read_jsonl(data / "nli" / f"{name}.jsonl.gz"):
            row = nli_row(raw["premise"], raw["hypothesis"].strip(), raw["label"], name)
            (validation if held_out(raw["premise"], 0.5, salt=name) else train).append(row)
    for name in ("fever", "conjnli", "cad_snli"):
        for raw in read_jsonl(data / "nli" / f"{name}.jsonl.gz"):
            premise, hypothesis = clean(raw["premise"]), clean(raw["hypothesis"])
            train.append(nli_row(premise, hypothesis, raw["label"], name))
    train += _infotabs(data / "nli" / "infotabs_train.jsonl.gz", "infotabs_train")
    validation += _infotabs(data / "nli" / "infotabs_dev.jsonl.gz", "infotabs_dev")
    return Split(without_overlap(train, validation), validation)


def _infotabs(path: Path, source: str) -> list[Row]:
    """Rows of InfoTabS: the table's facts as linearised triples, against a sentence."""
    rows = []
    for raw in read_jsonl(path):
        title = clean(raw["title"])
        facts = [
            Triple(subject=title, property=clean(key), value=", ".join(map(clean, values)))
            for key, values in raw["facts"]
        ]
        rows.append(nli_row(linearise(facts), clean(raw["hypothesis"]), raw["label"], source))
    return rows


_TOKENISED = (
    ("-LRB-", "("), ("-RRB-", ")"), ("-LSB-", "["), ("-RSB-", "]"), ("-COLON-", ":"),
    ("``", '"'), ("''", '"'), ("\ufffd", " "),
    (" ,", ","), (" .", "."), (" ;", ";"), (" :", ":"), (" 's", "'s"), (" n't", "n't"),
    ("( ", "("), (" )", ")"), (" !", "!"), (" ?", "?"), (" %", "%"), ("$ ", "$"),
)  # fmt: skip
"""Marks of treebank tokenisation, undone so that the judge reads text as it is written."""


def clean(text: str) -> str:
    """Undo treebank tokenisation and fold white space."""
    for mark, written in _TOKENISED:
        text = text.replace(mark, written)
    return " ".join(text.split())
