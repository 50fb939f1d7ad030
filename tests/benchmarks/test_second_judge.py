"""The curve of a second judge: it begins at the first one's accuracy and ends at both's."""

import gzip
import json
from pathlib import Path

from benchmarks.second_judge import main
from benchmarks.verdicts.cases import Case
from guardrail.core.types import NLIScores, Passage, Verdict
from judges.base import NLITraits

MILL = (Passage("Three floors make up the building."),)
BARN = (Passage("Red paint covers it."),)
CHANCES = {
    "The mill has three floors.": 0.45,
    "The mill has four floors indeed.": 0.55,
    "The mill is made of sand.": 0.6,
    "The mill is old.": 0.98,
    "The mill is new.": 0.03,
    "The barn is red.": 0.44,
}
TRUE = {"The mill has three floors.", "The mill is old.", "The barn is red."}
CASES = [
    Case(
        "mill",
        BARN if "barn" in text else MILL,
        text,
        Verdict.SUPPORTED if text in TRUE else Verdict.UNSUPPORTED,
    )
    for text in CHANCES
]


class Unsure:
    """Gives the chances of the table."""

    name = "unsure-1"
    traits = NLITraits()

    def warm_up(self):
        """Nothing to load."""

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
        return [
            NLIScores(entailment=1.0, neutral=0.0, contradiction=0.0)
            if pair.hypothesis in TRUE
            else NLIScores(entailment=0.0, neutral=1.0, contradiction=0.0)
            for pair in pairs
        ]


def test_the_command_prints_the_curve_of_any_judge(tmp_path: Path, capsys):
    (tmp_path / "statements").mkdir()
    rows = [
        {
            "set": case.evidence[0].text,
            "evidence": [{"passage": case.evidence[0].text}],
            "sentence": case.text,
            "label": case.label.value,
            "question": "",
            "context": "",
            "span": "",
            "cites": [],
        }
        for case in CASES
    ]
    with gzip.open(tmp_path / "statements" / "valid.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    judges = ["--judge", f"{__name__}:Unsure", "--second", f"{__name__}:Right"]
    band = ["--band", "0.3"]
    assert main(["--data", str(tmp_path), "--sets", "valid", *judges, *band]) == 0
    printed = capsys.readouterr().out
    assert "unsure-1, then right-1 within 0.3" in printed
    assert "| 1 | 4 | 6 | 1.000 (1.00 to 1.00) | 1.000 (1.00 to 1.00) |" in printed
