"""The shipped judge: one small encoder that answers NLI and attribution on a CPU, offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.types import Category, Complexity, Grounding, Judgement, NLIScores
from guardrail.core.types.judging import Weighing
from judges.base import AttributionItem, GroundingItem, Pair
from judges.batching import distinct, pair_windows
from judges.folder import OnnxFolder
from judges.grounding_pass import GROUNDING_HEADS, GroundingPasses
from judges.heads import HEADS, JudgeCard
from judges.lifting import PHRASE_WORDS, sub_facts, supported_shares
from judges.selection import choose, split_sentences
from judges.session import Running, Segments, softmax

if TYPE_CHECKING:
    from judges.evidence_judge import EvidenceJudge

__all__ = ["SECOND", "SHIPPED", "OnnxJudge", "open_judge"]

SHIPPED = Path(__file__).parent / "weights" / "judge"
"""Folder of the judge that comes with the package."""

SECOND = "second"
"""Folder of the larger model of an ensemble, in that of the smaller one."""

SPECIAL_TOKENS = 3
"""[CLS] and two [SEP] of a pair."""

CHUNK = 256
"""Pairs that are tokenised while earlier ones are computed."""

LONGEST_READ = 160
"""Tokens of evidence, question and answer that are judged at once: as many as in training. Of
longer evidence the sentences that bear on the answer are read."""

LEAST_READ = 64
"""Tokens of evidence that are read together with the longest question and answer."""

NOTHING_SAID = NLIScores(entailment=0.0, neutral=1.0, contradiction=0.0)
"""Of a pair with a blank text."""


class OnnxJudge(OnnxFolder[JudgeCard]):
    """NLI and attribution with an ONNX cross-encoder; both share one loaded model.

    Texts longer than the model reads are judged in overlapping windows: a pair gets the result
    of the premise window that decides most (lowest ``neutral``), and of its weakest part where
    the hypothesis itself needs several. Of long evidence of an answer the sentences that bear on
    it are judged together. A blank premise or hypothesis
    is neutral, blank evidence or a blank answer irrelevant, with certainty.

    Args:
        folder: Holds ``model.onnx``, ``tokenizer.json`` and ``judge.json``; the shipped judge
            by default.
        threads: Pairs computed at the same time; all cores by default.
    """

    _what = "judge"

    def __init__(self, folder: Path | str | None = None, *, threads: int | None = None) -> None:
        super().__init__(SHIPPED if folder is None else Path(folder), JudgeCard, threads=threads)

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs; see ``NLIJudge``."""
        wanted, inverse = distinct(pairs)
        rows = self._probabilities("nli", wanted)
        scores = [NOTHING_SAID if row is None else _nli_scores(row.main) for row in rows]
        return [scores[i] for i in inverse]

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items (CAQA 3.2, 3.3); see ``AttributionJudge``.

        The share of supported sub-facts is 1 for supportive and 0 for irrelevant items; for
        the others each sub-fact of the answer is judged by the NLI head, which has spoken
        already where the whole answer is one sub-fact. The category has the last word: of the n
        sub-facts of a contradictory answer at most n - 1 are supported.
        """
        wanted, inverse = distinct(items)
        wanted = self.read(wanted)
        pairs = [
            Pair(" ".join(item.evidence), f"{item.question} {item.answer}")
            if item.answer.strip()
            else Pair("", "")
            for item in wanted
        ]
        rows = self._probabilities("attribution", pairs, also=("complexity", "nli"))
        judgements = self._judgements(wanted, pairs, rows)
        return [judgements[i] for i in inverse]

    @property
    def grounds(self) -> bool:
        """Whether the model has the heads that ``ground`` reads."""
        self.warm_up()
        return set(self._model.outputs) >= GROUNDING_HEADS

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n sentences, each in one pass; see ``GroundingJudge``.

        If the evidence does not fit next to its sentence, the most important statements are read.
        """
        if not self.grounds:
            raise JudgeError(f"the judge in {self._folder} has no heads for grounding")
        wanted, inverse = distinct(items)
        passes = GroundingPasses(self._model, self.card)
        starts = [
            passes.start(wanted[first : first + CHUNK]) for first in range(0, len(wanted), CHUNK)
        ]
        groundings = [item for start in starts for item in passes.finish(start)]
        return [groundings[i] for i in inverse]

    @property
    def weighing(self) -> Weighing | None:
        """How much its probabilities and the findings of checks weigh in a verdict."""
        return self.card.weighing

    def lengths(self, pairs: Sequence[Pair]) -> list[int]:
        """Tokens of n pairs, special ones included; longer than ``max_length`` means windows."""
        ids = self._model.tokenize([text for pair in pairs for text in pair])
        return [len(ids[i]) + len(ids[i + 1]) + SPECIAL_TOKENS for i in range(0, len(ids), 2)]

    def read(self, items: Sequence[AttributionItem]) -> list[AttributionItem]:
        """What is read of n items: of long evidence the sentences that bear on the answer."""
        pairs = [Pair(" ".join(item.evidence), f"{item.question} {item.answer}") for item in items]
        longest = min(LONGEST_READ, self.card.max_length)
        return [
            self._chosen(item, pair.hypothesis, longest) if length > longest else item
            for item, pair, length in zip(items, pairs, self.lengths(pairs), strict=True)
        ]

    def _chosen(self, item: AttributionItem, asked: str, longest: int) -> AttributionItem:
        sentences = [part for text in item.evidence for part in split_sentences(text)]
        if not sentences:
            return item
        taken, *lengths = (len(ids) for ids in self._model.tokenize([asked, *sentences]))
        bare = len(item.answer.split()) <= PHRASE_WORDS
        room = max(LEAST_READ, longest - SPECIAL_TOKENS - taken)
        places = choose(sentences, asked if bare else item.answer, lengths, room)
        return item._replace(evidence=tuple(sentences[i] for i in places))

    def _read_card(self, path: Path) -> JudgeCard:
        card = super()._read_card(path)
        for head, labels in HEADS.items():
            if head in card.labels and sorted(card.labels[head]) != sorted(labels):
                raise JudgeError(f"{path}: head {head!r} must have the labels {', '.join(labels)}")
        return card

    def _judgements(
        self, items: Sequence[AttributionItem], pairs: Sequence[Pair], rows: Sequence[_Row | None]
    ) -> list[Judgement]:
        scores = [_category_scores(row) for row in rows]
        categories = [max(score, key=score.__getitem__) for score in scores]
        partial = [
            i
            for i, category in enumerate(categories)
            if category in (Category.PARTIALLY_SUPPORTIVE, Category.CONTRADICTORY)
        ]
        known = {
            Pair(pairs[i].premise, pairs[i].hypothesis.strip()): _nli_scores(row.also["nli"])
            for i in partial
            if (row := rows[i]) is not None and row.windows == 1 and "nli" in row.also
        }
        found = supported_shares(self, [items[i] for i in partial], known)
        shares = {
            i: min(share, _most(items[i].answer))
            if categories[i] is Category.CONTRADICTORY
            else share
            for i, share in zip(partial, found, strict=True)
        }
        return [
            Judgement(
                category=category,
                scores=score,
                complexity=None if row is None else _complexity(row.also.get("complexity")),
                supported_share=shares.get(i, float(category is Category.SUPPORTIVE)),
            )
            for i, (row, score, category) in enumerate(zip(rows, scores, categories, strict=True))
        ]

    def _probabilities(
        self, head: str, pairs: Sequence[Pair], also: Sequence[str] = ()
    ) -> list[_Row | None]:
        """Calibrated probabilities of one head, and of others at the same window.

        Pairs with a blank text give None.
        """
        self.warm_up()
        started = [
            self._start(pairs[first : first + CHUNK]) for first in range(0, len(pairs), CHUNK)
        ]
        rows: list[_Row | None] = [None] * len(pairs)
        for number, (running, owners) in enumerate(started):
            outputs = running.result()
            if not owners:
                continue
            main = self._calibrated(head, outputs)
            others = {
                name: self._calibrated(name, outputs)
                for name in also
                if name in outputs and name in self.card.labels
            }
            for pair, group in groupby(range(len(owners)), key=lambda k: owners[k].pair):
                places = list(group)
                best = _deciding(main, places, [owners[k].part for k in places], HEADS[head])
                there = {name: values[best] for name, values in others.items()}
                rows[number * CHUNK + pair] = _Row(main[best], there, len(places))
        return rows

    def _calibrated(
        self, head: str, outputs: Mapping[str, NDArray[np.float32]]
    ) -> NDArray[np.float64]:
        """Probabilities of a head, columns in the order of ``HEADS``."""
        labels = self.card.labels.get(head)
        if head not in outputs or labels is None:
            raise JudgeError(f"the judge in {self._folder} has no head {head!r}")
        if outputs[head].shape[1] != len(labels):
            raise JudgeError(f"judge.json in {self._folder} gives wrong labels for {head!r}")
        order = [labels.index(label) for label in HEADS[head]]
        return softmax(outputs[head], self.card.temperature.get(head, 1.0))[:, order]

    def _start(self, pairs: Sequence[Pair]) -> tuple[Running, list[_Owner]]:
        """Run the model on the windows of pairs; also returns the owner of each sequence."""
        texts, places = distinct([text for pair in pairs for text in pair])
        ids = self._model.tokenize(texts)
        capacity = self.card.max_length - SPECIAL_TOKENS
        sequences: list[Segments] = []
        owners: list[_Owner] = []
        for i, pair in enumerate(pairs):
            if not pair.premise.strip() or not pair.hypothesis.strip():
                continue
            premise, hypothesis = ids[places[2 * i]], ids[places[2 * i + 1]]
            for window in pair_windows(premise, hypothesis, capacity):
                sequences.append(Segments(window.premise, window.hypothesis))
                owners.append(_Owner(i, window.part))
        return self._model.start(sequences), owners


