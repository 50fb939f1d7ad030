"""The judge that encodes evidence once: grounding, NLI and attribution with one network.

Evidence becomes windows that are encoded on their own and cached; a sentence costs only its own
tokens. Windows are a set: their order and duplicates change nothing. Small heads with two layers,
the probes, read the outputs of the network for a claim; ``python -m training publish`` fits them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardrail.core.errors import JudgeError
from guardrail.core.types import Grounding, Judgement, NLIScores, StatementScore, WordScore
from guardrail.core.types.judging import Weighing
from judges.base import AttributionItem, GroundingItem, NLITraits, Pair
from judges.batching import choose, each_once, split_sentences
from judges.folder import JudgeCard, OnnxFolder
from judges.grounding import NOTHING
from judges.grounding_pass import statement_scores, unknown_words, word_scores
from judges.lifting import NEUTRAL, Attribution, attributed, attribution_pair, nli_scores
from judges.session import softmax
from judges.settings import Calibration
from judges.window_reader import (
    IDS,
    Claim,
    OnnxReader,
    Reading,
    canonical,
    claims_of,
    windows_of,
)

EVIDENCE = 1_024
"""Most tokens of evidence within reach of a sentence."""

PAIRS = "pairs"
"""Kind of evidence of NLI pairs and attributions, for their calibration."""

PROBES_FILE = "probes.npz"

PROBES: Mapping[str, int] = {"statements": 3, "words": 3, "attribution": 4, "complexity": 4}
"""Probes and their number of labels, in the order of ``judges.folder``."""

Array = NDArray[np.float32]


class _Plan(NamedTuple):
    """Input for one item: its windows, the parts of its sentence, and its statements.

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
    """

    _what = "judge"
    _text_model = OnnxReader
    _model: OnnxReader
    traits: ClassVar[NLITraits] = NLITraits(premise_chars=4_000, evidence_chars=4_000)

    def __init__(self, folder: Path | str, *, threads: int | None = None) -> None:
        super().__init__(Path(folder), JudgeCard, threads=threads)

    @property
    def weighing(self) -> Weighing | None:
        """Weights of its probabilities and of the checks in a verdict."""
        return self.card.weighing

    @cached_property
    def probes(self) -> dict[str, Probe]:
        """The small heads in its folder, by name.

        Raises:
            JudgeError: The file cannot be read.
        """
        path = self._folder / PROBES_FILE
        if not path.is_file():
            return {}
        try:
            with np.load(path, allow_pickle=False) as stored:
                return {
                    name: Probe(*(stored[f"{name}.{part}"] for part in Probe._fields))
                    for name in PROBES
                    if f"{name}.mean" in stored
                }
        except (OSError, ValueError, KeyError) as error:
            raise JudgeError(f"{path} cannot be read: {error}") from error

    def warm_up(self) -> None:
        """Load the model and its small heads; later calls do nothing."""
        super().warm_up()
        _ = self.probes

    @property
    def cached(self) -> tuple[int, int]:
        """Tokens and bytes of the encoded evidence in the cache."""
        return self._model.cached

    def forget(self) -> None:
        """Empty the cache of encoded evidence."""
        self._model.forget()

    @each_once
    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        """Judge n pairs; see ``NLIJudge``."""
        rows = self._read_pairs(pairs)
        return [NEUTRAL if row is None else nli_scores(row[0]) for row in rows]

    @each_once
    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        """Judge n items; see ``AttributionJudge`` and ``lifting.attributed``.

        Raises:
            JudgeError: The folder has no probes for attribution, or the model failed.
        """
        probe, complexity = self.probes.get("attribution"), self.probes.get("complexity")
        if probe is None:
            raise JudgeError(f"the judge in {self._folder} has no probe for attribution")
        attributions = []
        for row in self._read_pairs([attribution_pair(item) for item in items]):
            features = None if row is None else row[1].features[None]
            attributions.append(
                Attribution()
                if features is None
                else Attribution(probe(features)[0], complexity and complexity(features)[0])
            )
        return attributed(self, items, attributions)

    @each_once
    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        """Judge n sentences; see ``GroundingJudge``."""
        offsets = self._model.offsets([item.sentence for item in items])
        return [
            self._grounding(item, plan, rows, places) if rows else NOTHING
            for item, (plan, rows), places in zip(items, self.plan(items), offsets, strict=True)
        ]

    def plan(self, items: Sequence[GroundingItem]) -> list[tuple[_Plan, list[Reading]]]:
        """Inputs and outputs of the network for n sentences, on which probes are fitted."""
        ids = self._model.ids(
            text for item in items for text in (*item.statements, item.sentence, item.context)
        )
        plans = []
        for item in items:
            parts = [ids[text] for text in item.statements]
            groups = _groups(item) if item.sentence.strip() else []
            windows, places = self._windows(parts, groups, item.structured)
            claims = claims_of(ids[item.context], ids[item.sentence], end=self._model.ends[1])
            plans.append(_Plan(windows, claims, places))
        return list(zip(plans, self._readings(plans), strict=True))

    def features(self, pairs: Sequence[Pair]) -> list[Reading | None]:
        """Outputs of the network for n pairs, on which probes are fitted; None for a blank text."""
        return [None if row is None else row[1] for row in self._read_pairs(pairs)]

    def _readings(self, plans: Sequence[_Plan]) -> list[list[Reading]]:
        """Readings of the parts of each sentence; none without windows."""
        tasks = [
            (plan.windows, claim)
            for plan in plans
            for claim in (plan.claims if plan.windows else ())
        ]
        results = iter(self._model.read(tasks))
        return [[next(results) for _ in plan.claims if plan.windows] for plan in plans]

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
        ids = self._model.ids(
            text
            for pair, parts in zip(pairs, sentences, strict=True)
            for text in (*parts, pair.hypothesis)
        )
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
        calibration = self.card.grounding.get(PAIRS, Calibration())
        found: list[tuple[NDArray[np.float64], Reading] | None] = []
        for rows in self._readings(plans):
            scored = [(_verdict(row, calibration), row) for row in rows]
            found.append(min(scored, key=lambda one: float(one[0][0]), default=None))
        return found

    def _grounding(
        self,
        item: GroundingItem,
        plan: _Plan,
        readings: Sequence[Reading],
        offsets: Sequence[tuple[int, int]],
    ) -> Grounding:
        calibration = self.card.calibration(structured=item.structured)
        scored = [
            (_verdict(reading, calibration), float(softmax(reading.labels)[3]), reading)
            for reading in readings
        ]
        verdict, none, reading = min(
            scored, key=lambda one: float(one[0][0] * (1 - one[1]) + one[1])
        )
        supported, unsupported, contradicted = (verdict * (1 - none)).tolist()
        tokens = [token for claim in plan.claims for token in claim.ids[claim.start : -1]]
        words: tuple[WordScore, ...] = ()
        if (probe := self.probes.get("words")) is not None and offsets:
            parts = zip(readings, plan.claims, strict=True)
            rows = probe(np.concatenate([word_features(*part) for part in parts]))
            words = word_scores(item.sentence, offsets, rows)
        statements: tuple[StatementScore | None, ...] = ()
        if (probe := self.probes.get("statements")) is not None and reading.attention.size:
            rows = probe(statement_features(reading, list(plan.places.values())))
            statements = statement_scores(item, list(plan.places), rows)
        return Grounding(
            supported=supported,
            unsupported=unsupported,
            contradicted=contradicted,
            no_claim=none,
            words=words,
            statements=statements,
            unread=tuple(unknown_words(self._model, item, tokens, offsets)),
        )


def _verdict(reading: Reading, calibration: Calibration) -> NDArray[np.float64]:
    """Probabilities of supported, unsupported and contradicted, given that there is a claim."""
    return softmax(reading.labels[:3] + np.array(calibration.bias), calibration.temperature)


def _groups(item: GroundingItem) -> list[list[int]]:
    """The statements of each entity or passage, the group with the most important one first.

    Triples of one entity are a set: they are sorted, and duplicates read once.
    """
    texts = item.statements
    keys: list[object] = list(item.windows)
    if not keys:
        keys = [text.partition(", ")[0] if item.structured else 0 for text in texts]
    groups: dict[object, list[int]] = {}
    for number in item.priority or range(len(texts)):
        groups.setdefault(keys[number], []).append(number)
    if not item.structured:
        return [sorted(group) for group in groups.values()]
    sets = [{texts[i]: i for i in sorted(group)}.values() for group in groups.values()]
    return [sorted(group, key=texts.__getitem__) for group in sets]


# --- Probes -------------------------------------------------------------------------------------


class Probe(NamedTuple):
    """softmax(tanh(((x - mean) / scale) · first + first_bias) · second + second_bias).

    Attributes:
        mean: Of each feature, [features].
        scale: Standard deviation of each feature, [features].
        first: [features, hidden].
        first_bias: [hidden].
        second: [hidden, labels].
        second_bias: [labels].
    """

    mean: Array
    scale: Array
    first: Array
    first_bias: Array
    second: Array
    second_bias: Array

    def __call__(self, features: Array) -> NDArray[np.float64]:
        """Probabilities [n, labels] of features [n, features]."""
        inner = np.tanh((features - self.mean) / self.scale @ self.first + self.first_bias)
        return softmax(inner @ self.second + self.second_bias)


def statement_features(reading: Reading, spans: Sequence[tuple[int, int]]) -> Array:
    """Features of statements, [n, layers · heads + 4].

    The logarithm of the attention of the sentence to each statement by head, less that to the
    statement with most of it, and the logits of the sentence.

    Args:
        reading: Outputs of the network for the sentence.
        spans: Tokens of each statement among those of the evidence.
    """
    attended = np.stack([reading.attention[:, a:b].sum(1) for a, b in spans])
    logs = np.log(attended + 1e-4)
    most = logs.max(0, keepdims=True)
    labels = np.broadcast_to(reading.labels, (len(spans), len(reading.labels)))
    return np.concatenate([logs - most, logs[:, ::4], labels], axis=1).astype(np.float32)


def word_features(reading: Reading, claim: Claim) -> Array:
    """Features of the tokens of a sentence, [n, width]."""
    return reading.states[claim.start : claim.start + claim.length]


def write_probes(folder: Path, probes: Mapping[str, Probe]) -> None:
    """Write the probes of a judge's folder."""
    arrays = {
        f"{name}.{part}": values
        for name, probe in probes.items()
        for part, values in zip(Probe._fields, probe, strict=True)
    }
    np.savez(folder / PROBES_FILE, **arrays)  # type: ignore[arg-type]
