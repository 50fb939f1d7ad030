"""SCK's sensitivity and cost: does the score fall when an answer is spoilt in one known way?

``python -m guardrail.benchmarks.sck --data DIR [--rows N] [--what rates]`` reads
``intent/nfcats_valid``, ``conner/nq`` and ``conner/wow_seen`` under DIR. The knowledge text is the
answer, and the same text the evidence, so that the original is right by construction. The spoilt
answers are made by rules that no model of the scorer took part in, but for the names, which the
tagger finds.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from guardrail.benchmarks.telling import teller
from guardrail.sentences import split_sentences
from guardrail.types import Category, Mention, Passage, Sentence
from judges.encoder import OnnxEncoder, create_encoder
from judges.registry import create_nli
from judges.sck import Intent, SCKInput, SCKReport, SCKScorer
from judges.sck.language import Tagger
from judges.sck.layout import Format
from judges.sck.scorer import ANSWER_CHARS

__all__ = ["app", "main"]

SEED = 0
SINGLE_CALLS = 100
"""Answers scored one by one to measure latency; further ones would not change the median."""

BATCH = 1000
"""Answers of the batch whose cost is measured, all different."""

BLOCK = 50
"""Answers between two reports of progress."""
MARKERS = ("- ", "3. ", "1. ", "2. ", "* ")

app = typer.Typer(add_completion=False)


class Part(StrEnum):
    """What to measure."""

    INTENT = "intent"
    RATES = "rates"
    COST = "cost"


class Pair(NamedTuple):
    """A question and its knowledge text."""

    question: str
    text: str


class Rate(NamedTuple):
    """The share of spoilt answers that score lower.

    Attributes:
        name: What was spoilt.
        lower: How many score lower.
        total: How many were spoilt.
        target: The share wanted.
    """

    name: str
    lower: int
    total: int
    target: float


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="Folder that holds intent/ and conner/.")],
    rows: Annotated[int | None, typer.Option(min=2, help="At most so many rows.")] = None,
    what: Annotated[list[Part] | None, typer.Option(help="Only this; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print intent quality, the three rates, and the cost."""
    encoder = create_encoder()
    tagger = Tagger()
    scorer = SCKScorer(encoder, create_nli("onnx"), tagger=tagger)
    asked = set(what or Part)
    result: dict[str, Any] = {}
    if Part.INTENT in asked:
        result |= intent_quality(data, encoder.intents, rows)
    pairs = _pairs(data, "nq")[:rows]
    if Part.RATES in asked:
        result["rates"] = [
            rate._asdict() | {"share": rate.lower / max(1, rate.total)}
            for rate in sensitivity(pairs, scorer, tagger)
        ]
    if Part.COST in asked:
        result["cost"] = cost([*pairs, *_pairs(data, "wow_seen")[:rows]], scorer, encoder, tagger)
    if as_json:
        typer.echo(json.dumps(result))
        return
    for name, value in result.get("intent", {}).items():
        typer.echo(f"{name:28} {value:.4f}")
    for line in result.get("rates", ()):
        typer.echo(
            f"{line['name']:44} {line['lower']:4d} of {line['total']:4d}  {line['share']:.3f}  "
            f"(target {line['target']})"
        )
    for name, value in result.get("cost", {}).items():
        typer.echo(f"{name:44} {value:.2f}")


def intent_quality(
    data: Path, classify: Callable[[Sequence[str]], list[dict[str, float]]], rows: int | None
) -> dict[str, dict[str, float]]:
    """Accuracy and macro-F1 over all eight classes on the validation questions."""
    found = _read(data / "intent" / "nfcats_valid.jsonl.gz")[:rows]
    truth = [row["category"].lower() for row in found]
    started = time.perf_counter()
    told = [max(one, key=one.__getitem__) for one in classify([row["question"] for row in found])]
    seconds = time.perf_counter() - started
    scores = {}
    for intent in Intent:
        hits = sum(a == b == intent for a, b in zip(truth, told, strict=True))
        named = truth.count(intent) + told.count(intent)
        scores[f"f1 {intent}"] = 2 * hits / named if named else 0.0
    accuracy = sum(a == b for a, b in zip(truth, told, strict=True)) / len(truth)
    macro = sum(scores.values()) / len(scores)
    return {
        "intent": {
            "macro-F1": macro,
            "accuracy": accuracy,
            **scores,
            "questions a second": len(found) / seconds,
        }
    }


