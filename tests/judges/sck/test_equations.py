"""Equations 1 to 5 of the SCK paper, worked out by hand."""

from __future__ import annotations

import pytest

from guardrail.core.types import Passage, Score, Triple
from judges.sck.content import Name, key_names, score_content
from judges.sck.intents import Intent, agreement
from judges.sck.knowledge import DescribedEntity, score_knowledge, verified
from judges.sck.report import KnowledgeReport, SCKInput, SentenceVerdict, StructureReport
from judges.sck.scorer import total
from judges.sck.weights import TABLE_3, KnowledgeWeights

EXACT = 1e-6
FACTS = (
    Triple(subject="Marie Curie", property="place of birth", value="Warsaw"),
    Passage(text="Marie Curie worked in Paris with Pierre Curie."),
)
ITEM = SCKInput(
    question="who was marie curie",
    answer="Marie Curie was born in Warsaw. She met Lord Kelvin. She died in Rome.",
    evidence=FACTS,
)
NAMES = [Name(text, frozenset({text.lower()}), None) for text in ("Marie Curie", "Warsaw", "Paris")]
KELVIN, ROME = (Name(text, frozenset({text.lower()}), None) for text in ("Lord Kelvin", "Rome"))
ENTITIES = [
    # Words shared with the question: marie, curie. All words: who was marie curie physicist.
    DescribedEntity("Q7186", "Marie Curie", "marie curie physicist"),
    # None is shared; seven words in all.
    DescribedEntity("Q270", "Warsaw", "warsaw, polish capital"),
]
COSINES = {
    (ITEM.question, "marie curie physicist"): 0.75,
    (ITEM.question, "warsaw, polish capital"): -0.05,
}


def verdict(value: int, support: float | None = None) -> SentenceVerdict:
    chosen = float(value == 1) if support is None else support
    return SentenceVerdict(text="a sentence", value=value, support=chosen, rationale="by hand")


def knowledge(*verdicts: SentenceVerdict) -> KnowledgeReport:
    names = verified([*NAMES, KELVIN, ROME], FACTS)
    return score_knowledge(ITEM, names, ENTITIES, COSINES, verdicts, KnowledgeWeights())


REPORT = knowledge(verdict(1), verdict(1), verdict(0), verdict(-1))


def test_equation_1_is_the_share_of_verifiable_names() -> None:
    """Marie Curie, Warsaw (triple) and Paris (passage) of five names."""
    parts = {part.name: part.score.value for part in REPORT.parts}
    assert parts["ve"] == pytest.approx(3 / 5, abs=EXACT)


def test_equation_2_sums_jaccard_and_cosine() -> None:
    """(2/5 + 0.75) + (0/7 - 0.05) = 1.10; the mean of halves is 0.275."""
    parts = {part.name: part.score.value for part in REPORT.parts}
    assert [entity.jaccard for entity in REPORT.entities] == pytest.approx([0.4, 0.0], abs=EXACT)
    assert REPORT.er_paper.value == pytest.approx(1.10, abs=EXACT)
    assert parts["er"] == pytest.approx(0.275, abs=EXACT)


def test_equation_3_weighs_ve_er_and_attribution() -> None:
    """KG-Attr: (1 + 1 + 0 - 1) / 4 = 0.25. K = (0.6 + 1.10 + 0.25) / 3; bounded ER: 0.275."""
    assert REPORT.kg_attr_mean.value == pytest.approx(0.25, abs=EXACT)
    assert REPORT.paper.value == pytest.approx(0.65, abs=EXACT)
    assert REPORT.score.value == pytest.approx((0.6 + 0.275 + 0.25) / 3, abs=EXACT)


def test_equation_4_is_the_share_of_key_entities_mentioned() -> None:
    """The paper's Figure 5: two of three phones."""
    phones = [
        Name(text, frozenset({text.lower()}), None)
        for text in ("iPhone 13", "Pixel 6", "Galaxy S23")
    ]
    found = score_content("The iPhone 13 and the Pixel 6.", phones, source="reference")
    assert found.score.value == pytest.approx(2 / 3, abs=EXACT)


def test_equation_5_weighs_the_three_parts_by_intent() -> None:
    """Comparison, (0.5, 0.3, 0.2): 0.5 x 0.8 + 0.3 x 2/3 + 0.2 x K."""
    structure = StructureReport(
        score=Score(value=0.8),
        intent=Intent.COMPARISON,
        question_intents={},
        answer_intents={},
        features=(),
    )
    three = [Name(text, frozenset({text}), None) for text in ("one", "two", "three")]
    content = score_content("one and two", three, source="question")
    score, paper, _ = total(structure, content, REPORT, TABLE_3[Intent.COMPARISON])
    assert paper.value == pytest.approx(0.4 + 0.2 + 0.2 * 0.65, abs=EXACT)
    assert score.value == pytest.approx(0.4 + 0.2 + 0.2 * 0.375, abs=EXACT)


def test_an_answer_of_which_nothing_is_supported_scores_zero() -> None:
    """The paper's own score still counts structure, content and verifiable names."""
    nothing = knowledge(verdict(0), verdict(-1))
    structure = StructureReport(
        score=Score(value=0.9),
        intent=Intent.FACTOID,
        question_intents={},
        answer_intents={},
        features=(),
    )
    content = score_content("one", [Name("one", frozenset({"one"}), None)], source="question")
    score, paper, _ = total(structure, content, nothing, TABLE_3[Intent.FACTOID])
    assert (nothing.score.value, score.value) == (0, 0)
    # K = (0.6 + 1.10 - 0.5) / 3 = 0.4; SCK = 0.1 x 0.9 + 0.1 x 1 + 0.8 x 0.4.
    assert paper.value == pytest.approx(0.51, abs=EXACT)
    half = knowledge(verdict(0, support=0.5), verdict(0))
    assert total(structure, content, half, TABLE_3[Intent.FACTOID])[0].value != 0


def test_agreement_of_two_intent_distributions() -> None:
    """(1/2, 1/2) and (1, 0): the Jensen-Shannon divergence is 0.311278 bits."""
    even, sure = {"reason": 0.5, "debate": 0.5}, {"reason": 1.0, "debate": 0.0}
    assert agreement(even, sure) == pytest.approx(0.6887218755, abs=EXACT)


def test_key_entities_come_from_question_and_evidence() -> None:
    """A product that no graph and no tagger knows is a key entity when a row is about it."""
    rows = [
        Triple(subject=name, property="weight", value="180 g")
        for name in ("Zephyr Q1", "Zephyr Q2", "Borea")
    ]
    named, source = key_names("Compare the Zephyr Q1 and the Borea", (), (), rows)
    assert ([name.text for name in named], source) == (["Zephyr Q1", "Borea"], "question")
    named, source = key_names("Which phones are light?", (), (), rows)
    assert (len(named), source) == (3, "evidence")
    many = [Triple(subject=f"Row {n}", property="p", value="v") for n in range(11)]
    assert key_names("Which phones are light?", (), (), many) == ([], "question")
