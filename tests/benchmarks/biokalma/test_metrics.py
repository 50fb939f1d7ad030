"""KaLMA's metrics against pencil and paper.

Thirty answers about one small graph, most with markers that a careless parser reads wrongly.
For each answer the comment works out

    c  citations written          r  of these correct (complete and in the graph)
    h  correct ones in the minimum set      k  triples of the minimum set that are hit
    a  citations whose value stands, case folded, in their sentence
"""

from __future__ import annotations

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

GRAPH = (
    Fact("Q1", "place of birth", "Rome"),
    Fact("Q1", "occupation", "painter"),
    Fact("Q1", "residence", "Naples, Campania, Italy"),
    Fact("Q1", "notable work", "Alien: Covenant, part: two"),
    Fact("Q1", "collection", "Suite [No. 2]"),
    Fact("Q1", "date of birth", "1593-07-08"),
    Fact("Q2", "child", "Ann"),
    Fact("Q2", "motto", "Live; learn"),
    Fact("Mars Hill, North Carolina", "joined", "1973"),
)
MINIMUM = (  # 4 triples; every row needs them all
    Fact("Q1", "place of birth", "Rome"),
    Fact("Q1", "residence", "Naples, Campania, Italy"),
    Fact("Q1", "notable work", "Alien: Covenant, part: two"),
    Fact("Q2", "child", "Ann"),
)

EVERYTHING = (
    "Ann of Rome [Q1, place of birth: Rome, residence: Naples, Campania, Italy, "
    "notable work: Alien: Covenant, part: two; Q2, child: Ann]."
)

# (marked answer, c, r, h, k, a)
ANSWERS = [
    # One right citation, needed, its value in the sentence.
    ("Ann was born in Rome [Q1, place of birth: Rome].", 1, 1, 1, 1, 1),
    # Right but not needed.
    ("Ann was a painter [Q1, occupation: painter].", 1, 1, 0, 0, 1),
    # Two triples in one bracket; only "Rome" is needed.
    ("Ann, a painter, was Roman [Q1, place of birth: Rome, occupation: painter].", 2, 2, 1, 1, 1),
    # Commas in the value. "Naples, Campania, Italy" does not stand in the sentence as such.
    ("She lived in Naples [Q1, residence: Naples, Campania, Italy].", 1, 1, 1, 1, 0),
    # The same, followed by another fact: still two citations. "painter" is in, the other not.
    ("A painter [Q1, residence: Naples, Campania, Italy, occupation: painter].", 2, 2, 1, 1, 1),
    # Colons and a comma in the value, which looks like a fact "part: two" of its own.
    ("She made it [Q1, notable work: Alien: Covenant, part: two].", 1, 1, 1, 1, 0),
    # The sentence states the value in different case.
    ("She made ALIEN: COVENANT, PART: TWO [Q1, notable work: Alien: Covenant, part: two].",
     1, 1, 1, 1, 1),
    # Brackets in the value.
    ("It is in Suite [No. 2] [Q1, collection: Suite [No. 2]].", 1, 1, 0, 0, 1),
    # Semicolon in the value, with a second entity after another semicolon: 2 citations.
    ("Live; learn [Q2, motto: Live; learn; Q1, occupation: painter].", 2, 2, 0, 0, 1),
    # Several entities in one bracket, with a comma between: 2 citations, both needed.
    ("Ann of Rome [Q1, place of birth: Rome, Q2, child: Ann].", 2, 2, 2, 2, 2),
    # An entity named by a label that holds a comma.
    ("It joined in 1973 [Mars Hill, North Carolina, joined: 1973].", 1, 1, 0, 0, 1),
    # A repeated citation counts twice as a citation, once as a hit of the minimum set.
    ("Rome [Q1, place of birth: Rome]. Rome [Q1, place of birth: Rome].", 2, 2, 2, 1, 2),
    # Repeated within one bracket: the same.
    ("Rome [Q1, place of birth: Rome, place of birth: Rome].", 2, 2, 2, 1, 2),
    # Wrong value: cited, not correct; but the sentence says "Paris", so it is aligned.
    ("Ann was born in Paris [Q1, place of birth: Paris].", 1, 0, 0, 0, 1),
    # Wrong entity.
    ("Ann was born in Rome [Q2, place of birth: Rome].", 1, 0, 0, 0, 1),
    # Wrong property.
    ("Ann was born in Rome [Q1, place of death: Rome].", 1, 0, 0, 0, 1),
    # Property missing, value missing: one citation each, not correct, never aligned.
    ("Ann was a painter [Q1].", 1, 0, 0, 0, 0),
    ("Ann was a painter [Q1, occupation].", 1, 0, 0, 0, 0),
    # Entity missing: a citation of a known property, not correct, but its value is there.
    ("Ann was a painter [occupation: painter].", 1, 0, 0, 0, 1),
    # Never closed: no citation at all.
    ("Ann was born in Rome [Q1, place of birth: Rome.", 0, 0, 0, 0, 0),
    # An unclosed bracket before a good one: only the good one counts.
    ("Ann [Q1, occupation: painter was born in Rome [Q1, place of birth: Rome].", 1, 1, 1, 1, 1),
    # Only [NA]: no citation.
    ("Ann liked figs [NA].", 0, 0, 0, 0, 0),
    # [NA] together with a citation.
    ("Ann, born in 1593 [NA] in Rome [Q1, place of birth: Rome].", 1, 1, 1, 1, 1),
    # Brackets that are no markers.
    ("Ann [sic] painted [1], see [Smith et al., 2020] and [a link](https://a.example).",
     0, 0, 0, 0, 0),
    # The marker behind the full stop belongs to the sentence before: "Rome" is not in "She sang."
    ("She sang. [Q1, place of birth: Rome] Rome was far.", 1, 1, 1, 1, 0),
    # The spelling "qid: Q1".
    ("A painter [qid: Q1, occupation: painter].", 1, 1, 0, 0, 1),
    # The date is right, but written in another form in the sentence.
    ("Born on July 8, 1593 [Q1, date of birth: 1593-07-08].", 1, 1, 0, 0, 0),
    # One fact of the graph and one invented fact, both under the right entity.
    ("Roman painter [Q1, occupation: painter, style: baroque].", 2, 1, 0, 0, 1),
    # No text but the marker: a correct, needed citation with no sentence to be aligned with.
    ("[Q2, child: Ann]", 1, 1, 1, 1, 0),
    # Everything needed in one answer.
    (EVERYTHING, 4, 4, 4, 4, 2),
]  # fmt: skip