def sensitivity(pairs: Sequence[Pair], scorer: SCKScorer, tagger: Tagger) -> list[Rate]:
    """The three rates, and what lies behind them."""
    rng = random.Random(SEED)
    names = [reading.names for reading in tagger.read([pair.text for pair in pairs], names=True)]
    pool = names_by_type(names)
    swapped = [swap(pair.text, own, pool, rng) for pair, own in zip(pairs, names, strict=True)]
    other = [
        pairs[(row + 1 + rng.randrange(len(pairs) - 1)) % len(pairs)].text
        for row in range(len(pairs))
    ]
    mangled = [shuffle_layout(pair.text, rng) for pair in pairs]
    original = _score(scorer, "originals", [_input(pair, pair.text) for pair in pairs])
    rates = []
    rows = [row for row, text in enumerate(swapped) if text is not None]
    spoilt = _score(
        scorer, "names swapped", [_input(pairs[row], swapped[row] or "") for row in rows]
    )
    fallen: list[tuple[str, Callable[[SCKReport, SCKReport], bool]]] = [
        ("names swapped: K or C lower", _knows_or_covers_less),
        ("names swapped: K lower", lambda one, two: _lower(_k(one), _k(two))),
        ("names swapped: KG-Attr lower", lambda one, two: _lower(_attr(one), _attr(two))),
    ]
    for name, key in fallen:
        lower = sum(key(original[row], two) for row, two in zip(rows, spoilt, strict=True))
        rates.append(Rate(name, lower, len(rows), 0.95))
    spoilt = _score(
        scorer,
        "other answers",
        [_input(pair, text) for pair, text in zip(pairs, other, strict=True)],
    )
    lower = sum(
        _lower(one.score.value, two.score.value) for one, two in zip(original, spoilt, strict=True)
    )
    rates.append(Rate("another question's answer: SCK lower", lower, len(pairs), 0.97))
    asked = [
        row
        for row, one in enumerate(original)
        if one.structure.intent not in (Intent.FACTOID, Intent.NONE)
    ]
    spoilt = _score(scorer, "layouts", [_input(pairs[row], mangled[row]) for row in asked])
    lower = sum(
        _lower(original[row].structure.score.value, two.structure.score.value)
        for row, two in zip(asked, spoilt, strict=True)
    )
    rates.append(Rate("layout shuffled, non-factoid: S lower", lower, len(asked), 0.90))
    broken = sum(two.structure.features[4].found.startswith(Format.BROKEN) for two in spoilt)
    rates.append(Rate("  of these read as a broken layout", broken, len(asked), 0.90))
    return rates


def cost(
    pairs: Sequence[Pair], scorer: SCKScorer, encoder: OnnxEncoder, tagger: Tagger
) -> dict[str, float]:
    """Milliseconds an answer, one by one and in a batch of different answers.

    ``check`` hands verdicts over, so the judge is not asked; this is what scoring adds. The last
    lines tell what the batch spends its time on.
    """
    order = random.Random(SEED).sample(list(pairs), min(BATCH, len(pairs)))
    batch = [_handed(pair) for pair in order]
    scorer.score(batch[:2])
    wall, used = [], []
    for item in batch[:SINGLE_CALLS]:
        started, busy = time.perf_counter(), time.process_time()
        scorer.score([item])
        wall.append(1e3 * (time.perf_counter() - started))
        used.append(1e3 * (time.process_time() - busy))
    started, busy = time.perf_counter(), time.process_time()
    scorer.score(batch)
    batch_wall = 1e3 * (time.perf_counter() - started) / len(batch)
    batch_used = 1e3 * (time.process_time() - busy) / len(batch)
    return {
        "one by one, p50 wall ms": statistics.median(wall),
        "one by one, p50 processor ms": statistics.median(used),
        "one by one, mean wall ms": statistics.fmean(wall),
        "answers in the batch": len(batch),
        "in the batch, wall ms an answer": batch_wall,
        "in the batch, processor ms an answer": batch_used,
        "batch speed-up, wall": statistics.fmean(wall) / batch_wall,
        "batch speed-up, processor": statistics.fmean(used) / batch_used,
        "  encoder on questions, processor ms": _busy(
            len(batch), lambda: encoder.intents([item.question for item in batch])
        ),
        "  encoder on answers, processor ms": _busy(
            len(batch), lambda: encoder.answer_intents([one.answer[:ANSWER_CHARS] for one in batch])
        ),
        "  tagger on both, processor ms": _busy(
            len(batch),
            lambda: tagger.read(
                [text for one in batch for text in (one.answer, one.question)], names=True
            ),
        ),
    }


