"""The shipped judge: small encoders that answer NLI and attribution on a CPU, offline.

A small cross-encoder sees sentence and evidence together; where it is unsure, a larger encoder,
which encodes evidence once, reads them too. Their logarithmic opinion pool judges better than the
smaller one alone (``benchmarks/RESULTS.md``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.types import Grounding, Judgement, NLIScores
from guardrail.core.types.judging import Weighing
from judges.base import AttributionItem, GroundingItem, Pair
from judges.batching import choose, deciding_windows, each_once, pair_windows, split_sentences
from judges.evidence_judge import EvidenceJudge
from judges.folder import HEADS, TOKEN_HEADS, JudgeCard, OnnxFolder
from judges.grounding_pass import GroundingPasses
from judges.lifting import (
    NEUTRAL,
    PHRASE_WORDS,
    Attribution,
    attributed,
    attribution_pair,
    nli_scores,
)
from judges.session import WEIGHTS, Row, Segments, softmax
from judges.settings import LEAST, Calibration
from judges.window_reader import GRAPH

SHIPPED = WEIGHTS / "judge"
"""Folder of the judge that comes with the package."""

SECOND = "second"
"""Folder of the larger model of an ensemble, in that of the smaller one."""

SPECIAL_TOKENS = 3
"""[CLS] and two [SEP] of a pair."""

DOUBTED = 0.15
"""Least support in the pool that takes back a contradiction which the smaller model is sure of."""

CHUNK = 256
"""Pairs that are tokenised while earlier ones are computed."""


class OnnxJudge(OnnxFolder[JudgeCard]):
    """NLI and attribution with an ONNX cross-encoder; both share one loaded model.

    Texts longer than the model reads are judged in overlapping windows: a pair gets the result
    of the premise window that decides most (lowest ``neutral``), and of its weakest part where
    the hypothesis itself needs several. Of long evidence of an answer the sentences that bear on
    it are judged together. A blank premise or hypothesis is neutral, blank evidence or a blank
    answer irrelevant, with certainty.

    Args:
        folder: Holds ``model.onnx``, ``tokenizer.json`` and ``judge.json``; the shipped judge
            by default.
        threads: Pairs computed at the same time; all cores by default.
    """

    _what = "judge"

    def __init__(self, folder: Path | str | None = None, *, threads: int | None = None) -> None:
        super().__init__(SHIPPED if folder is None else Path(folder), JudgeCard, threads=threads)

    @each_once
    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs; see ``NLIJudge``."""
        rows = self._probabilities("nli", pairs)
        return [NEUTRAL if row is None else nli_scores(row.main) for row in rows]

    @each_once
    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items; see ``AttributionJudge`` and ``lifting.attributed``."""
        items = self.read(items)
        pairs = [attribution_pair(item) for item in items]
        rows = self._probabilities("attribution", pairs, also=("complexity", "nli"))
        attributions = []
        for row in rows:
            nli = row.also.get("nli") if row and row.windows == 1 else None
            known = None if nli is None else nli_scores(nli)
            attributions.append(
                Attribution(row.main, row.also.get("complexity"), known) if row else Attribution()
            )
        return attributed(self, items, attributions)

    @property
    def grounds(self) -> bool:
        """Whether the model has the heads that ``ground`` reads."""
        self.warm_up()
        return {"nli", "claim", *TOKEN_HEADS} <= set(self._model.outputs)

    @each_once
    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n sentences, each in one pass; see ``GroundingJudge``.

        If the evidence does not fit next to its sentence, the most important statements are read.
        """
        passes = self._passes
        chunks = [
            passes.start(items[first : first + CHUNK]) for first in range(0, len(items), CHUNK)
        ]
        return [
            passes.grounding(outputs, plan)
            for started, plans in chunks
            for outputs, plan in zip(self._model.rows(started), plans, strict=True)
        ]

    @cached_property
    def _passes(self) -> GroundingPasses:
        if not self.grounds:
            raise JudgeError(f"the judge in {self._folder} has no heads for grounding")
        return GroundingPasses(self._model, self.card)

    @property
    def weighing(self) -> Weighing | None:
        """Weights of its probabilities and of the checks in a verdict."""
        return self.card.weighing

    def lengths(self, pairs: Sequence[Pair]) -> list[int]:
        """Tokens of n pairs, special ones included; longer than ``max_length`` means windows."""
        ids = self._model.ids(text for pair in pairs for text in pair)
        return [len(ids[left]) + len(ids[right]) + SPECIAL_TOKENS for left, right in pairs]

    def read(self, items: Sequence[AttributionItem]) -> list[AttributionItem]:
        """Reduce long evidence of n items to the sentences that bear on the answer.

        As in training, at most 160 tokens of evidence, question and answer are judged at once.
        """
        pairs = [Pair(" ".join(item.evidence), f"{item.question} {item.answer}") for item in items]
        longest = min(160, self.card.max_length)
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
        room = max(64, longest - SPECIAL_TOKENS - taken)  # tokens, whatever the answer takes
        places = choose(sentences, asked if bare else item.answer, lengths, room)
        return item._replace(evidence=tuple(sentences[i] for i in places))

    def _read_card(self, path: Path) -> JudgeCard:
        card = super()._read_card(path)
        for head, labels in HEADS.items():
            if head in card.labels and sorted(card.labels[head]) != sorted(labels):
                raise JudgeError(f"{path}: head {head!r} must have the labels {', '.join(labels)}")
        return card

    def _probabilities(
        self, head: str, pairs: Sequence[Pair], also: Sequence[str] = ()
    ) -> list[_Row | None]:
        """Calibrated probabilities of one head, and of others at the same window.

        Pairs with a blank text give None.
        """
        chunks = [
            self._start(pairs[first : first + CHUNK]) for first in range(0, len(pairs), CHUNK)
        ]
        rows: list[_Row | None] = [None] * len(pairs)
        for number, (started, owners) in enumerate(chunks):
            outputs = self._model.whole(started)
            if not owners:
                continue
            main = self._calibrated(head, outputs)
            others = {
                name: self._calibrated(name, outputs)
                for name in also
                if name in outputs and name in self.card.labels
            }
            undecided = HEADS[head].index("neutral" if head == "nli" else "irrelevant")
            windows = Counter(pair for pair, _ in owners)
            best = deciding_windows(owners, main[:, undecided], main[:, 0])
            for pair, window in best.items():
                there = {name: values[window] for name, values in others.items()}
                rows[number * CHUNK + pair] = _Row(main[window], there, windows[pair])
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

    def _start(self, pairs: Sequence[Pair]) -> tuple[list[Future[Row]], list[tuple[int, int]]]:
        """Run the model on the windows of pairs.

        Also returns the pair, and the part of its hypothesis, of each sequence.
        """
        ids = self._model.ids(text for pair in pairs for text in pair)
        capacity = self.card.max_length - SPECIAL_TOKENS
        sequences: list[Segments] = []
        owners: list[tuple[int, int]] = []
        for i, (premise, hypothesis) in enumerate(pairs):
            if not premise.strip() or not hypothesis.strip():
                continue
            for window in pair_windows(ids[premise], ids[hypothesis], capacity):
                sequences.append([window.premise, window.hypothesis])
                owners.append((i, window.part))
        return self._model.start(sequences), owners


