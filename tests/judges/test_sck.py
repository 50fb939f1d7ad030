"""SCK: the paper's equations and worked examples, on the shipped models."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sck.judged import JudgedScorer
from guardrail.core.types import (
    Category,
    Citation,
    Entity,
    Judgement,
    LinkedEntity,
    Mention,
    Passage,
    Score,
    Sentence,
    Triple,
)
from judges.encoder import create_encoder
from judges.registry import create_nli
from judges.sck import Intent, SCKInput, SCKReport, SCKScorer
from judges.sck.knowledge import DescribedEntity, jaccard, score_knowledge, verified
from judges.sck.language import Name, key_names, read, score_content
from judges.sck.report import (
    TABLE_3,
    ContentReport,
    KnowledgeReport,
    KnowledgeWeights,
    SentenceVerdict,
    StructureReport,
    Weighted,
)
from judges.sck.scorer import total
from judges.sck.structure import Format, agreement, detect, seven

OBAMA = "Barack Obama"
FACTS = (
    Triple(subject=OBAMA, property="position held", value="President of the United States"),
    Triple(subject=OBAMA, property="place of birth", value="Honolulu"),
)
ADA = Triple(subject="Ada Lovelace", property="place of birth", value="London")
STEPS = (
    "1. Open the cover.\n2. Remove the old filter.\n3. Insert the new filter.\n"
    "4. Close the cover and then press the button."
)


@pytest.fixture(scope="module")
def scorer() -> SCKScorer:
    """The shipped encoder; an NLI judge reads sentences without a verdict."""
    return JudgedScorer(create_encoder(), create_nli("onnx"))


def link(name: str, identifier: str, description: str | None = None) -> LinkedEntity:
    return LinkedEntity(
        mention=Mention(text=name, start=0, end=len(name)),
        entity=Entity(id=identifier, label=name, description=description),
        matched="label",
    )


def scored(scorer: SCKScorer, question: str, answer: str, **more: object) -> SCKReport:
    [report] = scorer.score([SCKInput(question=question, answer=answer, **more)])
    return report


# --- The paper's worked examples ----------------------------------------------------------------


def test_an_answer_on_two_of_three_phones_has_content_two_thirds(scorer: SCKScorer) -> None:
    report = scored(
        scorer,
        "How do the iPhone 13, the Pixel 6 and the Galaxy S23 compare?",
        "The iPhone 13, introduced in 2021, builds upon its predecessor with the more powerful "
        "A15 Bionic chip. The Pixel 6 features impressive computational photography.",
        entities=(link("iPhone 13", "Q1"), link("Pixel 6", "Q2"), link("Galaxy S23", "Q3")),
    )
    assert report.content.score.value == pytest.approx(2 / 3)
    assert [entity.text for entity in report.content.entities if not entity.found] == ["Galaxy S23"]
    assert report.structure.intent is Intent.COMPARISON


def test_every_sentence_gets_a_label(scorer: SCKScorer) -> None:
    texts = (
        "Barack Obama held the position of President of the United States.",
        "Barack Obama is widely respected for his charisma.",
        "Barack Obama was born in Nairobi, not in Honolulu.",
    )
    assert scorer.score([]) == []
    report = scored(
        scorer,
        "Can you provide a brief introduction of Barack Obama?",
        " ".join(texts),
        entities=(link(OBAMA, "Q76", "44th president of the United States"),),
        evidence=FACTS,
    )
    verdicts = report.knowledge.sentences
    assert [(verdict.text, verdict.value) for verdict in verdicts] == list(
        zip(texts, (1, 0, -1), strict=True)
    )
    assert report.knowledge.kg_attr_mean.value == 0


def test_a_verdict_has_the_triples_that_its_sentence_cites() -> None:
    text = "Barack Obama was born in Honolulu."
    sentence = Sentence(
        text=text,
        start=0,
        end=len(text),
        category=Category.SUPPORTIVE,
        citations=(Citation(entity=OBAMA, property="place of birth", value="Honolulu"),),
        judgement=Judgement(category=Category.SUPPORTIVE, scores={Category.SUPPORTIVE: 1.0}),
    )
    report = scored(
        SCKScorer(create_encoder()), "Where?", text, sentences=(sentence,), evidence=FACTS
    )
    [verdict] = report.knowledge.sentences
    assert (verdict.value, verdict.triples) == (1, (FACTS[1],))
    assert verdict.rationale == "attributable: supported by Barack Obama, place of birth: Honolulu."


def test_steps_suit_an_instruction_and_a_paragraph_does_less(scorer: SCKScorer) -> None:
    question = "How do I change the filter?"
    prose = " ".join(line[3:] for line in STEPS.splitlines())
    steps, paragraph = (scored(scorer, question, text) for text in (STEPS, prose))
    assert steps.structure.intent is Intent.INSTRUCTION
    assert steps.structure.score.value > paragraph.structure.score.value


# --- Equations ----------------------------------------------------------------------------------

EXACT = 1e-6
EVIDENCE = (
    Triple(subject="Marie Curie", property="place of birth", value="Warsaw"),
    Passage(text="Marie Curie worked in Paris with Pierre Curie."),
)
ITEM = SCKInput(
    question="who was marie curie",
    answer="Marie Curie was born in Warsaw. She met Lord Kelvin. She died in Rome.",
    evidence=EVIDENCE,
)


def knowledge(*values: int, support: float | None = None) -> KnowledgeReport:
    names = [
        Name(text, frozenset({text.lower()}))
        for text in ("Marie Curie", "Warsaw", "Paris", "Lord Kelvin", "Rome")
    ]
    entities = [
        # Words shared with the question: marie, curie. All words: who was marie curie physicist.
        DescribedEntity("Q7186", "Marie Curie", "marie curie physicist"),
        # None is shared; seven words in all.
        DescribedEntity("Q270", "Warsaw", "warsaw, polish capital"),
    ]
    cosines = {
        (ITEM.question, entity.description): cosine
        for entity, cosine in zip(entities, (0.75, -0.05), strict=True)
    }
    verdicts = tuple(
        SentenceVerdict(
            text="a sentence",
            value=value,
            support=float(value == 1) if support is None else support,
            rationale="by hand",
        )
        for value in values
    )
    return score_knowledge(
        ITEM, verified(names, EVIDENCE), entities, cosines, verdicts, KnowledgeWeights()
    )


def test_equations_1_to_3() -> None:
    """VE: Marie Curie, Warsaw (triple) and Paris (passage) of five names.

    ER: (2/5 + 0.75) + (0/7 - 0.05) = 1.10; the mean of halves is 0.275.
    KG-Attr: (1 + 1 + 0 - 1) / 4 = 0.25. K = (0.6 + 1.10 + 0.25) / 3; with the bounded ER 0.375.
    """
    report = knowledge(1, 1, 0, -1)
    parts = {part.name: part.score.value for part in report.parts}
    assert parts == pytest.approx({"ve": 3 / 5, "er": 0.275, "kg_attr": 0.25}, abs=EXACT)
    assert report.er_paper.value == pytest.approx(1.10, abs=EXACT)
    assert report.paper.value == pytest.approx(0.65, abs=EXACT)
    assert report.score.value == pytest.approx(0.375, abs=EXACT)


def test_knowledge_without_support_scores_zero_and_the_papers_formula_does_not() -> None:
    nothing = knowledge(0, -1)
    assert nothing.score.value == 0
    assert nothing.paper.value == pytest.approx((0.6 + 1.10 - 0.5) / 3, abs=EXACT)
    assert knowledge(0, 0, support=0.5).score.value != 0


def test_equation_4_takes_key_entities_from_question_and_evidence() -> None:
    """A product that no graph and no tagger knows is a key entity when a row is about it."""
    rows = [
        Triple(subject=name, property="weight", value="180 g")
        for name in ("Zephyr Q1", "Zephyr Q2", "Borea")
    ]
    named, source = key_names("Compare the Zephyr Q1 and the Borea", (), (), rows)
    assert ([name.text for name in named], source) == (["Zephyr Q1", "Borea"], "question")
    found = score_content("The Borea is light.", named, source=source)
    assert found.score.value == pytest.approx(1 / 2, abs=EXACT)
    named, source = key_names("Which phones are light?", (), (), rows)
    assert (len(named), source) == (3, "evidence")
    many = [Triple(subject=f"Row {n}", property="p", value="v") for n in range(11)]
    assert key_names("Which phones are light?", (), (), many) == ([], "question")


def test_equation_5_weighs_the_parts_by_intent() -> None:
    """A comparison weighs S, C and K by 0.5, 0.3 and 0.2; S = 0.8, C = 2/3, K = 0.375 or 0.65.

    SCK = 0.4 + 0.2 + 0.075, by the paper's K 0.4 + 0.2 + 0.13. Without C the others share its
    weight: (0.4 + 0.075) / 0.7; in the paper's sum it counts 0.
    """
    structure = StructureReport(
        score=Score(value=0.8), intent=Intent.COMPARISON, question_intents={}, answer_intents={},
        features=(),
    )  # fmt: skip
    names = [Name(text, frozenset({text.lower()})) for text in ("Borea", "Zephyr", "Aster")]
    content = score_content("The Borea is lighter than the Zephyr.", names, source="question")
    weights = TABLE_3[Intent.COMPARISON]

    def scores(content: ContentReport, knows: KnowledgeReport) -> tuple[float, float]:
        score, paper, _ = total(structure, content, knows, weights)
        return number(score), number(paper)

    assert scores(content, knowledge(1, 1, 0, -1)) == pytest.approx((0.675, 0.73), abs=EXACT)
    missing = score_content("The Borea is light.", [], source="question")
    expected = (0.475 / 0.7, 0.53)
    assert scores(missing, knowledge(1, 1, 0, -1)) == pytest.approx(expected, abs=EXACT)
    assert scores(content, knowledge(0, -1)) == pytest.approx((0, 0.6 + 0.2 * 0.4), abs=EXACT)


def weighted_mean(parts: Iterable[Weighted]) -> float:
    """Σ weight x value over Σ weight, over the parts that have a value."""
    known = [(part.weight, part.score.value) for part in parts if part.score.value is not None]
    return sum(weight * value for weight, value in known) / sum(weight for weight, _ in known)


def number(score: Score) -> float:
    assert score.value is not None
    return score.value


def test_every_number_can_be_worked_out_from_the_report(scorer: SCKScorer) -> None:
    question = "Why was Galileo Galilei tried by the Roman Inquisition?"
    report = scored(
        scorer,
        question,
        "Galileo Galilei was tried because he held that the Earth moves. "
        "He was born in Paris. Maffeo Barberini was pope then.",
        entities=(link("Galileo Galilei", "Q307", "Italian astronomer tried for heresy"),),
        evidence=(
            Triple(subject="Galileo Galilei", property="place of birth", value="Pisa"),
            Passage(text="Galileo was tried because he taught that the Earth moves."),
        ),
    )
    structure, content, knows = report.structure, report.content, report.knowledge
    weights = TABLE_3[structure.intent]
    assert {part.name: part.weight for part in report.parts} == weights.model_dump(
        exclude={"reason"}
    )
    assert number(report.score) == pytest.approx(weighted_mean(report.parts))
    features = [feature.part for feature in structure.features]
    assert number(structure.score) == pytest.approx(weighted_mean(features))
    assert number(features[-1].score) == pytest.approx(
        agreement(seven(structure.question_intents), seven(structure.answer_intents))
    )
    found = [entity.found for entity in content.entities]
    assert number(content.score) == pytest.approx(sum(found) / len(found))
    assert number(knows.score) == pytest.approx(weighted_mean(knows.parts))
    [entity] = knows.entities
    assert entity.jaccard == pytest.approx(jaccard(question, entity.description))
    parts = {part.name: part.score for part in knows.parts}
    assert number(parts["er"]) == pytest.approx((entity.jaccard + entity.cosine) / 2)
    mean = sum(sentence.value for sentence in knows.sentences) / len(knows.sentences)
    assert number(parts["kg_attr"]) == pytest.approx(max(0, mean))


def test_agreement_of_two_intent_distributions() -> None:
    """(1/2, 1/2) and (1, 0): the Jensen-Shannon divergence is 0.311278 bits."""
    even, sure = {"reason": 0.5, "debate": 0.5}, {"reason": 1.0, "debate": 0.0}
    assert agreement(even, sure) == pytest.approx(0.6887218755, abs=EXACT)
    assert agreement(sure, sure) == 1
    assert agreement(sure, {"debate": 1.0}) == 0


# --- Unusual inputs -----------------------------------------------------------------------------


def test_missing_parts_have_a_reason_and_give_their_weight_away(scorer: SCKScorer) -> None:
    ask, answer = "how does it work?", "it just works."
    alone = scored(scorer, ask, answer)
    assert alone.scores["sck.content"].reason == "the question names no entity"
    assert alone.knowledge.score.reason == "there is no evidence"
    assert sum(part.share for part in alone.parts) == pytest.approx(1)
    assert alone.parts[2].share == 0
    grounded = scored(scorer, ask, answer, evidence=(ADA,))
    assert grounded.scores["sck.knowledge.ve"].reason == "no entities"
    assert (grounded.content.source, grounded.content.score.value) == ("evidence", 0)


@pytest.mark.parametrize(
    ("question", "answer", "warning"),
    [
        ("What grows here?", "- apples\n- pears\n- plums", None),
        ("What grows here?", "```python\nprint(1)\n```", "the answer is only code"),
        ("What grows here?", "", "the answer is empty"),
        (" ", "Ada was a countess.", "there is no question"),
        (
            "What grows here?",
            "Ada Lovelace war eine Mathematikerin und schrieb ein Programm, das nie lief.",
            "the answer does not read like English, which tagger and encoder expect",
        ),
    ],
)
def test_unusual_texts_are_scored_with_a_warning(
    scorer: SCKScorer, question: str, answer: str, warning: str | None
) -> None:
    report = scored(scorer, question, answer)
    assert report.warnings == (() if warning is None else (warning,))
    if not question.strip():
        assert {part.weight for part in report.parts} == {1 / 3}


def test_a_reference_names_the_key_entities_unless_it_is_empty(scorer: SCKScorer) -> None:
    ask, answer = "Where was Ada Lovelace born?", "Ada Lovelace was born in Rome."
    empty = scored(scorer, ask, answer, reference="")
    assert empty.content.source == "question"
    assert "the reference is empty; the question's entities are used" in empty.warnings
    full = scored(scorer, ask, answer, reference="Ada Lovelace was born in London.")
    assert (full.content.source, full.content.score.value) == ("reference", 1 / 2)


# --- What is read of a text ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "layout"),
    [
        ("Step 1: Open it.\nStep 2: Close it.", Format.STEP_LIST),
        ("**1.** Open it.\n   - with care\n**2.** Close it.", Format.STEP_LIST),
        ("1. Open it.\n3. Close it.\n2. Wait.", Format.BROKEN),
        ("- one\n2. two\n- three", Format.BROKEN),
        ("- red\n- green", Format.BULLET_LIST),
        ("- **Cats**: they purr.\n- **Dogs**: they bark.", Format.SIDE_BY_SIDE),
        ("| | cat | dog |\n|---|---|---|\n| sound | purr | bark |", Format.SIDE_BY_SIDE),
        ("Pros:\n- cheap\n\nCons:\n- loud", Format.POINT_COUNTERPOINT),
        ("Some people argue that it helps. Critics disagree.", Format.POINT_COUNTERPOINT),
        ("It is cheap.\n\nHowever, it is loud.", Format.POINT_COUNTERPOINT),
        ("It is cheap.\n\nIt is loud.", Format.PARAGRAPHS),
        ("It is cheap. It is loud. It is red.", Format.PARAGRAPH),
        ("In 1990 it rained. In 2000 as well.", Format.SENTENCES),
        ("```\nx = 1\n```", Format.CODE),
        ("  \n", Format.EMPTY),
    ],
)
def test_layouts(answer: str, layout: Format) -> None:
    assert detect(answer).format is layout


@given(st.text(max_size=300))
def test_any_text_has_a_layout(answer: str) -> None:
    assert detect(answer).format in Format


def test_tense_person_and_imperatives_are_read_off_the_words() -> None:
    texts = ("I noticed that she left.", "You will see that it works.",
             "1. Open the box.\n2. Press the button.")  # fmt: skip
    past, future, imperative = read(texts)
    assert (past.tenses, past.persons) == ({"past": 2}, {"1st": 1, "3rd": 1})
    assert future.tenses == {"future": 1, "present": 1}
    assert imperative.persons == {"2nd": 2}
