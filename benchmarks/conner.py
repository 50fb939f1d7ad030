"""CONNER's sensitivity, selection and cost.

``python -m benchmarks.conner --data DIR [--causal-lm MODEL]`` reads
``conner/*.jsonl.gz`` under DIR, spoils each knowledge text in the one respect that a perspective
should notice, and prints the share of texts whose score falls. ``… selection`` chooses among
sampled knowledge texts, ``… cost`` compares batches with single calls.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.conner_cost import cost_table, measure
from benchmarks.conner_likelihoods import KeptLikelihoods
from benchmarks.conner_selection import Selection, run_selection
from benchmarks.conner_trials import Text, Trial, pieces, read_rows, trials
from benchmarks.data import errors_told
from benchmarks.telling import teller
from guardrail.models import open_model
from judges.base import CausalLM
from judges.causal_lm import create_causal_lm
from judges.conner import (
    ConnerInput,
    ConnerModels,
    ConnerReport,
    ConnerScorer,
    ConnerSettings,
    Perspective,
)
from judges.encoder import create_encoder
from judges.registry import create_nli

__all__ = ["app"]

LIKELIHOODS = (Perspective.COHERENCE_SENTENCE, Perspective.HELPFULNESS)
"""Perspectives of the trials that need a causal model."""
COST_WORDS = 300
"""Longest passages whose cost is measured; a few are so long that they would decide the mean."""

Data = Annotated[Path, typer.Option(help="Folder that holds conner/*.jsonl.gz.")]
Causal = Annotated[str | None, typer.Option(help="transformers:…, llama:… or openai:…")]
Kept = Annotated[
    Path | None, typer.Option(help="Likelihoods told so far; further ones are added to it.")
]
Perspectives = Annotated[
    list[Perspective] | None, typer.Option(help="Only these; may be repeated.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

app = typer.Typer(add_completion=False)


@app.callback(invoke_without_command=True)
def sensitivity(
    context: typer.Context,
    data: Annotated[Path | None, typer.Option(help="Folder that holds conner/*.jsonl.gz.")] = None,
    causal_lm: Causal = None,
    likelihoods_file: Kept = None,
    rows: Annotated[int | None, typer.Option(min=2, help="At most so many rows a file.")] = None,
    perspective: Perspectives = None,
    judge_alone: Annotated[
        bool, typer.Option(help="Let the judge read sentences that stand in their evidence, too.")
    ] = False,
    group: Annotated[list[str] | None, typer.Option(help="Only nq or only wow.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the table of sensitivity and the correlations with the authors' values."""
    if context.invoked_subcommand is not None:
        return
    if data is None:
        raise typer.BadParameter("name the folder of the data with --data")
    models = _models(causal_lm, likelihoods_file)
    asked = set(perspective or Perspective)
    if models.causal is None:
        asked -= set(LIKELIHOODS)
    lines: list[dict[str, Any]] = []

    def tell(line: dict[str, Any]) -> None:
        lines.append(line)
        if not as_json:
            typer.echo("  ".join(f"{name} {value}" for name, value in line.items()))

    for name, files in (("nq", ("nq",)), ("wow", ("wow_seen", "wow_unseen"))):
        if group and name not in group:
            continue
        texts = [text for file in files for text in read_rows(data, file)[:rows]]
        for trial in trials(texts, asked):
            pool = [text.knowledge for text in texts]
            for line in run_trial(models, trial, pool, word_for_word=not judge_alone):
                tell({"data": name} | line)
        if name == "nq":
            for line in reference_correlations(models, texts, asked):
                tell(line)
    if as_json:
        typer.echo(json.dumps(lines))


@app.command()
def selection(
    data: Data,
    model: Annotated[str, typer.Option(help="Draws the samples: openai:NAME, completion:NAME.")],
    causal_lm: Annotated[str, typer.Option(help="Returns token likelihoods.")],
    samples_file: Annotated[
        Path, typer.Option(help="Samples drawn so far; further ones are added to it.")
    ] = Path("conner-samples.jsonl"),
    rows: Annotated[int, typer.Option(min=2, help="Questions of nq.")] = 100,
    samples: Annotated[int, typer.Option(min=2, help="Samples a question (the paper's r).")] = 5,
    seed: Annotated[int, typer.Option(help="Chooses questions and samples.")] = 1,
    likelihoods_file: Kept = None,
    as_json: AsJson = False,
) -> None:
    """Choose one of r sampled knowledge texts by Q_know and print what that gains (Table 8)."""
    plan = Selection(rows=rows, samples=samples, seed=seed, model=model)
    models = _models(causal_lm, likelihoods_file)
    table = run_selection(plan, read_rows(data, "nq"), open_model(model), models, samples_file)
    typer.echo(json.dumps(table.rows()) if as_json else table.text())


