"""``guardrail bench conner``: CONNER's tables, selection, sensitivity and cost.

``run`` generates knowledge and answers and scores them; ``tables`` prints the paper's tables from
such rows. ``validity`` and ``sensitivity`` need no language model: they spoil right texts in one
respect and report how often the score falls. All read ``conner/*.jsonl.gz`` under ``--data``.
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

from benchmarks.conner.cost import cost_table, measure
from benchmarks.conner.generation import Generator, Plan, Setting, read_scored, retrieved
from benchmarks.conner.likelihoods import KeptLikelihoods
from benchmarks.conner.selection import Selection, run_selection
from benchmarks.conner.tables import auc, correlations, figure_2, human, means
from benchmarks.conner.trials import TURN, Text, Trial, pieces, read_rows, trials, validity_pairs
from benchmarks.data import PATIENCE_S, read_jsonl
from benchmarks.provenance import markdown, provenance
from benchmarks.telling import teller
from guardrail.core.text.sentences import split_sentences
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
Kept = Annotated[Path | None, typer.Option(help="Cached likelihoods; further ones are added.")]
Perspectives = Annotated[
    list[Perspective] | None, typer.Option(help="Only these; may be repeated.")
]
Judge = Annotated[str, typer.Option(help="NLI judge of factuality and validity.")]
Seed = Annotated[int, typer.Option(help="Seed of all choices.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

FILES = {"nq": ("nq",), "wow": ("wow_seen", "wow_unseen")}

app = typer.Typer(add_completion=False, no_args_is_help=True, help="CONNER: six perspectives.")


@app.command()
def run(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Scored rows; a stopped run goes on.")
    ],
    group: Annotated[str, typer.Option(help="nq or wow.")] = "nq",
    setting: Annotated[
        list[Setting] | None, typer.Option(help="Where knowledge comes from; repeatable.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Generates: openai:NAME or completion:NAME.")
    ] = None,
    causal_lm: Causal = None,
    judge: Judge = "onnx",
    rows: Annotated[int, typer.Option(min=2, help="Questions.")] = 100,
    samples: Annotated[int, typer.Option(min=2, help="Samples a question, r.")] = 10,
    seed: Seed = 1,
) -> None:
    """Generate knowledge and answers, score them, and print Tables 2, 3, 7, 8 and 16.

    The settings are reference, zero-shot, few-shot, selected-prompt (demonstrations by Q_know,
    n = 8 of m = 30) and selected-knowledge (one of r samples by Q_know). Only reference needs no
    language model; without --causal-lm coherence of sentences, informativeness and helpfulness
    have no value.
    """
    wanted = setting or [Setting.REFERENCE]
    if model is None and wanted != [Setting.REFERENCE]:
        raise typer.BadParameter("every setting but reference needs --model")
    texts = [text for file in FILES[group] for text in read_rows(data, file)]
    models = _models(causal_lm, judge=judge)
    assert models.encoder is not None
    plan = Plan(data=group, rows=rows, seed=seed, model=model or "none", samples=samples)
    generator = Generator(
        plan,
        texts,
        None if model is None else open_model(model, timeout_s=PATIENCE_S),
        ConnerScorer(models, irrelevant_pool=[pieces(text.knowledge)[0] for text in texts]),
        models.encoder,
        output,
    )
    found = [row for each in wanted for row in generator.run(each, teller(each.value))]
    origin = provenance(judge=judge, model=model, seed=seed)
    typer.echo("\n\n".join(means(found, origin)))


@app.command()
def tables(
    scored: Annotated[list[Path], typer.Argument(help="Files that run wrote.")],
    ratings: Annotated[
        Path | None, typer.Option(help="People's ratings, for Tables 9, 10 and 18.")
    ] = None,
    views: Annotated[
        Path | None, typer.Option(help="Page views by topic, for Figure 2(a).")
    ] = None,
    judge: Judge = "onnx",
) -> None:
    """Print Tables 2, 3, 5 to 8, 15, 16, Figure 2, and with ratings Tables 9, 10 and 18."""
    rows = [row for path in scored for row in read_scored(path)]
    named = ", ".join(sorted({row.model for row in rows}))
    origin = provenance(judge=judge, model=named, seed=rows[0].seed if rows else 0)
    found = [*means(rows, origin), *correlations(rows, origin), *figure_2(rows, views, origin)]
    if ratings is not None:
        found.append(human(rows, ratings, origin))
    typer.echo("\n\n".join(found))


@app.command()
def evidence(
    data: Data,
    scored: Annotated[Path, typer.Argument(help="A file that run wrote.")],
    group: Annotated[str, typer.Option(help="nq or wow.")] = "wow",
    judge: Judge = "onnx",
    most: Annotated[int, typer.Option(min=1, help="Most pieces of evidence a sentence.")] = 10,
) -> None:
    """Print Figure 4: factuality by number of pieces, with and without reference knowledge."""
    texts = [text for file in FILES[group] for text in read_rows(data, file)]
    models = _models(None, judge=judge)
    assert models.encoder is not None
    gold = {text.query.split(TURN)[-1]: text.knowledge for text in texts}
    nearest = retrieved(models.encoder, [p for text in texts for p in pieces(text.knowledge)])
    rows = [row for row in read_scored(scored) if row.query.split(TURN)[-1] in gold]
    lines: list[list[object]] = []
    for count in sorted({1, 2, 5, most}):
        line: list[object] = [count]
        for kept in (True, False):
            settings = ConnerSettings(
                perspectives=frozenset({Perspective.FACTUALITY}), evidence_per_sentence=count
            )
            inputs = []
            for row in rows:
                query = row.query.split(TURN)[-1]
                own = set(pieces(gold[query]))
                sentences = tuple(each.text for each in split_sentences(row.knowledge))
                # As many more are retrieved as may fall away.
                found = nearest(sentences, count + len(own))
                inputs.append(
                    ConnerInput(
                        query=query,
                        knowledge=row.knowledge,
                        sentences=sentences,
                        evidence=tuple(piece for piece in found if kept or piece not in own),
                    )
                )
            reports = ConnerScorer(models, settings).score(inputs, teller("rows"))
            values = [each.factuality.value for each in reports]
            known = [value for value in values if value is not None]
            line.append(statistics.fmean(known) if known else None)
        lines.append(line)
    head = ["pieces", "with reference knowledge", "without"]
    typer.echo(markdown(provenance(judge=judge), f"CONNER Figure 4 ({group})", head, lines))


@app.command()
def validity(
    data: Data,
    rows: Annotated[int, typer.Option(min=2, help="Rows of each set.")] = 100,
    judge: Judge = "onnx",
) -> None:
    """Print the AUC of validity, right answers against wrong ones, on NQ and WoW.

    A wrong answer is another row's. ``span`` is eq. 7; ``sentence`` takes the sentence of the
    passage that holds the gold answer, and for the wrong one the same sentence with another
    answer, against the gold answer alone and against the passage; ``open`` is eq. 8.
    """
    models = _models(None, judge=judge)
    scorer = ConnerScorer(models, ConnerSettings(perspectives=frozenset({Perspective.VALIDITY})))
    lines: list[list[object]] = []
    for name, pairs in validity_pairs(data, rows).items():
        reports = scorer.score([row for pair in pairs for row in pair], teller(name))
        values = [report.validity.value or 0.0 for report in reports]
        right, wrong = values[::2], values[1::2]
        lines.append(
            [name, len(pairs), statistics.fmean(right), statistics.fmean(wrong), auc(right, wrong)]
        )
    head = ["answers", "pairs", "mean, right", "mean, wrong", "AUC"]
    typer.echo(markdown(provenance(judge=judge), "CONNER validity", head, lines))


@app.command()
def people(
    data: Annotated[Path, typer.Option(help="Folder that holds attribution/*.jsonl.gz.")],
    rows: Annotated[int, typer.Option(min=8, help="Claims, as many of each label.")] = 200,
    judge: Judge = "onnx",
    seed: Seed = 1,
) -> None:
    """Print the rank correlation of factuality and validity with people's labels.

    The paper's ratings are not public. In Factcheck-GPT people say how a passage bears on a claim:
    it refutes it, is irrelevant, or supports it partially or completely; in this order.
    """
    labels = ("refute", "irrelevant", "partially-support", "completely-support")
    by_label: dict[str, list[dict[str, Any]]] = {label: [] for label in labels}
    for row in read_jsonl(data / "attribution" / "factcheck_stance.jsonl.gz"):
        by_label[row["stance"]].append(row)
    rng = random.Random(seed)
    chosen = [
        (place, row)
        for place, label in enumerate(labels)
        for row in rng.sample(by_label[label], min(rows // len(labels), len(by_label[label])))
    ]
    asked = frozenset({Perspective.FACTUALITY, Perspective.VALIDITY})
    scorer = ConnerScorer(_models(None, judge=judge), ConnerSettings(perspectives=asked))
    inputs = [
        ConnerInput(
            query="", knowledge=row["claim"], sentences=(row["claim"],),
            evidence=tuple(pieces(row["evidence"])), answer=row["claim"], answer_kind="open",
        )
        for _, row in chosen
    ]  # fmt: skip
    reports = scorer.score(inputs, teller("claims"))
    lines: list[list[object]] = []
    scores = {"validity": "validity, factuality", "factual_inconsistent": "factual-inconsistent"}
    for name, title in scores.items():  # of one sentence, eq. 1 and eq. 8 are the same
        values = [getattr(report, name).value for report in reports]
        pairs = [
            (value, float(label))
            for value, (label, _) in zip(values, chosen, strict=True)
            if value is not None
        ]
        by_place = [[value for value, at in pairs if at == place] for place in range(len(labels))]
        lines.append([title, len(pairs), *map(statistics.fmean, by_place), spearman(pairs)])
    head = ["score", "claims", *(f"mean, {label}" for label in labels), "Spearman"]
    origin = provenance(judge=judge, seed=seed)
    typer.echo(markdown(origin, "CONNER and people, Factcheck-GPT", head, lines))


@app.command()
def sensitivity(
    data: Data,
    causal_lm: Causal = None,
    likelihoods_file: Kept = None,
    rows: Annotated[int | None, typer.Option(min=2, help="At most so many rows a file.")] = None,
    perspective: Perspectives = None,
    judge_alone: Annotated[
        bool, typer.Option(help="Let the judge also read sentences that their evidence contains.")
    ] = False,
    group: Annotated[list[str] | None, typer.Option(help="Only nq or only wow.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the table of sensitivity and the correlations with the authors' values."""
    models = _models(causal_lm, likelihoods_file)
    asked = set(perspective or Perspective)
    if models.causal is None:
        asked -= set(LIKELIHOODS)
    lines: list[dict[str, Any]] = []

    def tell(line: dict[str, Any]) -> None:
        lines.append(line)
        if not as_json:
            typer.echo("  ".join(f"{name} {value}" for name, value in line.items()))

    for name, files in FILES.items():
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
    typer.echo(json.dumps(lines) if as_json else str(provenance(judge="onnx")))


