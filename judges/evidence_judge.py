"""The judge that encodes evidence once: grounding, NLI and attribution with one network.

Evidence becomes windows that are encoded on their own and cached; a sentence costs only its own
tokens. Windows are a set: their order and duplicates change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.types import (
    Category,
    Complexity,
    Grounding,
    Judgement,
    NLIScores,
    StatementScore,
    WordScore,
)
from guardrail.core.types.judging import Weighing
from judges.base import AttributionItem, GroundingItem, NLITraits, Pair
from judges.batching import distinct
from judges.calibration import Calibration
from judges.folder import OnnxFolder
from judges.grounding_pass import unknown_words
from judges.heads import JudgeCard
from judges.lifting import supported_shares
from judges.probes import Probe, read_probes, statement_features, word_features
from judges.selection import choose, split_sentences
from judges.sequences import IDS, Claim, claims_of, windows_of
from judges.session import softmax
from judges.window_reader import OnnxReader, Reader, Reading, canonical

__all__ = ["PAIRS", "EvidenceJudge"]

EVIDENCE = 1_024
"""Most tokens of evidence within reach of a sentence."""

PAIRS = "pairs"
"""Kind of evidence of NLI pairs and attributions, for their calibration."""

_WORD = re.compile(r"\S+")
_NOTHING = NLIScores(entailment=0.0, neutral=1.0, contradiction=0.0)
_UNGROUNDED = Grounding(supported=0.0, unsupported=1.0, contradicted=0.0, no_claim=0.0)


class _Plan(NamedTuple):
    """What is read for one item: its windows, the parts of its sentence, and its statements.

    Attributes:
        windows: In canonical order.
        claims: One, or several for a long sentence.
        places: Of each statement read, its tokens among those of the windows.
    """

    windows: tuple[IDS, ...]
    claims: list[Claim]
    places: dict[int, tuple[int, int]]


class EvidenceJudge(OnnxFolder[JudgeCard]):
    """Grounding, NLI and attribution by a network that encodes evidence once.

    A long sentence is judged in parts, and its weakest part counts. Of evidence with more than
    ``EVIDENCE`` tokens the windows with the most important statements are read. A blank premise or
    hypothesis is neutral, blank evidence or a blank answer irrelevant, with certainty.

    Args:
        folder: Holds ``judge.onnx``, its weights, ``tokenizer.json`` and ``judge.json``.
        threads: Passes computed at the same time; all cores by default.
        reader: Runs the network; the folder's ONNX graph by default.
    """

    _what = "judge"
    _text_model = OnnxReader
    _model: OnnxReader
    traits: ClassVar[NLITraits] = NLITraits(premise_chars=4_000, evidence_chars=4_000)
    grounds: ClassVar[bool] = True

    def __init__(
        self, folder: Path | str, *, threads: int | None = None, reader: Reader | None = None
    ) -> None:
        super().__init__(Path(folder), JudgeCard, threads=threads)
        self._reader: Reader = reader or self._model
        self._found_probes: dict[str, Probe] | None = None

    @property
    def weighing(self) -> Weighing | None:
        """How much its probabilities and the findings of checks weigh in a verdict."""
        return self.card.weighing

    @property
    def probes(self) -> dict[str, Probe]:
        """Its small heads by name."""
        if self._found_probes is None:
            self._found_probes = read_probes(self._folder)
        return self._found_probes

    def warm_up(self) -> None:
        """Load the model and its small heads; later calls do nothing."""
        super().warm_up()
        _ = self.probes

    @property
    def cached(self) -> tuple[int, int]:
        """Tokens and bytes of the encoded evidence in the cache."""
        return self._model.held_tokens, self._model.held

    def forget(self) -> None:
        """Empty the cache of encoded evidence."""
        self._model.forget()

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs; see ``NLIJudge``."""
        self.warm_up()
        wanted, inverse = distinct(pairs)
        found = [
            _NOTHING if row is None else _nli_scores(row[0]) for row in self._read_pairs(wanted)
        ]
        return [found[i] for i in inverse]

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items (CAQA 3.2, 3.3); see ``AttributionJudge``.

        Raises:
            JudgeError: The folder has no probes for attribution, or the model failed.
        """
        self.warm_up()
        if "attribution" not in self.probes:
            raise JudgeError(f"the judge in {self._folder} has no probe for attribution")
        wanted, inverse = distinct(items)
        rows = self._read_pairs(
            [
                Pair(" ".join(item.evidence), f"{item.question} {item.answer}")
                if item.answer.strip()
                else Pair("", "")
                for item in wanted
            ]
        )
        scores = [None if row is None else self._categories(row[1]) for row in rows]
        categories = [
            Category.IRRELEVANT if one is None else tuple(Category)[int(one.argmax())]
            for one in scores
        ]
        partial = [
            i
            for i, category in enumerate(categories)
            if category in (Category.PARTIALLY_SUPPORTIVE, Category.CONTRADICTORY)
        ]
        shares = dict(
            zip(partial, supported_shares(self, [wanted[i] for i in partial]), strict=True)
        )
        judgements = [
            Judgement(
                category=category,
                scores={c: float(c is category) for c in Category}
                if one is None
                else dict(zip(Category, one.tolist(), strict=True)),
                complexity=None if row is None else self._complexity(row[1]),
                supported_share=shares.get(i, float(category is Category.SUPPORTIVE)),
            )
            for i, (row, one, category) in enumerate(zip(rows, scores, categories, strict=True))
        ]
        return [judgements[i] for i in inverse]

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n sentences; see ``GroundingJudge``."""
        self.warm_up()
        wanted, inverse = distinct(items)
        plans = self._plans(wanted)
        readings = self._readings(plans)
        offsets = self._model.offsets([item.sentence for item in wanted])
        found = [
            self._grounding(item, plan, rows, places) if rows else _UNGROUNDED
            for item, plan, rows, places in zip(wanted, plans, readings, offsets, strict=True)
        ]
        return [found[i] for i in inverse]

    def plan(self, items: Sequence[GroundingItem]) -> list[tuple[_Plan, list[Reading]]]:
        """What is read for n sentences and what the network gives, to fit probes on."""
        self.warm_up()
        plans = self._plans(items)
        return list(zip(plans, self._readings(plans), strict=True))

    def features(self, pairs: Sequence[Pair]) -> list[Reading | None]:
        """What the network gives for n pairs, to fit probes on; None for a blank text."""
        self.warm_up()
        return [None if row is None else row[1] for row in self._read_pairs(pairs)]

    def _readings(self, plans: Sequence[_Plan]) -> list[list[Reading]]:
        """Readings of the parts of each sentence; none where there is nothing to read."""
        tasks = [
            (number, plan.windows, claim)
            for number, plan in enumerate(plans)
            for claim in (plan.claims if plan.windows else ())
        ]
        rows: list[list[Reading]] = [[] for _ in plans]
        results = self._reader.read([(windows, claim) for _, windows, claim in tasks])
        for (number, _, _), reading in zip(tasks, results, strict=True):
            rows[number].append(reading)
        return rows

    def _plans(self, items: Sequence[GroundingItem]) -> list[_Plan]:
        texts = dict.fromkeys(
            text for item in items for text in (*item.statements, item.sentence, item.context)
        )
        ids = dict(zip(texts, self._model.tokenize(list(texts)), strict=True))
        _, end = self._model.ends
        plans = []
        for item in items:
            parts = [ids[text] for text in item.statements]
            blank = not item.sentence.strip()
            groups = [] if blank else _groups(item)
            windows, places = self._windows(parts, groups, item.structured)
            claims = claims_of(ids[item.context], ids[item.sentence], end=end)
            plans.append(_Plan(windows, claims, places))
        return plans

    def _windows(
        self, parts: Sequence[Sequence[int]], groups: Sequence[Sequence[int]], closed: bool
    ) -> tuple[tuple[IDS, ...], dict[int, tuple[int, int]]]:
        """The windows of statements, and the tokens of each statement among those of all windows.

        Args:
            parts: Token ids of the statements.
            groups: Statements of each entity or passage, the most important group first.
            closed: See ``windows_of``.
        """
        start, end = self._model.ends
        room = EVIDENCE
        inside: dict[int, tuple[IDS, tuple[int, int]]] = {}
        chosen: list[IDS] = []
        for group in groups:
            left = list(group)
            made = windows_of([parts[i] for i in group], start=start, end=end, closed=closed)
            for ids, spans in made:
                own, left = left[: len(spans)], left[len(spans) :]
                if chosen and len(ids) > room:
                    continue
                room -= len(ids)
                chosen.append(ids)
                inside |= {i: (ids, span) for i, span in zip(own, spans, strict=True)}
        windows = canonical(chosen)
        at = dict(zip(windows, np.cumsum([0, *map(len, windows)]).tolist(), strict=False))
        return windows, {i: (at[w] + a, at[w] + b) for i, (w, (a, b)) in inside.items()}

    def _read_pairs(
        self, pairs: Sequence[Pair]
    ) -> list[tuple[NDArray[np.float64], Reading] | None]:
        """Calibrated probabilities and the reading of each pair's weakest part."""
        sentences = [split_sentences(pair.premise) for pair in pairs]
        texts = dict.fromkeys(
            text
            for pair, parts in zip(pairs, sentences, strict=True)
            for text in (*parts, pair.hypothesis)
        )
        ids = dict(zip(texts, self._model.tokenize(list(texts)), strict=True))
        plans = []
        for pair, parts in zip(pairs, sentences, strict=True):
            blank = not parts or not pair.hypothesis.strip()
            lengths = [len(ids[part]) + 1 for part in parts]
            if sum(lengths) > EVIDENCE:
                parts = [parts[i] for i in choose(parts, pair.hypothesis, lengths, EVIDENCE)]
            group = [] if blank else [range(len(parts))]
            windows, places = self._windows([ids[part] for part in parts], group, True)
            claims = claims_of([], ids[pair.hypothesis], end=self._model.ends[1])
            plans.append(_Plan(windows, claims, places))
        found: list[tuple[NDArray[np.float64], Reading] | None] = []
        for rows in self._readings(plans):
            scored = [(self._probabilities(row, PAIRS)[0], row) for row in rows]
            found.append(min(scored, key=lambda one: float(one[0][0]), default=None))
        return found

    def _probabilities(self, reading: Reading, kind: str) -> tuple[NDArray[np.float64], float]:
        """Probabilities of supported, unsupported and contradicted, and that of no claim."""
        calibration = self.card.grounding.get(kind, Calibration())
        bias = np.array(calibration.bias)
        verdict = softmax(reading.labels[:3] + bias, calibration.temperature)
        return verdict, float(softmax(reading.labels)[3])

    def _categories(self, reading: Reading) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self.probes["attribution"](reading.features[None])[0]
        return found

    def _complexity(self, reading: Reading) -> Complexity | None:
        probe = self.probes.get("complexity")
        return probe and tuple(Complexity)[int(probe(reading.features[None])[0].argmax())]

    def _grounding(
        self,
        item: GroundingItem,
        plan: _Plan,
        readings: Sequence[Reading],
        offsets: Sequence[tuple[int, int]],
    ) -> Grounding:
        kind = "triples" if item.structured else "passages"
        scored = [(*self._probabilities(reading, kind), reading) for reading in readings]
        verdict, none, reading = min(
            scored, key=lambda one: float(one[0][0] * (1 - one[1]) + one[1])
        )
        supported, unsupported, contradicted = (verdict * (1 - none)).tolist()
        tokens = [token for claim in plan.claims for token in claim.ids[claim.start : -1]]
        return Grounding(
            supported=supported,
            unsupported=unsupported,
            contradicted=contradicted,
            no_claim=none,
            words=tuple(self._words(item, plan, readings, offsets)),
            statements=self._statements(item, plan, reading),
            unread=tuple(unknown_words(self._model, item, tokens, list(offsets))),
        )

    def _statements(
        self, item: GroundingItem, plan: _Plan, reading: Reading
    ) -> tuple[StatementScore | None, ...]:
        probe = self.probes.get("statements")
        if probe is None or not reading.attention.size:
            return ()
        rows = probe(statement_features(reading, list(plan.places.values())))
        scores = {
            number: StatementScore(carries=carries, conflicts=conflicts)
            for number, (_, carries, conflicts) in zip(plan.places, rows.tolist(), strict=True)
        }
        return tuple(scores.get(number) for number in range(len(item.statements)))

    def _words(
        self,
        item: GroundingItem,
        plan: _Plan,
        readings: Sequence[Reading],
        offsets: Sequence[tuple[int, int]],
    ) -> Iterator[WordScore]:
        """Scores of the sentence's words: the mean over the tokens of each."""
        probe = self.probes.get("words")
        if probe is None or not offsets:
            return
        parts = zip(plan.claims, readings, strict=True)
        rows = probe(np.concatenate([word_features(reading, claim) for claim, reading in parts]))
        starts = np.array([start for start, _ in offsets])
        for match in _WORD.finditer(item.sentence):
            inside = rows[(starts >= match.start()) & (starts < match.end())]
            if len(inside):
                _, missing, contradicted = inside.mean(0).tolist()
                yield WordScore(
                    start=match.start(), end=match.end(), missing=missing, contradicted=contradicted
                )


def _groups(item: GroundingItem) -> list[list[int]]:
    """The statements of each entity or passage, the group with the most important one first.

    Triples of one entity are a set: they are sorted, and duplicates read once.
    """
    keys: list[object] = list(item.windows)
    if not keys:
        keys = [text.partition(", ")[0] if item.structured else 0 for text in item.statements]
    groups: dict[object, list[int]] = {}
    for number in item.priority or range(len(item.statements)):
        groups.setdefault(keys[number], []).append(number)
    if not item.structured:
        return [sorted(group) for group in groups.values()]
    return [
        sorted(
            {item.statements[i]: i for i in sorted(group)}.values(), key=item.statements.__getitem__
        )
        for group in groups.values()
    ]


def _nli_scores(probabilities: NDArray[np.float64]) -> NLIScores:
    entailment, neutral, contradiction = probabilities.tolist()
    return NLIScores(entailment=entailment, neutral=neutral, contradiction=contradiction)
