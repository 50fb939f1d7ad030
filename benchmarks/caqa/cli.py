"""``guardrail bench caqa``: build rows, run evaluators, write a page to read, fine-tune."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from benchmarks.caqa.build import DECOY_SHARE, EDITED_SHARE
from benchmarks.caqa.rows import CAQARow, Split
from benchmarks.provenance import provenance
from guardrail.commands.lines import Tell, telling
from guardrail.core.errors import InputError
from guardrail.lines import json_line

if TYPE_CHECKING:
    from benchmarks.caqa.run import KeptRuns

__all__ = ["app"]

app = typer.Typer(
    help="CAQA: complex attribution in question answering, built from any graph.",
    no_args_is_help=True,
    add_completion=False,
)

_CONTROL_TRAIN_ROWS = 20_000
_SHOT_ROWS = 200
"""Training rows that are built for demonstrations alone; the first of each category are shown."""
_TEST_ROWS = 2_000
_PEOPLE = "people"
_STOPPED = 130
"""Exit status of a program that an interrupt (Ctrl-C) stopped."""

_SOURCE = typer.Option(
    "--source",
    "--kg",
    "--data",
    metavar="DIR|FILE|URL",
    help="Graph to build from: a folder of benchmark data, JSON lines of persons or triples, "
    "an on-disk graph, an RDF file, a SPARQL endpoint, or 'people' (shipped, default).",
)
Seed = Annotated[int, typer.Option("--seed", help="Seed of all choices.")]


@app.command()
def build(
    source: Annotated[str, _SOURCE] = _PEOPLE,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE|-", help="Where the rows go.")
    ] = "-",
    n: Annotated[int, typer.Option("-n", "--rows", min=1, help="Number of rows.")] = 2_000,
    split: Annotated[
        str, typer.Option("--split", help="train, valid, test or test_relations.")
    ] = "test",
    kgqa: Annotated[
        Path | None,
        typer.Option("--kgqa", help="Take queries from a KGQA file (QALD, VQuAnDa, …)."),
    ] = None,
    seed: Seed = 0,
    decoys: Annotated[
        float, typer.Option("--decoys", min=0, max=1, help="Share of rows with decoys.")
    ] = DECOY_SHARE,
    edited: Annotated[
        float,
        typer.Option("--edited", min=0, max=1, help="Share of queries with an exchanged answer."),
    ] = EDITED_SHARE,
) -> None:
    """Build rows as JSON lines; counts go to stderr."""
    from benchmarks.caqa.build import BuildLog, build_rows
    from benchmarks.caqa.kgqa import KGQALog, kgqa_entities, kgqa_queries
    from benchmarks.caqa.sources import open_source

    started = time.monotonic()
    ids = kgqa_entities(kgqa) if kgqa and source.startswith(("http://", "https://")) else ()
    graph = open_source(source, ids=ids)
    _say(f"{len(graph)} facts read in {time.monotonic() - started:.1f} s")
    log, asked = BuildLog(), KGQALog()
    queries = None if kgqa is None else kgqa_queries(kgqa, graph, seed=seed, log=asked)
    rows = build_rows(
        graph,
        n=n,
        seed=seed,
        split=_split(split),
        decoys=decoys,
        edited=edited,
        queries=queries,
        log=log,
    )
    started = time.monotonic()
    _write(output, rows, n)
    made = sum(log.rows.values())
    _say(f"{made} rows in {time.monotonic() - started:.1f} s")
    for (category, complexity), count in sorted(log.rows.items()):
        _say(f"  {category} / {complexity}: {count}")
    for reason, count in log.rejected.most_common():
        _say(f"  not used, {reason}: {count}")
    if kgqa is not None:
        _say(f"{asked.read} questions; by shape: {dict(asked.shapes)}")
        _say(f"  in the graph: {dict(asked.grounded)}; other forms: {dict(asked.skipped)}")


@app.command()
def run(
    judge: Annotated[
        list[str] | None,
        typer.Option(
            "--judge",
            help="Evaluator; may be given several times: onnx, nli:onnx, autois:onnx, "
            "transformers:MODEL, classifier:FOLDER, chat-zero:MODEL, chat-few:MODEL, "
            "attrscore:MODEL; NAME@N runs it on about N rows.",
        ),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(
            "--test", "-i", metavar="FILE|-", help="Built rows; may be given several times."
        ),
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            "--train",
            help="Built training rows, for controls and few-shot; built from --source where they "
            "are not given.",
        ),
    ] = None,
    source: Annotated[str | None, _SOURCE] = None,
    n: Annotated[
        int, typer.Option("-n", "--rows", min=1, help="Rows to build where --test is not given.")
    ] = _TEST_ROWS,
    controls: Annotated[
        bool, typer.Option("--controls", help="Train and print the three controls.")
    ] = False,
    transfer: Annotated[
        Path | None, typer.Option("--transfer", help="Folder with attribution/ sets by people.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="A person's labels, JSON lines of id and category."),
    ] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Rows of each set for every judge.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for report.json and report.md.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Take judges that are done on these rows from OUTPUT."),
    ] = False,
    seed: Seed = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of Markdown.")
    ] = False,
) -> None:
    """Run evaluators and print the tables.

    With --json: one object with the first judge's ``overall``, ``category`` and ``complexity``
    on the first split, ``controls``, where their ``training`` rows come from, and under
    ``evaluators`` every figure of every judge. With --output, each judge is kept when it is done.
    """
    from benchmarks.caqa.run import KeptRuns, read_labels, read_rows
    from benchmarks.caqa.run import run as run_all
    from benchmarks.caqa.tables import markdown

    names = judge or ["onnx"]
    if resume and output is None:
        raise InputError("--resume needs --output, the folder of the run that was stopped")
    to_train = controls or any(_shows_rows(name) for name in names)
    if to_train and test and train is None and source is None:
        raise InputError(
            "the rows of --test do not tell their graph: name it with --source, so that training "
            "rows are built from the same, or give training rows with --train"
        )
    splits: dict[str, list[CAQARow]] = {}
    for path in test or ():
        for row in read_rows(Path(path)):
            splits.setdefault(row.split, []).append(row)
    training = read_rows(train) if train is not None else []
    kept = None
    try:
        with telling() as tell:
            wanted: list[tuple[Split, int]] = []
            if not test:
                wanted += [("test", n), ("test_relations", n)]
            if to_train and train is None:
                wanted.append(("train", _CONTROL_TRAIN_ROWS if controls else _SHOT_ROWS))
            if wanted:
                built = _built(source or _PEOPLE, seed, wanted, tell)
                training = training or built.pop("train", [])
                splits = splits or built
            if output is not None:
                output.mkdir(parents=True, exist_ok=True)
                kept = KeptRuns(output / "judges.jsonl", resume=resume)
            report = run_all(
                names,
                splits,
                train=training,
                training=f"the graph {source or _PEOPLE}" if train is None else str(train),
                controls=controls,
                data=transfer,
                labels=read_labels(labels) if labels is not None else None,
                sample=sample,
                kept=kept,
                tell=tell,
            )
    except KeyboardInterrupt:
        _say(_stopped(kept, len(names), output))
        raise typer.Exit(_STOPPED) from None
    text = f"{provenance(judge=_named_judge(names), model=', '.join(names), seed=seed)}\n\n"
    text += markdown(report)
    if output is not None:
        (output / "report.json").write_text(report.model_dump_json(indent=2) + "\n")
        (output / "report.md").write_text(text)
    if not as_json:
        typer.echo(text)
        return
    first = report.evaluators[0]
    main = next(iter(first.splits.values()))
    typer.echo(
        json_line(
            {
                "judge": first.name,
                "n": main.n,
                "overall": main.overall,
                "category": dict(main.category),
                "complexity": dict(main.complexity),
                "controls": report.controls.model_dump() if report.controls else None,
                "training": report.training,
                "evaluators": [
                    evaluator.model_dump(mode="json") for evaluator in report.evaluators
                ],
            }
        )
    )


@app.command()
def page(
    rows: Annotated[str, typer.Option("--input", "-i", metavar="FILE|-", help="Built rows.")] = "-",
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file.")] = Path("caqa.html"),
    n: Annotated[int, typer.Option("-n", "--rows", min=1, help="Rows to show.")] = 200,
) -> None:
    """Write rows to one HTML page to read.

    Graph, evidence and label stand side by side.
    """
    from benchmarks.caqa.page import render_page
    from benchmarks.caqa.run import read_rows, thinned

    shown = thinned(read_rows(Path(rows)), n)
    output.write_text(render_page(shown), encoding="utf-8")
    _say(f"{len(shown)} rows written to {output}")


@app.command("fine-tune")
def fine_tune(
    model: Annotated[str, typer.Argument(help="Hugging Face encoder, by id or path.")],
    train: Annotated[Path, typer.Option("--train", help="Built training rows.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the classifier.")],
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over the rows.")] = 2,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Rows a step.")] = 32,
    learning_rate: Annotated[float, typer.Option("--learning-rate", help="Peak rate.")] = 3e-5,
    seed: Seed = 0,
) -> None:
    """Fine-tune a classifier on built rows.

    Evaluate it with: run --judge classifier:FOLDER.
    """
    from benchmarks.caqa.finetune import FineTuning
    from benchmarks.caqa.finetune import fine_tune as tune
    from benchmarks.caqa.run import read_rows

    settings = FineTuning(
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, seed=seed
    )
    with telling() as tell:
        loss = tune(model, read_rows(train), output, settings, tell)
    _say(f"saved to {output}; last loss {loss:.4f}")


def _shows_rows(name: str) -> bool:
    """True for an evaluator that shows demonstrations."""
    return name.partition(":")[0].endswith(("-few", "-1", "-2", "-3"))


def _named_judge(names: Iterable[str]) -> str | None:
    """The shipped judge, where it is among the evaluators."""
    return "onnx" if any(name.partition("@")[0] == "onnx" for name in names) else None


def _built(
    source: str, seed: int, wanted: list[tuple[Split, int]], tell: Tell
) -> dict[str, list[CAQARow]]:
    """Rows built on the spot, so many of each split."""
    from benchmarks.caqa.build import build_rows
    from benchmarks.caqa.sources import open_source

    graph = open_source(source)
    return {
        split: list(
            _with_progress(build_rows(graph, n=n, seed=seed, split=split), f"{split} rows", n, tell)
        )
        for split, n in wanted
    }


def _with_progress(rows: Iterable[CAQARow], what: str, n: int, tell: Tell) -> Iterator[CAQARow]:
    for number, row in enumerate(rows, 1):
        yield row
        tell(what, number, n)


def _stopped(kept: KeptRuns | None, judges: int, output: Path | None) -> str:
    """What an interrupted run leaves behind, and how to go on."""
    if output is None:
        return "stopped; nothing is kept: with --output, each judge is kept when it is done"
    if kept is None or not kept.done:
        return "stopped before the first judge was done; nothing of this run is kept"
    return (
        f"stopped; {len(kept.done)} of {judges} judges are kept in {output}: the same command "
        "with --resume goes on with the next"
    )


def _split(name: str) -> Split:
    for known in get_args(Split):
        if name == known:
            found: Split = known
            return found
    raise InputError(f"there is no split {name!r}; known: {', '.join(get_args(Split))}")


def _write(output: str, rows: Iterable[CAQARow], n: int) -> None:
    with ExitStack() as stack:
        tell = stack.enter_context(telling(output))
        stream = sys.stdout
        if output != "-":
            stream = stack.enter_context(Path(output).open("w", encoding="utf-8"))
        for row in _with_progress(rows, "rows", n, tell):
            stream.write(row.model_dump_json() + "\n")


def _say(text: str) -> None:
    typer.echo(text, err=True)
