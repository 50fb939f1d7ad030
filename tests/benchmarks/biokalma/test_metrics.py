"""KaLMA's metrics against pencil and paper.

The thirty answers of answers.txt are about one small graph, most with markers that a careless
parser reads wrongly. For each are worked out

    c  citations written          r  of these correct (complete and in the graph)
    h  correct ones in the minimum set      k  triples of the minimum set that are hit
    a  citations whose value stands, case folded, in their sentence
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.biokalma.metrics import (
    CitedAnswer,
    CitedSentence,
    ContainmentAligner,
    NLIAligner,
    WrittenFormAligner,
    alignment,
    not_available_scores,
)
from benchmarks.biokalma.scoring import Fact, ScoreRow, cited_answer, report, score_rows
from guardrail.core.types import Citation, NLIScores
from judges.base import Pair
from tests.guardrail.scripted import Ready

GRAPH = (
    Fact("Q1", "place of birth", "Rome"), Fact("Q1", "occupation", "painter"),
    Fact("Q1", "residence", "Naples, Campania, Italy"),
    Fact("Q1", "notable work", "Alien: Covenant, part: two"),
    Fact("Q1", "collection", "Suite [No. 2]"), Fact("Q1", "date of birth", "1593-07-08"),
    Fact("Q2", "child", "Ann"), Fact("Q2", "motto", "Live; learn"),
    Fact("Mars Hill, North Carolina", "joined", "1973"),
)  # fmt: skip
MINIMUM = (  # 4 triples; every row needs them all
    Fact("Q1", "place of birth", "Rome"),
    Fact("Q1", "residence", "Naples, Campania, Italy"),
    Fact("Q1", "notable work", "Alien: Covenant, part: two"),
    Fact("Q2", "child", "Ann"),
)

LINES = Path(__file__).with_name("answers.txt").read_text("utf-8").splitlines()
ROWS = [line.split("  ", 1) for line in LINES if line and line[0] != "#"]
ANSWERS = [(text, *map(int, counts.split())) for counts, text in ROWS]

# Sums of the columns: c = 37, r = 30, h = 20, k = 18, a = 24.
CITED, CORRECT, HITS, HIT_TRIPLES, ALIGNED = (
    sum(row[column] for row in ANSWERS) for column in range(1, 6)
)


@pytest.mark.parametrize(
    ("marked", "cited", "correct", "hits", "hit_triples", "aligned"), ANSWERS, ids=range(30)
)
def test_each_answer_counts_as_it_does_with_a_pencil(
    marked, cited, correct, hits, hit_triples, aligned
):
    answer = cited_answer(marked, GRAPH, MINIMUM)
    citations = answer.citations
    right = [citation for citation in citations if citation in answer.graph]
    assert len(citations) == cited
    assert len(right) == correct
    assert sum(citation in answer.minimum for citation in right) == hits
    assert len(answer.minimum.intersection(right)) == hit_triples
    assert round((alignment([answer], ContainmentAligner()).value or 0) * cited) == aligned


def test_all_thirty_together_give_the_pencil_numbers() -> None:
    rows = [ScoreRow(marked=row[0], graph=GRAPH, minimum=MINIMUM) for row in ANSWERS]
    got = report(score_rows(rows))
    assert (len(ANSWERS), CITED, CORRECT, HITS, HIT_TRIPLES, ALIGNED) == (30, 37, 30, 20, 18, 24)
    # Micro: over 37 citations; recall over 30 x 4 needed triples.
    assert got.micro.correctness == pytest.approx(30 / 37)
    assert got.micro.precision == pytest.approx(20 / 37)
    assert got.micro.recall == pytest.approx(18 / 120)
    # F1 = 2 · 20/37 · 3/20 / (20/37 + 3/20) = (6/37) / (511/740) = 120/511
    assert got.micro.f1 == pytest.approx(120 / 511)
    # Macro precision: 27 answers have citations. Twelve have precision 1, two have 1/2 ("Ann, a
    # painter, was Roman …" and "A painter [Q1, residence …"), the others 0: 12 + 2 · 1/2 = 13.
    assert got.macro.precision == pytest.approx(13 / 27)
    # Macro recall: every answer needs 4, so it equals micro recall.
    assert got.macro.recall == pytest.approx(18 / 120)
    assert got.alignment_containment == pytest.approx(24 / 37)
    assert got.alignment is None
    lacking = "no NLI judge given"
    assert got.reasons == {"alignment": lacking, "alignment_released": lacking}


@pytest.mark.parametrize(
    ("sentence", "value", "as_written", "in_any_form"),
    [
        ("She was born on 8 July 1593.", "1593-07-08", False, True),
        ("She was born on July 8th, 1593.", "1593-07-08", False, True),
        ("She was born in 1593.", "1593-07-08", False, False),
        ("She was born in July 1593.", "1593-07-08", False, False),
        ("She was born on 9 July 1593.", "1593-07-08", False, False),
        ("He died in 226.", "0226-01-01", False, True),
        ("He died in 227.", "0226-01-01", False, False),
        ("She had five children.", "5", False, True),
        ("Some 3.5 million people live there.", "3500000", False, True),
        ("She had six children.", "5", False, False),
        ("Gerard was a PAINTER.", "painter", True, True),
        ("Gérard lived there.", "Gerard", False, True),
        ("She was an Italian painter.", "Italy", False, False),
        ("She was a painter.", "", False, False),
    ],
)
def test_a_value_may_be_written_in_another_form(
    sentence: str, value: str, as_written: bool, in_any_form: bool
) -> None:
    pair = (sentence, Citation(entity="Q1", property="property", value=value))
    assert ContainmentAligner().entails([pair]) == [as_written]
    assert WrittenFormAligner().entails([pair]) == [in_any_form]


def cite(name: str, value: str) -> Citation:
    return Citation(entity="Q1", property=name, value=value)


class LetterJudge(Ready):
    """Fake model: a premise entails the hypotheses that it contains."""

    name = "letters"

    def judge(self, pairs: list[Pair]) -> list[NLIScores]:
        chances = (0.9 if pair.hypothesis.split(": ")[1] in pair.premise else 0.1 for pair in pairs)
        return [NLIScores(entailment=it, neutral=1 - it, contradiction=0) for it in chances]


def test_alignment_asks_the_judge_with_the_sentence_as_premise() -> None:
    sentence = CitedSentence(
        text="Ann was born in Rome.",
        citations=(cite("place of birth", "Rome"), cite("occupation", "painter"), cite("x", "")),
    )
    score = alignment([CitedAnswer(sentences=(sentence,))], NLIAligner(LetterJudge()))
    assert score.value == pytest.approx(1 / 3)


def test_not_available_is_measured_against_what_was_taken_out() -> None:
    # Removed: Rome, painter (row 1); Naples (row 2). [NA] sentences: three in all.
    # Row 1: "Ann was born in Rome." entails Rome: precise. "She liked figs." entails nothing.
    # Row 2: "A quiet life." entails nothing. Sentences without [NA] do not count.
    # Precision 1/3, recall 1/3, F1 1/3.
    def answer(*sentences: str, absent: tuple[Citation, ...]) -> CitedAnswer:
        """The last sentence alone has no marker."""
        said = [CitedSentence(text=text, na=text != sentences[-1]) for text in sentences]
        return CitedAnswer(sentences=tuple(said), absent=absent)

    first = (cite("place of birth", "Rome"), cite("occupation", "painter"))
    answers = [
        answer("Ann was born in Rome.", "She liked figs.", "She was a painter.", absent=first),
        answer("A quiet life.", "She lived in Naples.", absent=(cite("residence", "Naples"),)),
    ]
    scores = not_available_scores(answers, ContainmentAligner())
    assert scores.precision.value == pytest.approx(1 / 3)
    assert scores.recall.value == pytest.approx(1 / 3)
    assert scores.f1.value == pytest.approx(1 / 3)
    assert not_available_scores([], ContainmentAligner()).recall.value is None
