"""``guardrail bench biokalma``: build questions, run models, score answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import ValidationError

from benchmarks.biokalma.scoring import ScoreRow, report, score_rows
from benchmarks.data import PATIENCE_S
from benchmarks.kept import kept_lines
from guardrail.core.errors import InputError

if TYPE_CHECKING:
    from benchmarks.biokalma.rounds import BioKalmaQuestion
    from benchmarks.biokalma.run import Setting, Variant
    from judges.base import NLIJudge
    from kg.sparql import SparqlGraph
    from kg.store import OxigraphGraph

__all__ = ["app"]

app = typer.Typer(
    help="BioKaLMA: build questions from any graph, run models on them, score their citations.",
    no_args_is_help=True,
    add_completion=False,
)

Input = Annotated[str, typer.Option("--input", "-i", metavar="FILE|-", help="JSON lines to read.")]
Graph = Annotated[
    str | None,
    typer.Option("--kg", metavar="PATH|URL", help="The graph; the shipped people graph if none."),
]
Model = Annotated[
    str,
    typer.Option("--model", help="openai:NAME or completion:NAME."),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all choices.")]


@app.command()
def score(
    input: Input = "-",
    judge: Annotated[
        str | None,
        typer.Option("--judge", help="NLI judge for alignment, such as onnx; none by default."),
    ] = None,
) -> None:
    """Score answers with KaLMA's citation metrics.

    Reads JSON lines {id, marked, graph: [[entity, property, value], …], minimum: [[…], …]}:
    the answer with its markers, the retrieved triples, and the triples a full answer needs.
    Prints one JSON object {answers, citations, micro: {correctness, precision, recall, f1},
    macro: {precision, recall, f1}, alignment_containment, alignment_written, alignment_released,
    alignment, reasons, errors}; all values are shares in [0, 1], null with a reason where there
    is nothing to average over.
    Lines that cannot be read are listed in errors and left out.
    """
    rows: list[ScoreRow] = []
    errors: list[str] = []
    for number, line in enumerate(_lines(input), start=1):
        if not line.strip():
            continue
        try:
            rows.append(ScoreRow.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            errors.append(f"line {number}: {place + ': ' if place else ''}{first['msg']}")
    result: dict[str, object] = report(score_rows(rows, _nli(judge))).model_dump()
    typer.echo(json.dumps({**result, "errors": errors}, ensure_ascii=False, indent=2))


@app.command()
def build(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the questions go.")
    ],
    n: Annotated[int, typer.Option("-n", min=1, help="Number of questions.")] = 200,
    kg: Graph = None,
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", metavar="CSV", help="name,relation,name; else from the graph."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Chat model that writes; templates if none.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Build questions with their minimum knowledge sets, in six rounds (KaLMA 2.2).

    Writes JSON lines {id, question, answer, entities, minimum: [[entity, property, value], …],
    rounds, generator}. What is in the file already is kept: a run that was stopped goes on.
    The same graph, seed and generator give the same questions.
    """
    from benchmarks.biokalma.evolve import CALL_TOKENS, ChatEvolver
    from benchmarks.biokalma.pairs import disambiguate, pairs_from_csv, pairs_from_graph
    from benchmarks.biokalma.rounds import (
        ROUNDS,
        BioKalmaQuestion,
        Evolver,
        construct,
    )
    from benchmarks.biokalma.templates import TemplateEvolver

    graph = _graph(kg)
    named = pairs_from_csv(pairs) if pairs else pairs_from_graph(graph)
    found = disambiguate(graph, named)
    done = _built(output, BioKalmaQuestion)
    evolver: Evolver = TemplateEvolver()
    if model is not None:
        from guardrail.models import open_model

        evolver = ChatEvolver(open_model(model, timeout_s=PATIENCE_S))
        calls = max(0, n - len(done)) * ROUNDS
        _say(f"{calls} calls of {model}, about {calls * CALL_TOKENS:,} tokens")
    _say(f"{len(named)} name pairs, {len(found)} of them disambiguated; {len(done)} built already")
    made = len(done)
    questions = construct(graph, found, evolver, n=n, seed=seed, done=done, report=_say)
    with output.open("a", encoding="utf-8") as file:
        for question in questions:
            file.write(question.model_dump_json() + "\n")
            file.flush()
            made += 1
            _progress(made, n, "questions")
    _say(f"{made} questions in {output}")