# Sums of the columns: c = 37, r = 30, h = 20, k = 18, a = 24.
CITED, CORRECT, HITS, HIT_TRIPLES, ALIGNED = (
    sum(row[column] for row in ANSWERS) for column in range(1, 6)
)


@pytest.mark.parametrize("row", ANSWERS, ids=[str(number) for number in range(len(ANSWERS))])
def test_each_answer_counts_as_it_does_with_a_pencil(
    row: tuple[str, int, int, int, int, int],
) -> None:
    marked, cited, correct, hits, hit_triples, aligned = row
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


class LetterJudge:
    """Fake model: a premise entails the hypotheses that it contains."""

    name = "letters"

    def warm_up(self) -> None:
        pass

    def judge(self, pairs: list[Pair]) -> list[NLIScores]:
        yes = [pair.hypothesis.split(": ")[1] in pair.premise for pair in pairs]
        return [
            NLIScores(
                entailment=0.9 if is_in else 0.1, neutral=0.1 if is_in else 0.9, contradiction=0
            )
            for is_in in yes
        ]


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
    answers = [
        CitedAnswer(
            sentences=(
                CitedSentence(text="Ann was born in Rome.", na=True),
                CitedSentence(text="She liked figs.", na=True),
                CitedSentence(text="She was a painter."),
            ),
            absent=(cite("place of birth", "Rome"), cite("occupation", "painter")),
        ),
        CitedAnswer(
            sentences=(
                CitedSentence(text="A quiet life.", na=True),
                CitedSentence(text="She lived in Naples."),
            ),
            absent=(cite("residence", "Naples"),),
        ),
    ]
    scores = not_available_scores(answers, ContainmentAligner())
    assert scores.precision.value == pytest.approx(1 / 3)
    assert scores.recall.value == pytest.approx(1 / 3)
    assert scores.f1.value == pytest.approx(1 / 3)
    assert not_available_scores([], ContainmentAligner()).recall.value is None
