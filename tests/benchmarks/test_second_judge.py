"""The curve of a second judge: it begins at the first one's accuracy and ends at both's."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.second_judge import main
from guardrail import Passage
from guardrail.core.types import NLIScores, Verdict
from guardrail.evaluation.rows import read_labelled
from judges.base import NLITraits
from tests.guardrail.scripted import Ready

MILL, BARN = "Three floors make up the building.", "Red paint covers it."
CHANCES = {
    "The mill has three floors.": 0.45, "The mill has four floors indeed.": 0.55,
    "The mill is made of sand.": 0.6, "The mill is old.": 0.98, "The mill is new.": 0.03,
    "The barn is red.": 0.44,
}  # fmt: skip
TRUE = {"The mill has three floors.", "The mill is old.", "The barn is red."}


class Unsure(Ready):
    """Gives the chances of the table."""

    name = "unsure-1"
    traits = NLITraits()

    def judge(self, pairs):
        found = []
        for pair in pairs:
            chance = CHANCES.get(pair.hypothesis, 0.5)
            found.append(NLIScores(entailment=chance, neutral=1 - chance, contradiction=0.0))
        return found


class Right(Unsure):
    """Knows what is true."""

    name = "right-1"

    def judge(self, pairs):
        true = [float(pair.hypothesis in TRUE) for pair in pairs]
        return [NLIScores(entailment=it, neutral=1 - it, contradiction=0.0) for it in true]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "statements").mkdir()
    with gzip.open(tmp_path / "statements" / "valid.jsonl.gz", "wt") as file:
        for text in CHANCES:
            evidence, label = BARN if "barn" in text else MILL, "supported" if text in TRUE else ""
            row = {"set": evidence, "evidence": [{"passage": evidence}], "sentence": text}
            others = {"question": "", "context": "", "span": "", "cites": []}
            print(json.dumps(row | others | {"label": label or "unsupported"}), file=file)
    return tmp_path


def test_the_command_prints_the_curve_of_any_judge(data: Path, capsys):
    judges = ["--judge", f"{__name__}:Unsure", "--second", f"{__name__}:Right"]
    assert main(["--data", str(data), "--sets", "valid", *judges, "--band", "0.3"]) == 0
    printed = capsys.readouterr().out
    assert "unsure-1, then right-1 within 0.3" in printed
    assert "| 1 | 4 | 6 | 1.000 (1.00 to 1.00) | 1.000 (1.00 to 1.00) |" in printed


def test_its_sentences_are_labelled_answers_for_tune(data: Path, tmp_path: Path):
    file = tmp_path / "labelled.jsonl"
    assert main(["--labelled", str(file), "--data", str(data), "--sets", "valid"]) == 0
    rows = read_labelled(file)
    assert {row.answer for row in rows if row.label is Verdict.SUPPORTED} == TRUE
    assert {row.evidence for row in rows} == {(Passage(MILL),), (Passage(BARN),)}
    assert len({row.group for row in rows}) == 2