class _Row(NamedTuple):
    """What heads say of a pair's deciding window, one of several; in the order of ``HEADS``."""

    main: NDArray[np.float64]
    also: Mapping[str, NDArray[np.float64]]
    windows: int


class _Owner(NamedTuple):
    """Which pair of a chunk, and which part of its hypothesis, a window belongs to."""

    pair: int
    part: int


def _deciding(
    rows: NDArray[np.float64], places: Sequence[int], parts: Sequence[int], labels: Sequence[str]
) -> int:
    """Choose the window that speaks for a pair.

    Per part of the hypothesis that is the premise window which leaves least open; over the
    parts, the one with the least support, as a text holds only where all of it does.
    """
    if len(places) == 1:
        return places[0]
    undecided = labels.index("neutral" if "neutral" in labels else "irrelevant")
    best: dict[int, int] = {}
    for place, part in zip(places, parts, strict=True):
        if part not in best or rows[place, undecided] < rows[best[part], undecided]:
            best[part] = place
    return min(best.values(), key=lambda place: float(rows[place, 0]))


def _nli_scores(probabilities: NDArray[np.float64]) -> NLIScores:
    entailment, neutral, contradiction = probabilities.tolist()
    return NLIScores(entailment=entailment, neutral=neutral, contradiction=contradiction)