def _busy(count: int, work: Callable[[], object]) -> float:
    """Processor milliseconds of some work, over so many answers."""
    started = time.process_time()
    work()
    return 1e3 * (time.process_time() - started) / count


def names_by_type(names: Sequence[Sequence[Mention]]) -> Mapping[str, list[str]]:
    """All different names of the texts by the tagger's type."""
    pool: dict[str, dict[str, None]] = defaultdict(dict)
    for own in names:
        for mention in own:
            pool[mention.ner or ""][mention.text] = None
    return {kind: list(texts) for kind, texts in pool.items()}


def swap(
    text: str, names: Sequence[Mention], pool: Mapping[str, list[str]], rng: random.Random
) -> str | None:
    """Put another name of the same type for every name; None where the text has none."""
    if not names:
        return None
    folded = text.casefold()
    foreign = {
        kind: [one for one in pool[kind] if one.casefold() not in folded]
        for kind in {mention.ner or "" for mention in names}
    }
    chosen: dict[str, str] = {}
    for mention in names:
        if mention.text not in chosen:
            others = foreign[mention.ner or ""]
            chosen[mention.text] = rng.choice(others) if others else mention.text
    for mention in sorted(names, key=lambda one: -one.start):
        text = text[: mention.start] + chosen[mention.text] + text[mention.end :]
    return text


def shuffle_layout(text: str, rng: random.Random) -> str:
    """The same sentences in another order, on lines with list markers that do not belong."""
    pieces = [piece.text for piece in split_sentences(text)]
    while len(pieces) < 3:
        longest = max(pieces, key=len)
        words = longest.split()
        half = max(1, len(words) // 2)
        place = pieces.index(longest)
        pieces[place : place + 1] = [" ".join(words[:half]), " ".join(words[half:])]
        if len(words) < 2:
            break
    rng.shuffle(pieces)
    return "\n".join(
        MARKERS[row % len(MARKERS)] + re.sub(r"^\W+", "", piece) for row, piece in enumerate(pieces)
    )


def _score(scorer: SCKScorer, what: str, batch: Sequence[SCKInput]) -> list[SCKReport]:
    """Score in blocks, telling how far it is."""
    tell = teller(what)
    reports: list[SCKReport] = []
    for start in range(0, len(batch), BLOCK):
        reports += scorer.score(batch[start : start + BLOCK])
        tell(len(reports), len(batch))
    return reports


def _input(pair: Pair, answer: str) -> SCKInput:
    return SCKInput(question=pair.question, answer=answer, evidence=(Passage(text=pair.text),))


def _handed(pair: Pair) -> SCKInput:
    """The input as the guardrail's scorer makes it of a checked answer: split and judged."""
    sentences = tuple(
        Sentence(text=one.text, start=one.start, end=one.end, category=Category.SUPPORTIVE)
        for one in split_sentences(pair.text)
    )
    return SCKInput(
        question=pair.question,
        answer=pair.text,
        sentences=sentences,
        evidence=(Passage(text=pair.text),),
    )


def _knows_or_covers_less(before: SCKReport, after: SCKReport) -> bool:
    covers = _lower(before.content.score.value, after.content.score.value)
    return covers or _lower(_k(before), _k(after))


def _k(report: SCKReport) -> float | None:
    return report.knowledge.score.value


def _attr(report: SCKReport) -> float | None:
    return report.knowledge.kg_attr_mean.value


def _lower(before: float | None, after: float | None) -> bool:
    """Whether a score fell; a score that was there and is lost has not fallen."""
    return before is not None and after is not None and after < before


def _pairs(data: Path, name: str) -> list[Pair]:
    rows = _read(data / "conner" / f"{name}.jsonl.gz")
    return [Pair(row["query"], row["knowledge"]) for row in rows]


def _read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


if __name__ == "__main__":
    app()
