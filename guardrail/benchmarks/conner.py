"""CONNER's sensitivity: does the right score fall when a text is spoilt in one known way?

``python -m guardrail.benchmarks.conner --data DIR [--causal-lm NAME] [--rows N]`` reads
``conner/*.jsonl.gz`` under DIR, spoils each knowledge text in the one respect that a perspective
should notice, and prints the share of texts whose score falls. The spoilt texts are made by
rules that no model took part in.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from guardrail.sentences import split_sentences
from judges.causal_lm import create_causal_lm
from judges.conner import ConnerInput, ConnerModels, ConnerReport, ConnerScorer
from judges.encoder import create_encoder
from judges.registry import create_nli

__all__ = ["app", "main"]

SEED = 0
TARGETS = {
    "factuality": 0.85,
    "relevance": 0.97,
    "paragraph coherence": 0.80,
    "sentence coherence": 0.98,
    "helpfulness": 0.85,
    "validity": 0.95,
}
NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][a-z]+(?: [A-Z][a-z]+)*\b")
NUMBER = re.compile(r"\b\d+\b")
SENTENCES_FOR_ORDER = 4

app = typer.Typer(add_completion=False)


class Text(NamedTuple):
    """A row of the data."""

    query: str
    knowledge: str
    answer: str
    perplexity: float | None = None
    coherence: float | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(stretch.text for stretch in split_sentences(self.knowledge))


class Trial(NamedTuple):
    """A perspective's rows: the texts as they are and their spoilt twins."""

    name: str
    pairs: Sequence[tuple[ConnerInput, ConnerInput]]
    score: Callable[[ConnerReport], float | None]


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="Folder that holds conner/*.jsonl.gz.")],
    causal_lm: Annotated[
        str | None, typer.Option(help="transformers:…, llama:… or openai:…")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="At most so many rows a file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the table."""
    files = {name: read_rows(data, name)[:rows] for name in ("nq", "wow_seen", "wow_unseen")}
    encoder = create_encoder()
    models = ConnerModels(
        nli=create_nli("onnx"),
        encoder=encoder,
        relevance=encoder,
        discourse=encoder,
        causal=None if causal_lm is None else create_causal_lm(causal_lm),
    )
    lines: list[dict[str, Any]] = []
    for group, texts in (("nq", files["nq"]), ("wow", files["wow_seen"] + files["wow_unseen"])):
        pool = [text.knowledge for text in texts]
        scorer = ConnerScorer(models, irrelevant_pool=pool)
        for trial in trials(texts, likelihoods=models.causal is not None):
            lines.append({"data": group} | run_trial(scorer, trial))
    if models.causal is not None:
        lines += reference_correlations(ConnerScorer(models), files["nq"])
    if as_json:
        typer.echo(json.dumps(lines))
        return
    for line in lines:
        typer.echo("  ".join(f"{name} {value}" for name, value in line.items()))


def read_rows(data: Path, name: str) -> list[Text]:
    """Read one file of the data."""
    with gzip.open(data / "conner" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        raw = [json.loads(line) for line in lines]
    return [
        Text(
            row["query"],
            row["knowledge"],
            row["answer"],
            row.get("reference_sentence_ppl"),
            row.get("reference_paragraph_coherence"),
        )
        for row in raw
    ]


def trials(texts: Sequence[Text], *, likelihoods: bool) -> list[Trial]:
    """All perspectives' trials on one set of texts, each with its own way of spoiling."""
    generator = random.Random(SEED)
    others = [*texts[1:], *texts[:1]]
    found = [
        Trial(
            "factuality",
            [pair for text in texts if (pair := _factuality_pair(text, texts, generator))],
            lambda report: report.factuality.value,
        ),
        Trial(
            "relevance",
            [
                (_row(text), _row(text._replace(knowledge=other.knowledge)))
                for text, other in zip(texts, others, strict=True)
            ],
            lambda report: report.relevance.value,
        ),
        Trial(
            "paragraph coherence",
            [
                (_row(text), _row(text, sentences=_shuffled(text.sentences, generator)))
                for text in texts
                if len(set(text.sentences)) >= SENTENCES_FOR_ORDER
            ],
            lambda report: report.coherence_paragraph.value,
        ),
        Trial(
            "validity",
            [
                (
                    _row(text, answer=text.answer, reference=text.answer),
                    _row(text, answer=other.answer, reference=text.answer),
                )
                for text, other in zip(texts, others, strict=True)
                if text.answer.casefold() != other.answer.casefold()
            ],
            lambda report: report.validity.value,
        ),
    ]
    if likelihoods:
        found += [
            Trial(
                "sentence coherence",
                [
                    (_row(text), _row(text, sentences=_words_shuffled(text.sentences, generator)))
                    for text in texts
                ],
                lambda report: report.coherence_sentence.value,
            ),
            Trial(
                "helpfulness",
                [
                    (
                        _row(text, answer=text.answer),
                        _row(text._replace(knowledge=other.knowledge), answer=text.answer),
                    )
                    for text, other in zip(texts, others, strict=True)
                ],
                lambda report: report.helpfulness_unclipped.value,
            ),
        ]
    return found


def run_trial(scorer: ConnerScorer, trial: Trial) -> dict[str, Any]:
    """Score a trial; a pair counts when the spoilt text's score is strictly lower."""
    begin = time.perf_counter()
    reports = scorer.score([row for pair in trial.pairs for row in pair])
    scores = [trial.score(report) for report in reports]
    falls = [
        before > after
        for before, after in zip(scores[::2], scores[1::2], strict=True)
        if before is not None and after is not None
    ]
    return {
        "perspective": trial.name,
        "pairs": len(falls),
        "falls": round(sum(falls) / len(falls), 4) if falls else None,
        "target": TARGETS[trial.name],
        "seconds": round(time.perf_counter() - begin, 1),
    }


def reference_correlations(scorer: ConnerScorer, texts: Sequence[Text]) -> list[dict[str, Any]]:
    """Spearman correlation with the authors' own values, where the data has them."""
    from statistics import fmean

    reports = scorer.score([_row(text) for text in texts])
    perplexities = [
        (fmean(report.perplexities), text.perplexity)
        for report, text in zip(reports, texts, strict=True)
        if report.perplexities and text.perplexity is not None
    ]
    coherences = [
        (report.coherence_paragraph.value, text.coherence)
        for report, text in zip(reports, texts, strict=True)
        if report.coherence_paragraph.value is not None and text.coherence is not None
    ]
    return [
        {"correlation": "sentence perplexity", "rows": len(perplexities)}
        | {"spearman": round(spearman(perplexities), 4), "target": 0.6},
        {"correlation": "paragraph coherence", "rows": len(coherences)}
        | {"spearman": round(spearman(coherences), 4), "target": None},
    ]


def spearman(pairs: Sequence[tuple[float, float]]) -> float:
    """Rank correlation of two columns; ties share their mean rank."""
    import numpy as np

    def ranks(values: Sequence[float]) -> Any:
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(counts) - (counts - 1) / 2)[place]

    first, second = zip(*pairs, strict=True)
    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


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
    return (
        _row(text, evidence=[text.knowledge]),
        _row(text, sentences=changed, evidence=[text.knowledge]),
    )


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


if __name__ == "__main__":
    app()