class _Row(NamedTuple):
    """Probabilities of the window that decides a pair, and the number of its windows."""

    main: NDArray[np.float64]
    also: Mapping[str, NDArray[np.float64]]
    windows: int


class EnsembleJudge(OnnxJudge):
    """Pools the verdicts and NLI scores of two models; the rest comes from the smaller one.

    The probabilities of supported, unsupported and contradicted are multiplied, each to the power
    of its model's share, and calibrated (Genest and Zidek 1986, "Combining Probability
    Distributions"). Sentences that the smaller model is sure about are not read by the larger one,
    except contradictions, which the pool may doubt.

    Args:
        folder: Folder of the smaller model, with that of the larger one, ``second``, in it. Its
            ``judge.json`` has the shares, as ``ensemble``.
        threads: Passes computed at the same time; all cores by default.
    """

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        super().__init__(folder, threads=threads)
        self._second = EvidenceJudge(folder / SECOND, threads=threads)

    @property
    def name(self) -> str:
        """Names and versions of both, for the score log."""
        return f"{super().name}+{self._second.name}"

    @property
    def snapshot(self) -> str | None:
        """Hashes of the files of both; None if some cannot be read."""
        found = super().snapshot, self._second.snapshot
        return "+".join(filter(None, found)) if all(found) else None

    def warm_up(self) -> None:
        """Load both models; later calls do nothing."""
        super().warm_up()
        self._second.warm_up()

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs by both models; see ``NLIJudge``."""
        share = self.card.ensemble.pairs
        both = zip(super().judge(pairs), self._second.judge(pairs), strict=True)
        return [nli_scores(np.array(_product(_nli(a), _nli(b), share))) for a, b in both]

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n sentences; see ``GroundingJudge``."""
        found = super().ground(items)
        sure = self.card.ensemble.sure
        read = [i for i, one in enumerate(found) if _is_open(one, sure)]
        second = self._second.ground([items[i] for i in read]) if read else []
        for i, other in zip(read, second, strict=True):
            pooled = self._pooled(found[i], other, structured=items[i].structured)
            found[i] = agreed(found[i], pooled, sure=sure)
        return found

    def _pooled(self, one: Grounding, other: Grounding, *, structured: bool) -> Grounding:
        kind = "triples" if structured else "passages"
        calibration = self.card.ensemble.grounding.get(kind, Calibration())
        pooled = _product(_shares(one), _shares(other), self.card.ensemble.share)
        claims = 1.0 - one.no_claim
        names = ("supported", "unsupported", "contradicted")
        shares = (share * claims for share in calibration.shares(pooled))
        return one.model_copy(update=dict(zip(names, shares, strict=True)))


