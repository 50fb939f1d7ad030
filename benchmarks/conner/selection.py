"""Knowledge selection (CONNER 5, Table 8): sample r texts a question, keep the one of best Q_know.

Q_know reads factuality, relevance, paragraph coherence and informativeness (eq. 9); the choice is
judged by helpfulness (eq. 6), which needs the gold answer and takes no part in it. Informativeness
and helpfulness use the same causal model, so a model-free measure is reported as well: whether
the text contains the gold answer.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from pydantic import ValidationError

from benchmarks.conner.trials import Text, pieces
from guardrail.core.errors import ConfigError
from guardrail.core.text.sentences import split_sentences
from guardrail.core.types import Value
from guardrail.models import LanguageModel, Message, Prompt, SampleRequest
from judges.conner import (
    ConnerInput,
    ConnerModels,
    ConnerReport,
    ConnerScorer,
    ConnerSettings,
    Perspective,
    rank,
)
from judges.encoder import OnnxEncoder

__all__ = ["Selection", "SelectionTable", "run_selection"]

PROMPT = (
    "Topic: {topic}\nGenerate a Wikipedia to answer the given question.\nQuestion: {query}\n"
    "Wikipedia:"
)
"""The zero-shot prompt that did best in the paper (Table 11)."""
OPENING = "{topic} is"
"""First words of a base model's sample; without them it mostly ends the line at once."""
TOP_P = 0.9
TEMPERATURE = 1.0
MAX_TOKENS = 128
EVIDENCE_PIECES = 20
"""Pieces of the pool nearest to a question; the scorer reads the five nearest to a sentence."""
RESAMPLES = 1000
"""Bootstrap samples of questions behind each interval."""
PAPER = "paper, Table 8 (ChatGPT): 0.1461 -> 0.2090 (+43.15 %)"
HEADINGS = "chosen by                    helpfulness  unclipped  has answer  gain (95 % interval)"
NOTE = (
    "Q_know = factuality, relevance, paragraph coherence and informativeness with equal weights "
    "(the paper prints none); helpfulness and the gold answer take no part in it. Evidence is "
    "retrieved from the pool of all passages. Samples of a base model open with the topic and 'is'."
)

PARTS: Mapping[str, Callable[[ConnerReport], float | None]] = {
    "Q_know": lambda report: report.quality.value,
    "factuality alone": lambda report: report.factuality.value,
    "relevance alone": lambda report: report.relevance.value,
    "paragraph coherence alone": lambda report: report.coherence_paragraph.value,
    "informativeness alone": lambda report: report.informativeness.value,
}


class Selection(Value):
    """What to sample: the first ``rows`` questions in an order that the seed gives."""

    rows: int
    samples: int
    seed: int
    model: str


class _Drawn(Value):
    """The samples of one question, as the samples file keeps them."""

    model: str
    seed: int
    query: str
    samples: tuple[str, ...]


class _Line(NamedTuple):
    """What a way of choosing gives, on average over questions.

    Attributes:
        way: How one of the r samples is chosen.
        helpfulness: Eq. 6.
        unclipped: Eq. 6 before the maximum with 0.
        contains: Share of chosen texts that contain the gold answer.
        gain: Relative gain in helpfulness over the mean of all samples; None where that is 0.
        interval: 95 % of bootstrap samples of questions have a gain in it.
    """

    way: str
    helpfulness: float
    unclipped: float
    contains: float
    gain: float | None
    interval: tuple[float, float] | None


