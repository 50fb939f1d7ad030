"""Knowledge texts and twins spoilt in one known way, one way for each perspective (CONNER 3).

The twins are made by rules that no model took part in.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from benchmarks.data import read_jsonl
from guardrail.core.text.sentences import split_sentences
from judges.conner import Aggregation, ConnerInput, ConnerReport, Perspective
from judges.conner.factuality import aggregate

__all__ = ["TURN", "Text", "Trial", "pieces", "read_rows", "trials", "validity_pairs"]

SEED = 0
PIECE_WORDS = 100
"""Words of a passage that are read at once, as in the paper's retrieval corpus."""
NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][a-z]+(?: [A-Z][a-z]+)*\b")
NUMBER = re.compile(r"\b\d+\b")
SENTENCES_FOR_ORDER = 4
OPENING_WORDS = 300
"""Words of a text whose sentence likelihoods are computed, as in the released script of eq. 5; a
few passages are so long that they would take most of the time."""
NO_PASSAGE = "no_passages_used"
"""Marks turns without knowledge in the dialogue files; such rows are left out."""
TURN = " [SEP] "
"""Stands between the turns of a dialogue."""


class Text(NamedTuple):
    """A row of the data; the query of a dialogue is all its turns."""

    query: str
    knowledge: str
    answer: str
    topic: str = ""
    perplexity: float | None = None
    coherence: float | None = None
    answer_kind: Literal["span", "open"] = "span"

    @property
    def opening(self) -> tuple[str, ...]:
        """The sentences that begin within the first 300 words."""
        kept: list[str] = []
        words = 0
        for sentence in self.sentences:
            if words >= OPENING_WORDS:
                break
            kept.append(sentence)
            words += len(sentence.split())
        return tuple(kept)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of the knowledge text."""
        return tuple(stretch.text for stretch in split_sentences(self.knowledge))


class Trial(NamedTuple):
    """A perspective's rows: the texts as they are and their spoilt twins.

    Attributes:
        perspective: What the trial needs of the scorer.
        pairs: The rows.
        scores: Ways to read the score off a report, by name.
        target: The share of pairs whose score should fall.
    """

    perspective: Perspective
    pairs: Sequence[tuple[ConnerInput, ConnerInput]]
    scores: Mapping[str, Callable[[ConnerReport], float | None]]
    target: float


def read_rows(data: Path, name: str) -> list[Text]:
    """Read one file of the data: questions with span answers, or dialogues with open ones."""
    raw = read_jsonl(data / "conner" / f"{name}.jsonl.gz")
    return [
        Text(
            row["query"],
            row["knowledge"],
            row["answer"],
            row["topic"],
            row.get("reference_sentence_ppl"),
            row.get("reference_paragraph_coherence"),
            "open" if name.startswith("wow") else "span",
        )
        for row in raw
        if row["knowledge"] != NO_PASSAGE
    ]


def trials(texts: Sequence[Text], perspectives: Collection[Perspective]) -> list[Trial]:
    """The trials of some perspectives on one set of texts; a trial's twins depend on no other."""
    return [_TRIALS[trial](texts) for trial in _TRIALS if trial in perspectives]


def validity_pairs(data: Path, rows: int) -> dict[str, list[tuple[ConnerInput, ConnerInput]]]:
    """Right and wrong answers of NQ and WoW, with what their validity is judged against.

    Args:
        data: Folder that holds ``conner/``.
        rows: Rows of each set.
    """
    nq = read_rows(data, "nq")[:rows]
    wow = read_rows(data, "wow_seen")[:rows] + read_rows(data, "wow_unseen")[:rows]
    found = {
        "nq, span (eq. 7)": list(_validity(nq).pairs),
        "wow, open (eq. 8)": list(_validity(wow).pairs),
    }
    alone, grounded = [], []
    for text, other in zip(nq, _others(nq), strict=True):
        said = next((each for each in text.sentences if text.answer in each), None)
        if said is None or text.answer.casefold() == other.answer.casefold():
            continue
        wrong = said.replace(text.answer, other.answer)
        answers = [_row(text, answer=each, reference=text.answer) for each in (said, wrong)]
        alone.append((answers[0], answers[1]))
        evidence = {"evidence": tuple(pieces(text.knowledge))}
        grounded.append(tuple(each.model_copy(update=evidence) for each in answers))
    found["nq, sentence, gold answer"] = alone
    found["nq, sentence, gold answer and passage"] = [(one, two) for one, two in grounded]
    return found


def pieces(text: str) -> list[str]:
    """Cut a passage at sentence ends into pieces of at most 100 words; a longer sentence is one."""
    cut: list[list[str]] = [[]]
    words = 0
    for sentence in (stretch.text for stretch in split_sentences(text)):
        words += len(sentence.split())
        if cut[-1] and words > PIECE_WORDS:
            cut.append([])
            words = len(sentence.split())
        cut[-1].append(sentence)
    return [" ".join(piece) for piece in cut if piece]


def _factuality(texts: Sequence[Text]) -> Trial:
    """One name or number of one sentence changed; the evidence is the original passage."""
    generator = random.Random(SEED)
    return Trial(
        Perspective.FACTUALITY,
        [pair for text in texts if (pair := _factuality_pair(text, texts, generator))],
        {
            "factuality (minimum over sentences)": lambda report: report.factuality.value,
            "factuality (mean over sentences)": _mean_factuality,
        },
        0.85,
    )


def _mean_factuality(report: ConnerReport) -> float | None:
    if not report.sentences:
        return None
    return aggregate(report.sentences, Aggregation.MEAN).entailment


