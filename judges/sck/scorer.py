"""The SCK scorer: batches of answers in, reports out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from guardrail.core.types import Score
from judges.sck.knowledge import (
    UNSUPPORTED,
    attribute,
    described,
    score_knowledge,
    verified,
)
from judges.sck.language import Reading, key_names, names_in, read, reading_of, score_content
from judges.sck.report import (
    TABLE_3,
    ContentReport,
    Intent,
    KnowledgeReport,
    PartWeights,
    SCKInput,
    SCKReport,
    SCKSettings,
    StructureReport,
    Weighted,
    combine,
)
from judges.sck.structure import Format, detect, score_structure

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from judges.encoder import OnnxEncoder

ANSWER_CHARS = 250
"""The opening of an answer shows its intent; reading no more bounds the time."""


class SCKScorer:
    """Scores answers by structure, content and knowledge (SCK eq. 5).

    Args:
        encoder: Classifies intents, and embeds for ER.
        settings: Weights.
    """

    def __init__(self, encoder: OnnxEncoder, settings: SCKSettings | None = None) -> None:
        self._encoder = encoder
        self._settings = settings or SCKSettings()

    def warm_up(self) -> None:
        """Load the encoder.

        Raises:
            JudgeError: It cannot be loaded.
        """
        self._encoder.intents(["Who is it?"])

    def read_ahead(self, batch: Sequence[SCKInput]) -> None:
        """Encode in one batch what the scores of n answers need.

        Args:
            batch: The answers; sentences, references and entities may still be missing.

        Raises:
            JudgeError: The encoder failed.
        """
        texts = [item.question for item in batch if item.question.strip()]
        texts += [item.answer[:ANSWER_CHARS] for item in batch]
        for item in batch:
            linked = names_in(item.answer, (), item.entities)
            texts += [entity.description for entity in described(item, linked)]
        self._encoder.read_ahead(texts)

    def score(
        self, batch: Sequence[SCKInput], docs: Mapping[str, Doc] | None = None
    ) -> list[SCKReport]:
        """Score n answers, in order.

        Args:
            batch: The answers.
            docs: Answers, questions and references that the caller has parsed with an English
                pipeline (tagger and entity recogniser); others are parsed here.

        Raises:
            JudgeError: The encoder failed, or the English pipeline is missing.
        """
        reports: list[SCKReport] = []
        size = 256  # enough for all cores, few enough for the encoder's memory
        for first in range(0, len(batch), size):
            reports += self._pass(batch[first : first + size], docs or {})
        return reports

    def _pass(self, batch: Sequence[SCKInput], docs: Mapping[str, Doc]) -> list[SCKReport]:
        with ThreadPoolExecutor(1, thread_name_prefix="sck") as pool:
            if any(text not in docs for item in batch for text in (item.question, item.answer)):
                # The encoder works on other cores while the tagger reads.
                pool.submit(self.read_ahead, batch)
            readings = _readings(batch, docs)
        self.read_ahead(batch)
        names = [
            names_in(item.answer, readings[item.answer].names, item.entities) for item in batch
        ]
        entities = [described(item, found) for item, found in zip(batch, names, strict=True)]
        questions = list(dict.fromkeys(item.question for item in batch if item.question.strip()))
        intents = self._encoder.intents(questions) if questions else []
        asked = dict(zip(questions, intents, strict=True))
        answered = self._encoder.answer_intents([item.answer[:ANSWER_CHARS] for item in batch])
        cosines = self._cosines(
            (item.question, entity.description)
            for item, own in zip(batch, entities, strict=True)
            for entity in own
        )
        reports = []
        for row, item in enumerate(batch):
            reading = readings[item.answer]
            structure = score_structure(
                item.answer,
                reading,
                asked.get(item.question, {Intent.NONE: 1.0}),
                answered[row],
                self._settings.features,
            )
            knowledge = score_knowledge(
                item,
                verified(names[row], item.evidence),
                entities[row],
                cosines,
                attribute(item),
                self._settings.knowledge,
            )
            content = _content(item, readings)
            weights = self._settings.parts.get(structure.intent, TABLE_3[Intent.NONE])
            score, paper, parts = total(structure, content, knowledge, weights)
            reports.append(
                SCKReport(
                    score=score,
                    paper=paper,
                    parts=parts,
                    structure=structure,
                    content=content,
                    knowledge=knowledge,
                    warnings=_warnings(item, reading, structure),
                )
            )
        return reports

    def _cosines(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], float]:
        distinct = list(dict.fromkeys(pairs))
        vectors = self._encoder.embed([text for pair in distinct for text in pair])
        rows = zip(distinct, vectors[0::2], vectors[1::2], strict=True)
        return {pair: float(left @ right) for pair, left, right in rows}


def total(
    structure: StructureReport,
    content: ContentReport,
    knowledge: KnowledgeReport,
    weights: PartWeights,
) -> tuple[Score, Score, tuple[Weighted, ...]]:
    """SCK = α·S + β·C + γ·K (eq. 5).

    Returns:
        The score for decisions, in [0, 1]: parts without a value give their weight to the others,
        and it is 0 where the evidence supports no claim. The paper's score, with K of eq. 3 as
        printed: an undefined part counts 0. The parts with their weights.
    """
    score, parts = combine(
        [
            ("structure", structure.score, weights.structure),
            ("content", content.score, weights.content),
            ("knowledge", knowledge.score, weights.knowledge),
        ],
        what="SCK",
    )
    if knowledge.unsupported:
        score = Score(value=0.0, evidence=(UNSUPPORTED,))
    paper = (
        weights.structure * (structure.score.value or 0.0)
        + weights.content * (content.score.value or 0.0)
        + weights.knowledge * (knowledge.paper.value or 0.0)
    )
    return score, Score(value=paper), parts


def _readings(batch: Sequence[SCKInput], docs: Mapping[str, Doc]) -> dict[str, Reading]:
    """Readings of the different answers, questions and references."""
    texts = [item.answer for item in batch] + [item.question for item in batch]
    texts += [item.reference for item in batch if item.reference]
    left = list(dict.fromkeys(text for text in texts if text not in docs))
    found = dict(zip(left, read(left) if left else (), strict=True))
    return found | {text: reading_of(text, docs[text]) for text in texts if text in docs}


def _content(item: SCKInput, readings: Mapping[str, Reading]) -> ContentReport:
    if item.reference and item.reference.strip():
        key = names_in(item.reference, readings[item.reference].names, item.entities)
        return score_content(item.answer, key, source="reference")
    names = readings[item.question].names
    key, source = key_names(item.question, names, item.entities, item.evidence)
    return score_content(item.answer, key, source=source)


def _warnings(item: SCKInput, reading: Reading, structure: StructureReport) -> tuple[str, ...]:
    layout = detect(item.answer).format
    no_question = not item.question.strip()
    signs = {
        "there is no question": no_question,
        "no intent was found in the question; all parts count alike": not no_question
        and structure.intent is Intent.NONE,
        "the answer is empty": layout is Format.EMPTY,
        "the answer is only code": layout is Format.CODE,
        "the answer does not read like English, which tagger and encoder expect": (
            not reading.english
        ),
        "the reference is empty; the question's entities are used": item.reference is not None
        and not item.reference.strip(),
    }
    return tuple(warning for warning, holds in signs.items() if holds)
