"""SCK's tables, and the registry of the papers' benchmarks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from typer.testing import CliRunner

from benchmarks.provenance import Provenance
from benchmarks.sck.cli import intent_quality
from benchmarks.sck.judged import JudgedScorer
from benchmarks.sck.tables import labelled_answers, table_5
from guardrail.cli import app
from judges.encoder import create_encoder
from judges.registry import create_nli

ORIGIN = Provenance(judge="j-1", model="none", seed=0, commit="abc", date="2026-01-01")
ROWS = [
    ("The lamp weighs 2 kg.", "supported"),
    ("The lamp was designed by Ann Lee in Oslo.", "unsupported"),
    ("Hello!", "no_claim"),
]


def test_table_5_compares_both_scores_with_labels(tmp_path: Path) -> None:
    (tmp_path / "statements").mkdir()
    evidence = [{"triple": ["Lamp", "weight", "2 kg"]}, {"passage": "The lamp weighs 2 kg."}]
    with gzip.open(tmp_path / "statements" / "valid.jsonl.gz", "wt", encoding="utf-8") as file:
        for sentence, label in ROWS:
            row = {"question": "How heavy is the lamp?", "evidence": evidence}
            file.write(json.dumps(row | {"sentence": sentence, "label": label}) + "\n")
    answers = labelled_answers(tmp_path)
    assert [answer.right for answer in answers] == [True, False]
    scorer = JudgedScorer(create_encoder(), create_nli("onnx"))
    table = table_5(answers, scorer.score([answer.row for answer in answers]), ORIGIN)
    last = [cell.strip() for cell in table.splitlines()[-1].split("|")]
    assert last[1:3] == ["all", "2"]
    assert last[6] == "1.000"


def test_requests_have_the_intent_of_the_question_behind_them() -> None:
    rows = [
        {"question": "Compare iPhone 13, Pixel 6, and Galaxy S23", "category": "comparison"},
        {"question": "Explain why the sky turns red at sunset.", "category": "reason"},
        {"question": "List the countries that border Austria.", "category": "factoid"},
        {"question": "Tell me about Ada Lovelace.", "category": "evidence-based"},
        {"question": "The museum is closed on Mondays.", "category": "not-a-question"},
    ]
    assert intent_quality(rows, create_encoder().intents)["accuracy"] == 1


def test_the_registry_holds_the_four_papers() -> None:
    shown = CliRunner().invoke(app, ["bench", "--help"]).output
    for name in ("biokalma", "caqa", "sck", "conner"):
        assert name in shown
        assert CliRunner().invoke(app, ["bench", name, "--help"]).exit_code == 0