class SelectionTable(NamedTuple):
    """The result of a run.

    Attributes:
        questions: Number of questions.
        without_value: Samples without a helpfulness, by reason.
        lines: One line for each way of choosing.
        ties: Questions whose samples are all equal in Q_know.
    """

    questions: int
    without_value: Mapping[str, int]
    lines: Sequence[_Line]
    ties: int

    def rows(self) -> list[dict[str, Any]]:
        """The lines as plain data."""
        return [line._asdict() | {"questions": self.questions} for line in self.lines]

    def text(self) -> str:
        """The table in words."""
        missing = ", ".join(f"{count} ({reason})" for reason, count in self.without_value.items())
        head = (
            f"{self.questions} questions; {missing or 0} samples without a helpfulness; "
            f"{self.ties} questions whose samples are all equal in Q_know"
        )
        lines = [head, HEADINGS]
        for line in self.lines:
            gain = "" if line.gain is None else f"{100 * line.gain:+.1f} %"
            if line.interval is not None:
                gain += f" ({100 * line.interval[0]:+.1f} to {100 * line.interval[1]:+.1f})"
            lines.append(
                f"{line.way:28} {line.helpfulness:11.4f}  {line.unclipped:9.4f}  "
                f"{line.contains:10.3f}  {gain}"
            )
        return "\n".join([*lines, PAPER, NOTE])


def run_selection(
    plan: Selection,
    texts: Sequence[Text],
    model: LanguageModel,
    models: ConnerModels,
    samples_file: Path,
) -> SelectionTable:
    """Draw the samples that are missing, score all, choose, and judge the choices.

    Args:
        plan: What to sample.
        texts: Questions with gold answers; their passages are the pool of evidence and of
            irrelevant knowledge.
        model: Draws the samples.
        models: CONNER's models; ``encoder`` and ``causal`` are needed.
        samples_file: JSON lines; samples of this plan in it are used, others are added.

    Raises:
        ConfigError: The samples file is damaged.
    """
    asked = random.Random(plan.seed).sample(list(texts), min(plan.rows, len(texts)))
    drawn = _draw(plan, asked, model, samples_file)
    passages = [pieces(text.knowledge) for text in texts]
    rows = _rows(asked, drawn, [piece for own in passages for piece in own], models.encoder)
    scorer = ConnerScorer(
        models,
        ConnerSettings(perspectives=frozenset(Perspective) - {Perspective.COHERENCE_SENTENCE}),
        irrelevant_pool=[own[0] for own in passages if own],
    )
    reports = scorer.score(rows, rows_per_call=len(rows))
    count = plan.samples
    return _table(asked, rows, [reports[i : i + count] for i in range(0, len(reports), count)])


def _draw(
    plan: Selection, asked: Sequence[Text], model: LanguageModel, path: Path
) -> list[tuple[str, ...]]:
    """The samples of each question, from the file or newly drawn and added to it."""
    known = {
        item.query: item.samples
        for item in _read(path)
        if (item.model, item.seed, len(item.samples)) == (plan.model, plan.seed, plan.samples)
    }
    with path.open("a", encoding="utf-8") as file:
        for place, text in enumerate(asked):
            if text.query in known:
                continue
            opening = OPENING.format(topic=text.topic) if _is_base(plan.model) else ""
            request = SampleRequest(
                prompt=_prompt(text, opening),
                n=plan.samples,
                temperature=TEMPERATURE,
                top_p=TOP_P,
                max_tokens=MAX_TOKENS,
                seed=plan.seed + place,
            )
            completions = asyncio.run(model.sample(request))
            known[text.query] = tuple(
                f"{opening} {completion.text}".strip() for completion in completions
            )
            row = _Drawn(
                model=plan.model, seed=plan.seed, query=text.query, samples=known[text.query]
            )
            file.write(row.model_dump_json() + "\n")
            file.flush()
            print(f"samples: {place + 1} of {len(asked)}", file=sys.stderr, flush=True)
    return [known[text.query] for text in asked]


def _is_base(model: str) -> bool:
    """Whether a model continues a text instead of answering a message."""
    return model.startswith("completion:")


def _prompt(text: Text, opening: str) -> Prompt:
    asked = PROMPT.format(topic=text.topic, query=text.query)
    message = Message(role="user", content=asked)
    return Prompt(messages=(message,), text=f"{asked} {opening}".rstrip())


def _read(path: Path) -> list[_Drawn]:
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        return [_Drawn.model_validate(json.loads(line)) for line in lines if line.strip()]
    except (ValueError, ValidationError) as error:
        raise ConfigError(f"{path} holds no samples of this benchmark: {error}") from error