@app.command()
def run(
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            metavar="FILE|DIR",
            help="Questions from build, or the folder of benchmark data (no minimum sets there).",
        ),
    ],
    model: Model,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Samples, answers and tables.")
    ] = Path("biokalma-run"),
    settings: Annotated[
        str, typer.Option("--settings", help="Of plain,constrained,check,best-of-5,regenerate.")
    ] = "plain,constrained,check,best-of-5",
    n: Annotated[int | None, typer.Option("-n", min=1, help="Questions to draw.")] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs with different seeds.")] = 1,
    seed: Seed = 1,
    kg: Graph = None,
    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            help="The guardrail's judge, or several with commas between; none for exact evidence "
            "alone.",
        ),
    ] = "onnx",
    citations: Annotated[
        str,
        typer.Option(
            "--citations",
            help="Which triples the guardrail cites: stated, verbatim, or both with a comma.",
        ),
    ] = "stated",
    grader: Annotated[
        str | None,
        typer.Option(
            "--grader",
            help="NLI judge that measures alignment; with --judge onnx,none it grades answers "
            "that it did not filter as well.",
        ),
    ] = None,
    rater: Annotated[
        str | None,
        typer.Option(
            "--rater",
            help="Chat model of the endpoint of OPENAI_BASE_URL that rates coherence, "
            "consistency, fluency and relevance from 1 to 5 (KaLMA 4.1).",
        ),
    ] = None,
    retrieval: Annotated[
        str, typer.Option("--retrieval", help="gold (the question's entities) or linked.")
    ] = "gold",
    accuracy: Annotated[
        str,
        typer.Option(
            help="Percent of subgraphs that are the right ones; several with commas print "
            "Figure 5: 100,80,60,40,20."
        ),
    ] = "100",
    removed: Annotated[
        int, typer.Option(min=0, max=3, help="Triples of each minimum set taken out.")
    ] = 0,
    temperature: Annotated[float, typer.Option(min=0.0, help="Of sampling.")] = 0.5,
    max_tokens: Annotated[int, typer.Option(min=1, help="Limit of one answer.")] = 120,
    facts: Annotated[int, typer.Option(min=1, help="Most triples shown to the model.")] = 40,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not a table.")] = False,
) -> None:
    """Run a model on the questions and print KaLMA's Table 3, the paper's rows below ours.

    A run that was stopped goes on where it stood: samples are kept in OUTPUT/samples-*.jsonl, those
    of regenerate with what the guardrail made of them; measure a changed one in a new OUTPUT.
    Answers go to OUTPUT/answers.jsonl in the form that score reads, the table to table.md and
    table.json. The guardrail's judge should not be the grader: a star marks rows where it is.
    """
    from benchmarks.biokalma.experiment import Experiment
    from benchmarks.biokalma.tables import figure_5

    accuracies = _percents(accuracy)
    experiment = Experiment(
        data=data,
        output=output,
        settings=_settings(settings),
        model=model,
        n=n,
        seeds=tuple(range(seed, seed + runs)),
        kg=kg,
        variants=_variants(judge, citations),
        grader=grader,
        rater=rater,
        linked=_retrieval(retrieval),
        accuracy=accuracies[0] / 100,
        removed=removed,
        temperature=temperature,
        max_tokens=max_tokens,
        facts=facts,
    )
    found = {}
    for percent in accuracies:
        place = output if len(accuracies) == 1 else output / f"accuracy-{percent}"
        varied = experiment.model_copy(update={"accuracy": percent / 100, "output": place})
        result = found[percent] = varied.run(_graph(kg), _nli(grader), progress=_progress)
        typer.echo(result.model_dump_json(indent=2) if as_json else result.markdown)
    if len(accuracies) > 1 and not as_json:
        typer.echo("\n" + figure_5({percent: result.rows for percent, result in found.items()}))