@app.command()
def cost(
    data: Data,
    causal_lm: Causal = None,
    rows: Annotated[int, typer.Option(min=2, help="Rows of the batch.")] = 500,
    singles: Annotated[int, typer.Option(min=1, help="Rows scored one by one.")] = 20,
    pair_by_pair: Annotated[
        int, typer.Option(min=0, help="Rows scored as the released script does.")
    ] = 0,
    perspective: Perspectives = None,
) -> None:
    """Print the time a row takes in one batch and one by one, on nq's passages of ≤ 300 words.

    Passages that occur twice are taken once, and nq may hold fewer than asked for. The rows scored
    one by one are the first of the batch.
    """
    texts = {text.knowledge: text for text in read_rows(data, "nq")}
    short = [text for text in texts.values() if len(text.knowledge.split()) <= COST_WORDS]
    batch = [_whole(text) for text in random.Random(0).sample(short, min(rows, len(short)))]
    plain = create_causal_lm(causal_lm, dtype="float32") if causal_lm and pair_by_pair else None
    costs = measure(
        _models(causal_lm, keep=False),
        plain,
        batch,
        settings=ConnerSettings(perspectives=frozenset(perspective or Perspective)),
        singles=singles,
        pair_by_pair=pair_by_pair,
    )
    for line in cost_table(costs):
        typer.echo(line)


def run_trial(
    models: ConnerModels, trial: Trial, pool: Sequence[str], *, word_for_word: bool = True
) -> list[dict[str, Any]]:
    """Score a trial; a pair counts when the spoilt text's score is strictly lower.

    A pair without one of its two values counts as one whose score did not fall.
    """
    begin = time.perf_counter()
    settings = ConnerSettings(
        perspectives=frozenset({trial.perspective}), word_for_word=word_for_word
    )
    scorer = ConnerScorer(models, settings, irrelevant_pool=pool)
    rows = [row for pair in trial.pairs for row in pair]
    causal = trial.perspective in LIKELIHOODS
    reports = scorer.score(
        rows,
        None if causal else teller(trial.perspective),
        rows_per_call=max(1, len(rows)) if causal else 64,
    )
    seconds = round(time.perf_counter() - begin, 1)
    lines = []
    for name, score in trial.scores.items():
        values = [score(report) for report in reports]
        falls = [
            None if before is None or after is None else before > after
            for before, after in zip(values[::2], values[1::2], strict=True)
        ]
        lines.append(
            {
                "perspective": name,
                "pairs": len(falls),
                "without a value": falls.count(None),
                "falls": round(falls.count(True) / len(falls), 4) if falls else None,
                "target": trial.target,
                "seconds": seconds,
            }
        )
    return lines


def reference_correlations(
    models: ConnerModels, texts: Sequence[Text], asked: set[Perspective]
) -> list[dict[str, Any]]:
    """Spearman correlation with the authors' own values, where the data has them.

    Perplexity is that of the texts' openings, coherence that of whole texts.
    """

    def reports(perspective: Perspective, parts: Sequence[tuple[str, ...]]) -> list[ConnerReport]:
        chosen = frozenset({perspective} & asked)
        scorer = ConnerScorer(models, ConnerSettings(perspectives=chosen))
        rows = [
            ConnerInput(query=text.query, knowledge=text.knowledge, sentences=own)
            for text, own in zip(texts, parts, strict=True)
        ]
        return scorer.score(rows)

    openings = reports(Perspective.COHERENCE_SENTENCE, [text.opening for text in texts])
    wholes = reports(Perspective.COHERENCE_PARAGRAPH, [text.sentences for text in texts])
    perplexities = [
        (statistics.fmean(report.perplexities), text.perplexity)
        for report, text in zip(openings, texts, strict=True)
        if report.perplexities and text.perplexity is not None
    ]
    coherences = [
        (report.coherence_paragraph.value, text.coherence)
        for report, text in zip(wholes, texts, strict=True)
        if report.coherence_paragraph.value is not None and text.coherence is not None
    ]
    found = (("sentence perplexity", perplexities, 0.6), ("paragraph coherence", coherences, None))
    return [
        {
            "correlation": name,
            "rows": len(pairs),
            "spearman": round(spearman(pairs), 4),
            "target": target,
        }
        for name, pairs, target in found
        if len(pairs) > 1
    ]


def spearman(pairs: Sequence[tuple[float, float]]) -> float:
    """Rank correlation of two columns; ties share their mean rank."""
    import numpy as np

    def ranks(values: Sequence[float]) -> Any:
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(counts) - (counts - 1) / 2)[place]

    first, second = zip(*pairs, strict=True)
    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


def _models(
    causal_lm: str | None, likelihoods: Path | None = None, *, keep: bool = True
) -> ConnerModels:
    encoder = create_encoder()
    causal: CausalLM | None = None
    if causal_lm is not None:
        tell = teller("likelihoods")
        causal = create_causal_lm(causal_lm, progress=None if keep else tell)
        if keep:
            causal = KeptLikelihoods(causal, likelihoods, tell)
    return ConnerModels(
        nli=create_nli("onnx"), encoder=encoder, relevance=encoder, discourse=encoder, causal=causal
    )


def _whole(text: Text) -> ConnerInput:
    """A row for all perspectives."""
    return ConnerInput(
        query=text.query,
        knowledge=text.knowledge,
        sentences=text.sentences,
        evidence=tuple(pieces(text.knowledge)),
        answer=text.answer,
        reference=text.answer,
    )


if __name__ == "__main__":
    with errors_told():
        app()