def _rows(
    asked: Sequence[Text],
    drawn: Sequence[tuple[str, ...]],
    pool: Sequence[str],
    encoder: OnnxEncoder | None,
) -> list[ConnerInput]:
    """Inputs for all samples, with the evidence that a retriever finds for their question."""
    if encoder is None:
        raise ConfigError("knowledge selection retrieves evidence, which needs an encoder")
    similarity = encoder.embed([text.query for text in asked]) @ encoder.embed(pool).T
    nearest = (-similarity).argsort(axis=1, kind="stable")[:, :EVIDENCE_PIECES]
    return [
        ConnerInput(
            query=text.query,
            knowledge=sample,
            sentences=tuple(sentence.text for sentence in split_sentences(sample)),
            evidence=tuple(pool[column] for column in columns),
            answer=text.answer,
        )
        for text, samples, columns in zip(asked, drawn, nearest, strict=True)
        for sample in samples
    ]


class _Judged(NamedTuple):
    """One sample by the measures that took no part in choosing it."""

    helpfulness: float
    unclipped: float
    contains: float


def _table(
    asked: Sequence[Text], rows: Sequence[ConnerInput], groups: Sequence[Sequence[ConnerReport]]
) -> SelectionTable:
    count = len(groups[0])
    judged = [
        [_judge(row, report) for row, report in zip(rows[i * count :], group, strict=False)]
        for i, group in enumerate(groups)
    ]
    mean = [_mean(samples) for samples in judged]
    lines = [_line("mean of all samples", mean, mean)]
    for way, key in PARTS.items():
        picks = [samples[_best(group, key)] for group, samples in zip(groups, judged, strict=True)]
        lines.append(_line(way, picks, mean))
    lines.append(_line("best possible", [max(samples) for samples in judged], mean))
    reports = [report for group in groups for report in group]
    return SelectionTable(
        questions=len(asked),
        without_value=Counter(
            report.helpfulness.reason or ""
            for report in reports
            if report.helpfulness.value is None
        ),
        lines=lines,
        ties=sum(len({report.quality.value for report in group}) == 1 for group in groups),
    )


def _best(group: Sequence[ConnerReport], key: Callable[[ConnerReport], float | None]) -> int:
    """Place of the report with the highest value; the first of equals."""
    if key is PARTS["Q_know"]:
        return rank(group)[0]
    found = [key(report) for report in group]
    values = [float("-inf") if value is None else value for value in found]
    return values.index(max(values))


def _judge(row: ConnerInput, report: ConnerReport) -> _Judged:
    """A sample without a helpfulness helps nothing: 0."""
    contains = (row.answer or "").casefold().strip() in row.knowledge.casefold()
    return _Judged(
        report.helpfulness.value or 0.0,
        report.helpfulness_unclipped.value or 0.0,
        float(contains),
    )


def _mean(samples: Sequence[_Judged]) -> _Judged:
    return _Judged(*(fmean(column) for column in zip(*samples, strict=True)))


def _line(way: str, picks: Sequence[_Judged], mean: Sequence[_Judged]) -> _Line:
    overall = _mean(picks)
    same = picks is mean
    return _Line(
        way,
        *overall,
        gain=None if same else _gain(picks, mean),
        interval=None if same else _interval(picks, mean),
    )


def _gain(picks: Sequence[_Judged], mean: Sequence[_Judged]) -> float | None:
    base = fmean(item.helpfulness for item in mean)
    return fmean(pick.helpfulness for pick in picks) / base - 1 if base else None


def _interval(picks: Sequence[_Judged], mean: Sequence[_Judged]) -> tuple[float, float] | None:
    generator = random.Random(0)
    pairs = list(zip(picks, mean, strict=True))
    gains = []
    for _ in range(RESAMPLES):
        one, other = zip(*generator.choices(pairs, k=len(pairs)), strict=True)
        if (gain := _gain(one, other)) is not None:
            gains.append(gain)
    gains.sort()
    return (gains[len(gains) // 40], gains[-1 - len(gains) // 40]) if gains else None