def _percents(text: str) -> list[int]:
    found = [int(part) for part in text.split(",") if part.strip().isdigit()]
    if not found or len(found) < len(text.split(",")) or max(found) > 100:
        raise InputError(f"--accuracy takes percents from 0 to 100, not {text!r}")
    return found


def _variants(judges: str, citations: str) -> tuple[Variant, ...]:
    """Every guardrail that two comma-separated options name."""
    from benchmarks.biokalma.run import Variant

    kinds: list[Literal["stated", "verbatim"]] = []
    for name in citations.split(","):
        match name.strip():
            case "stated" | "verbatim" as kind:
                kinds.append(kind)
            case other:
                raise InputError(f"--citations takes stated and verbatim, not {other!r}")
    named = [name.strip() for name in judges.split(",")]
    return tuple(dict.fromkeys(Variant(judge, kind) for judge in named for kind in kinds))


@app.command()
def incompetence(
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Folder with triples/dart_dev.jsonl.gz."),
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Texts, or persons, of each source.")] = 200,
    kg: Graph = None,
    judge: Annotated[
        str, typer.Option("--judge", help="The guardrail's judge; none for exact evidence alone.")
    ] = "onnx",
    seed: Seed = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not a table.")] = False,
) -> None:
    """Measure [NA] without a model in the loop: what was removed is known (KaLMA 4.4).

    Takes texts whose triples are known (the verbalised people graph; with --data also single
    sentences of DART), removes k = 0 to 3 triples from the evidence, checks the text, and
    counts the sentences marked [NA]. Model-free: no judge decides what is right.
    """
    from benchmarks.biokalma.incompetence import measure, people_texts, read_dart, table

    sources = {"people graph": people_texts(_graph(kg), n, seed)}
    if data is not None:
        sources["DART"] = read_dart(data, n, seed)
    results = [
        measured
        for name, texts in sources.items()
        for measured in measure(name, texts, judge=judge, seed=seed, progress=_progress)
    ]
    if as_json:
        typer.echo(json.dumps([row.model_dump() for row in results], indent=2))
    else:
        typer.echo(table(results))


def _lines(source: str) -> list[str]:
    try:
        if source == "-":
            return sys.stdin.read().split("\n")
        return Path(source).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from error


def _built(path: Path, kind: type[BioKalmaQuestion]) -> list[str]:
    """Ids of the questions in a file that may not exist yet; a cut last line is removed."""
    if not path.exists():
        return []
    try:
        return [kind.model_validate_json(line).id for line in kept_lines(path)]
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise InputError(f"{path} holds something else than questions: {error}") from error


def _settings(names: str) -> tuple[Setting, ...]:
    from benchmarks.biokalma.run import Setting

    try:
        return tuple(Setting(name.strip()) for name in names.split(","))
    except ValueError as error:
        known = ", ".join(Setting)
        raise InputError(f"--settings: {error}; use some of {known}") from error


def _retrieval(name: str) -> bool:
    if name not in ("gold", "linked"):
        raise InputError(f"--retrieval must be gold or linked, not {name!r}")
    return name == "linked"


def _graph(location: str | None) -> OxigraphGraph | SparqlGraph:
    from kg import open_graph

    return open_graph(location) if location else open_graph()


def _nli(name: str | None) -> NLIJudge | None:
    if name is None:
        return None
    from judges.registry import create_nli

    return create_nli(name)


def _say(message: str) -> None:
    typer.echo(message, err=True)


def _progress(done: int, total: int, what: str = "calls") -> None:
    if sys.stderr.isatty():
        typer.echo(f"\r{done}/{total} {what}", err=True, nl=done >= total)
