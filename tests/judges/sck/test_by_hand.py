"""Every number of a report can be worked out again from what the report shows."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from guardrail.core.types import Passage, Score, Triple
from judges.sck import SCKInput, SCKReport, SCKScorer
from judges.sck.intents import agreement, seven
from judges.sck.knowledge import jaccard
from judges.sck.report import Weighted
from judges.sck.weights import TABLE_3
from tests.judges.sck.conftest import Link


def weighted_mean(parts: Iterable[Weighted]) -> float:
    """Σ weight x value over Σ weight, over the parts that have a value."""
    known = [(part.weight, part.score.value) for part in parts if part.score.value is not None]
    return sum(weight * value for weight, value in known) / sum(weight for weight, _ in known)


def number(score: Score) -> float:
    assert score.value is not None
    return score.value


@pytest.fixture(scope="module")
def report(scorer: SCKScorer) -> SCKReport:
    from tests.judges.sck import conftest

    link: Link = conftest.link.__wrapped__()  # type: ignore[attr-defined]
    question = "Why was Galileo Galilei tried by the Roman Inquisition?"
    answer = (
        "Galileo Galilei was tried because he held that the Earth moves. "
        "He was born in Paris. Maffeo Barberini was pope then."
    )
    return scorer.score(
        [
            SCKInput(
                question=question,
                answer=answer,
                entities=(link("Galileo Galilei", "Q307", "Italian astronomer tried for heresy"),),
                evidence=(
                    Triple(subject="Galileo Galilei", property="place of birth", value="Pisa"),
                    Passage(text="Galileo was tried because he taught that the Earth moves."),
                ),
            )
        ]
    )[0]


def test_sck_is_the_weighted_sum_of_its_parts_with_the_weights_of_the_intent(
    report: SCKReport,
) -> None:
    weights = TABLE_3[report.structure.intent]
    assert {part.name: part.weight for part in report.parts} == {
        "structure": weights.structure,
        "content": weights.content,
        "knowledge": weights.knowledge,
    }
    assert number(report.score) == pytest.approx(weighted_mean(report.parts))
    assert [part.score for part in report.parts] == [
        report.structure.score,
        report.content.score,
        report.knowledge.score,
    ]


def test_structure_is_the_mean_of_its_features(report: SCKReport) -> None:
    structure = report.structure
    parts = [feature.part for feature in structure.features]
    assert number(structure.score) == pytest.approx(weighted_mean(parts))
    assert structure.intent == max(
        structure.question_intents, key=lambda name: structure.question_intents[name]
    )
    alignment = structure.features[-1].part.score
    assert number(alignment) == pytest.approx(
        agreement(seven(structure.question_intents), seven(structure.answer_intents))
    )


def test_content_is_the_share_of_key_entities_found(report: SCKReport) -> None:
    found = [entity.found for entity in report.content.entities]
    assert number(report.content.score) == pytest.approx(sum(found) / len(found))


def test_knowledge_is_the_mean_of_ve_er_and_attribution(report: SCKReport) -> None:
    knowledge = report.knowledge
    parts = {part.name: part.score for part in knowledge.parts}
    known = [name.found_in is not None for name in knowledge.names]
    assert number(parts["ve"]) == pytest.approx(sum(known) / len(known))
    [entity] = knowledge.entities
    question = "Why was Galileo Galilei tried by the Roman Inquisition?"
    assert entity.jaccard == pytest.approx(jaccard(question, entity.description))
    assert number(knowledge.er_paper) == pytest.approx(entity.jaccard + entity.cosine)
    assert number(parts["er"]) == pytest.approx((entity.jaccard + entity.cosine) / 2)
    mean = sum(sentence.value for sentence in knowledge.sentences) / len(knowledge.sentences)
    assert number(knowledge.kg_attr_mean) == pytest.approx(mean)
    assert number(parts["kg_attr"]) == pytest.approx(max(0, mean))
    assert number(knowledge.score) == pytest.approx(weighted_mean(knowledge.parts))


def test_jaccard_counts_shared_over_all_words() -> None:
    assert jaccard("Who is the painter?", "Italian painter") == pytest.approx(1 / 5)
    assert jaccard("", "") == 0
