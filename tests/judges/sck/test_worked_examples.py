"""The examples the SCK paper works out, on the shipped models."""

from __future__ import annotations

import pytest

from guardrail.core.types import Category, Citation, Judgement, Sentence, Triple
from judges.encoder import create_encoder
from judges.sck import Intent, SCKInput, SCKScorer
from judges.sck.language import read
from judges.sck.layout import detect
from judges.sck.structure import score_structure
from judges.sck.weights import FeatureWeights
from tests.judges.sck.conftest import Link

PHONES = (
    "The iPhone 12, released in 2020, offers a sleek design, a capable A14 Bionic chip, and a "
    "vibrant Super Retina XDR display. The iPhone 13, introduced in 2021, builds upon its "
    "predecessor with the more powerful A15 Bionic chip. The Pixel 6 features impressive "
    "computational photography. Ultimately, the choice between them depends on user preferences."
)
OBAMA = "Barack Obama"
FACTS = (
    Triple(subject=OBAMA, property="position held", value="President of the United States"),
    Triple(subject=OBAMA, property="place of birth", value="Honolulu"),
)
STEPS = (
    "1. Open the cover.\n2. Remove the old filter.\n3. Insert the new filter.\n"
    "4. Close the cover and then press the button."
)


def test_an_answer_on_two_of_three_phones_has_content_two_thirds(
    scorer: SCKScorer, link: Link
) -> None:
    [report] = scorer.score(
        [
            SCKInput(
                question="How do the iPhone 13, the Pixel 6 and the Galaxy S23 compare?",
                answer=PHONES,
                entities=(
                    link("iPhone 13", "Q108118280"),
                    link("Pixel 6", "Q108939091"),
                    link("Galaxy S23", "Q115127699"),
                ),
            )
        ]
    )
    assert report.content.score.value == pytest.approx(2 / 3)
    assert [entity.text for entity in report.content.entities if not entity.found] == ["Galaxy S23"]
    assert report.structure.intent is Intent.COMPARISON


def test_every_sentence_on_obama_gets_a_label_and_the_triples_behind_it(
    scorer: SCKScorer, link: Link
) -> None:
    texts = (
        "Barack Obama held the position of President of the United States.",
        "Barack Obama is widely respected for his charisma.",
        "Barack Obama was born in Nairobi, not in Honolulu.",
    )
    [report] = scorer.score(
        [
            SCKInput(
                question="Can you provide a brief introduction of Barack Obama?",
                answer=" ".join(texts),
                entities=(link(OBAMA, "Q76", "44th president of the United States"),),
                evidence=FACTS,
            )
        ]
    )
    verdicts = report.knowledge.sentences
    assert [verdict.text for verdict in verdicts] == list(texts)
    assert [verdict.value for verdict in verdicts] == [1, 0, -1]
    assert "position held: President of the United States" in verdicts[0].rationale
    assert FACTS[1] in verdicts[2].triples
    assert report.knowledge.kg_attr_mean.value == 0


def test_verdicts_of_the_caller_are_taken_over_without_asking_a_judge() -> None:
    text = "Barack Obama was born in Honolulu."
    sentence = Sentence(
        text=text,
        start=0,
        end=len(text),
        category=Category.SUPPORTIVE,
        citations=(Citation(entity=OBAMA, property="place of birth", value="Honolulu"),),
        judgement=Judgement(category=Category.SUPPORTIVE, scores={Category.SUPPORTIVE: 1.0}),
    )
    [report] = SCKScorer(create_encoder()).score(
        [SCKInput(question="Where?", answer=text, sentences=(sentence,), evidence=FACTS)]
    )
    [verdict] = report.knowledge.sentences
    assert (verdict.value, verdict.triples) == (1, (FACTS[1],))
    assert verdict.rationale == (
        "attributable: supported by Barack Obama, place of birth: Honolulu."
    )


def test_steps_suit_an_instruction_better_than_a_paragraph_and_a_debate_worse() -> None:
    prose = " ".join(line[3:] for line in STEPS.splitlines())

    def structure(answer: str, intent: Intent) -> float:
        [reading] = read([answer])
        asked = {intent.value: 1.0}
        report = score_structure(answer, reading, detect(answer), asked, asked, FeatureWeights())
        assert report.score.value is not None
        return report.score.value

    assert structure(STEPS, Intent.INSTRUCTION) > structure(prose, Intent.INSTRUCTION)
    assert structure(STEPS, Intent.DEBATE) < structure(prose, Intent.DEBATE)