def _category_scores(row: _Row | None) -> dict[Category, float]:
    if row is None:
        return {category: float(category is Category.IRRELEVANT) for category in Category}
    return dict(zip(Category, row.main.tolist(), strict=True))


def _most(answer: str) -> float:
    """The largest share of an answer's sub-facts that can hold where one of them does not."""
    facts = max(1, len(sub_facts(answer)))
    return (facts - 1) / facts


def _complexity(probabilities: NDArray[np.float64] | None) -> Complexity | None:
    return None if probabilities is None else tuple(Complexity)[int(probabilities.argmax())]


def open_judge(
    folder: Path | str | None = None, *, threads: int | None = None
) -> OnnxJudge | EvidenceJudge:
    """The judge of a folder, by its files; nothing is loaded yet.

    Args:
        folder: Holds the graph, ``tokenizer.json`` and ``judge.json``; the shipped judge if None.
        threads: Passes computed at the same time; all cores by default.
    """
    from judges.ensemble import EnsembleJudge
    from judges.evidence_judge import EvidenceJudge
    from judges.window_reader import GRAPH

    path = SHIPPED if folder is None else Path(folder)
    if (path / GRAPH).is_file():
        return EvidenceJudge(path, threads=threads)
    kind = EnsembleJudge if (path / SECOND / GRAPH).is_file() else OnnxJudge
    return kind(path, threads=threads)