@app.command()
def selection(
    data: Data,
    model: Annotated[str, typer.Option(help="Draws the samples: openai:NAME, completion:NAME.")],
    causal_lm: Annotated[str, typer.Option(help="Returns token likelihoods.")],
    samples_file: Annotated[
        Path, typer.Option(help="Samples drawn so far; further ones are added to it.")
    ] = Path("conner-samples.jsonl"),
    rows: Annotated[int, typer.Option(min=2, help="Questions of nq.")] = 100,
    samples: Annotated[int, typer.Option(min=2, help="Samples a question, r.")] = 10,
    seed: Annotated[int, typer.Option(help="Chooses questions and samples.")] = 1,
    likelihoods_file: Kept = None,
    as_json: AsJson = False,
) -> None:
    """Choose one of r sampled texts by Q_know; print the gain in helpfulness (Table 8)."""
    plan = Selection(rows=rows, samples=samples, seed=seed, model=model)
    models = _models(causal_lm, likelihoods_file)
    sampler = open_model(model, timeout_s=PATIENCE_S)
    table = run_selection(plan, read_rows(data, "nq"), sampler, models, samples_file)
    origin = provenance(judge="onnx", model=model, seed=seed)
    typer.echo(json.dumps(table.rows()) if as_json else f"{origin}\n{table.text()}")


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
    causal_lm: str | None,
    likelihoods: Path | None = None,
    *,
    keep: bool = True,
    judge: str = "onnx",
) -> ConnerModels:
    encoder = create_encoder()
    causal: CausalLM | None = None
    if causal_lm is not None:
        tell = teller("likelihoods")
        causal = create_causal_lm(causal_lm, progress=None if keep else tell)
        if keep:
            causal = KeptLikelihoods(causal, likelihoods, tell)
    return ConnerModels(nli=create_nli(judge), encoder=encoder, causal=causal)


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
