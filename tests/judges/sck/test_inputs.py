"""Odd inputs are scored as far as they can be, and say what is missing."""

from __future__ import annotations

import pytest

from guardrail.core.types import Passage, Triple
from judges.sck import Intent, SCKInput, SCKScorer

FACT = Triple(subject="Ada Lovelace", property="place of birth", value="London")


def test_without_entities_ve_and_content_have_a_reason_instead_of_a_value(
    scorer: SCKScorer,
) -> None:
    ask, answer = "how does it work?", "it just works."
    alone, grounded = scorer.score(
        [
            SCKInput(question=ask, answer=answer),
            SCKInput(question=ask, answer=answer, evidence=(FACT,)),
        ]
    )
    assert grounded.scores["sck.knowledge.ve"].reason == "no entities"
    assert alone.scores["sck.content"].reason == "the question names no entity"
    assert (grounded.content.source, grounded.content.score.value) == ("evidence", 0)
    assert alone.score.value is not None


def test_without_a_question_all_parts_count_alike(scorer: SCKScorer) -> None:
    [report] = scorer.score([SCKInput(question=" ", answer="Ada was a countess.")])
    assert report.structure.intent is Intent.NONE
    assert {part.weight for part in report.parts} == {1 / 3}
    assert "there is no question" in report.warnings


def test_without_evidence_knowledge_has_no_value_and_gives_its_weight_away(
    scorer: SCKScorer,
) -> None:
    [report] = scorer.score(
        [SCKInput(question="Who was Ada Lovelace?", answer="Ada Lovelace was a countess.")]
    )
    assert report.knowledge.score.reason == "there is no evidence"
    assert sum(part.share for part in report.parts) == pytest.approx(1)
    assert report.parts[2].share == 0


@pytest.mark.parametrize(
    ("answer", "warning"),
    [
        ("- apples\n- pears\n- plums", None),
        ("```python\nprint(1)\n```", "the answer is only code"),
        ("", "the answer is empty"),
        (
            "Ada Lovelace war eine Mathematikerin und schrieb ein Programm, das nie lief.",
            "the answer does not read like English, which tagger and encoder expect",
        ),
    ],
)
def test_lists_code_silence_and_other_languages_are_scored(
    scorer: SCKScorer, answer: str, warning: str | None
) -> None:
    [report] = scorer.score([SCKInput(question="What grows here?", answer=answer)])
    assert report.warnings == (() if warning is None else (warning,))


def test_an_empty_reference_falls_back_to_the_question(scorer: SCKScorer) -> None:
    ask = "Where was Ada Lovelace born?"
    empty, full = scorer.score(
        [
            SCKInput(question=ask, answer="Ada Lovelace was born in Rome.", reference=""),
            SCKInput(
                question=ask,
                answer="Ada Lovelace was born in Rome.",
                reference="Ada Lovelace was born in London.",
            ),
        ]
    )
    assert empty.content.source == "question"
    assert "the reference is empty; the question's entities are used" in empty.warnings
    assert full.content.source == "reference"
    assert full.content.score.value == pytest.approx(1 / 2)


def test_a_batch_gives_what_single_calls_give(scorer: SCKScorer) -> None:
    batch = [
        SCKInput(
            question="Where was Ada Lovelace born?",
            answer=answer,
            evidence=(FACT, Passage(text="Ada Lovelace was an English mathematician.")),
        )
        for answer in ("She was born in London.", "Ada Lovelace was born in Paris.", "No idea.")
    ]
    assert scorer.score(batch) == [scorer.score([item])[0] for item in batch]
    assert scorer.score([]) == []