def _product(one: Sequence[float], other: Sequence[float], share: float) -> list[float]:
    """Probabilities of two models multiplied, each to the power of its share; their sum is 1."""
    found = [
        math.exp((1 - share) * math.log(max(LEAST, a)) + share * math.log(max(LEAST, b)))
        for a, b in zip(one, other, strict=True)
    ]
    return [value / sum(found) for value in found]


def _nli(one: NLIScores) -> tuple[float, float, float]:
    return one.entailment, one.neutral, one.contradiction


def _shares(one: Grounding) -> tuple[float, float, float]:
    """Supported, unsupported and contradicted, given that something is claimed."""
    claims = max(LEAST, 1.0 - one.no_claim)
    return one.supported / claims, one.unsupported / claims, one.contradicted / claims


def agreed(one: Grounding, pooled: Grounding, *, sure: float) -> Grounding:
    """What the pool makes of a sentence: nothing else where the smaller model is sure.

    Of a contradiction that it is sure about and that the pool doubts, what the pool denies becomes
    a lack of support.
    """
    if most_of(one) < sure:
        return pooled
    if not _is_open(one, sure) or _shares(pooled)[0] < DOUBTED:
        return one
    contradicted = min(one.contradicted, pooled.contradicted)
    unsupported = one.unsupported + one.contradicted - contradicted
    return one.model_copy(update={"contradicted": contradicted, "unsupported": unsupported})


def _is_open(one: Grounding, sure: float) -> bool:
    """Whether the larger model is asked: the smaller is unsure, or sure of a contradiction."""
    return most_of(one) < sure or most_of(one) == _shares(one)[2]


def most_of(one: Grounding) -> float:
    """Probability of the likeliest verdict."""
    return max(*_shares(one), one.no_claim)


def open_judge(
    folder: Path | str | None = None, *, threads: int | None = None
) -> OnnxJudge | EvidenceJudge:
    """The judge of a folder, by its files; nothing is loaded yet.

    Args:
        folder: Holds the graph, ``tokenizer.json`` and ``judge.json``; the shipped judge if None.
        threads: Passes computed at the same time; all cores by default.
    """
    path = SHIPPED if folder is None else Path(folder)
    if (path / GRAPH).is_file():
        return EvidenceJudge(path, threads=threads)
    kind = EnsembleJudge if (path / SECOND / GRAPH).is_file() else OnnxJudge
    return kind(path, threads=threads)