def _relevance(texts: Sequence[Text]) -> Trial:
    """Another row's passage."""
    return Trial(
        Perspective.RELEVANCE,
        [
            (_row(text), _row(text._replace(knowledge=other.knowledge)))
            for text, other in zip(texts, _others(texts), strict=True)
        ],
        {"relevance": lambda report: report.relevance.value},
        0.97,
    )


def _paragraph_coherence(texts: Sequence[Text]) -> Trial:
    """Sentences shuffled, of texts with at least four."""
    generator = random.Random(SEED)
    return Trial(
        Perspective.COHERENCE_PARAGRAPH,
        [
            (_row(text), _row(text, sentences=_shuffled(text.sentences, generator)))
            for text in texts
            if len(set(text.sentences)) >= SENTENCES_FOR_ORDER
        ],
        {"paragraph coherence": lambda report: report.coherence_paragraph.value},
        0.80,
    )


def _validity(texts: Sequence[Text]) -> Trial:
    """Another row's answer.

    An open answer is read against the knowledge and the gold answer, as in the released script.
    """
    return Trial(
        Perspective.VALIDITY,
        [
            (_answered(text, text.answer), _answered(text, other.answer))
            for text, other in zip(texts, _others(texts), strict=True)
            if text.answer.casefold() != other.answer.casefold()
        ],
        {"validity": lambda report: report.validity.value},
        0.95,
    )


def _sentence_coherence(texts: Sequence[Text]) -> Trial:
    """Words shuffled within each sentence of the opening; texts that this leaves alone are out."""
    generator = random.Random(SEED)
    twins = [(text, _words_shuffled(text.opening, generator)) for text in texts]
    return Trial(
        Perspective.COHERENCE_SENTENCE,
        [
            (_row(text, sentences=text.opening), _row(text, sentences=shuffled))
            for text, shuffled in twins
            if " ".join(shuffled).split() != " ".join(text.opening).split()
        ],
        {
            "sentence coherence": lambda report: report.coherence_sentence_uncapped.value,
            "sentence coherence (perplexity capped)": lambda r: r.coherence_sentence.value,
        },
        0.98,
    )


def _helpfulness(texts: Sequence[Text]) -> Trial:
    """Another row's passage, before the score is clipped at 0.

    Of a dialogue the last turn is the question, as in the released script.
    """
    asked = [text._replace(query=text.query.split(TURN)[-1]) for text in texts]
    return Trial(
        Perspective.HELPFULNESS,
        [
            (
                _row(text, answer=text.answer),
                _row(text._replace(knowledge=other.knowledge), answer=text.answer),
            )
            for text, other in zip(asked, _others(texts), strict=True)
        ],
        {"helpfulness": lambda report: report.helpfulness_unclipped.value},
        0.85,
    )


_TRIALS: Mapping[Perspective, Callable[[Sequence[Text]], Trial]] = {
    Perspective.FACTUALITY: _factuality,
    Perspective.RELEVANCE: _relevance,
    Perspective.COHERENCE_PARAGRAPH: _paragraph_coherence,
    Perspective.VALIDITY: _validity,
    Perspective.COHERENCE_SENTENCE: _sentence_coherence,
    Perspective.HELPFULNESS: _helpfulness,
}


def _others(texts: Sequence[Text]) -> list[Text]:
    """For each row another one."""
    return [*texts[1:], *texts[:1]]


def _row(
    text: Text,
    *,
    sentences: Sequence[str] | None = None,
    evidence: Sequence[str] = (),
    answer: str | None = None,
    reference: str | None = None,
) -> ConnerInput:
    return ConnerInput(
        query=text.query,
        knowledge=text.knowledge,
        sentences=tuple(text.sentences if sentences is None else sentences),
        evidence=tuple(evidence),
        answer=answer,
        reference=reference,
    )


def _answered(text: Text, answer: str) -> ConnerInput:
    """A row with an answer and what its validity needs."""
    evidence = (text.knowledge,) if text.answer_kind == "open" else ()
    row = _row(text, evidence=evidence, answer=answer, reference=text.answer)
    return row.model_copy(update={"answer_kind": text.answer_kind})


def _factuality_pair(
    text: Text, texts: Sequence[Text], generator: random.Random
) -> tuple[ConnerInput, ConnerInput] | None:
    """The text and its twin with one name or number of one sentence changed."""
    sentences = text.sentences
    places = [
        (index, match)
        for index, sentence in enumerate(sentences)
        for pattern in (NAME, NUMBER)
        for match in pattern.finditer(sentence)
    ]
    if not places:
        return None
    index, match = generator.choice(places)
    wrong = _another(match.group(), texts, generator)
    changed = list(sentences)
    changed[index] = changed[index][: match.start()] + wrong + changed[index][match.end() :]
    evidence = pieces(text.knowledge)
    return _row(text, evidence=evidence), _row(text, sentences=changed, evidence=evidence)


def _another(word: str, texts: Sequence[Text], generator: random.Random) -> str:
    """A number near the right one, or a name from another text."""
    if word.isdigit():
        return str(int(word) + generator.choice([-9, -4, -1, 1, 3, 12]))
    while True:
        names = NAME.findall(generator.choice(texts).knowledge)
        candidates = [name for name in names if name.casefold() not in word.casefold()]
        if candidates:
            return str(generator.choice(candidates))


def _shuffled(sentences: Sequence[str], generator: random.Random) -> list[str]:
    order = list(sentences)
    while order == list(sentences):
        generator.shuffle(order)
    return order


def _words_shuffled(sentences: Sequence[str], generator: random.Random) -> list[str]:
    shuffled = []
    for sentence in sentences:
        words = sentence.split()
        generator.shuffle(words)
        shuffled.append(" ".join(words))
    return shuffled
