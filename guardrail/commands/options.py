"""Options that several commands share, spelled and explained once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ParamSpec, TypeVar, get_type_hints

import typer

from guardrail.commands.setup import build_config, build_guard

if TYPE_CHECKING:
    from guardrail.config import GuardrailConfig
    from guardrail.guard import Guardrail

__all__ = [
    "AsJson",
    "Config",
    "EvidenceFiles",
    "Graph",
    "Input",
    "JudgeName",
    "Judging",
    "ModelJudgeName",
    "Output",
    "Passages",
    "PolicyName",
    "StrictnessName",
    "grouped",
]

P = ParamSpec("P")
T = TypeVar("T")

Input = Annotated[str, typer.Option("--input", "-i", metavar="FILE|-", help="JSON lines to read.")]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE|-", help="Where the JSON lines go.")
]
Graph = Annotated[
    str | None,
    typer.Option(
        "--kg",
        metavar="PATH|URL",
        help="On-disk graph, RDF file or SPARQL endpoint; that of the settings unless given, else "
        "the shipped people graph.",
    ),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings in TOML.", dir_okay=False)
]
JUDGES = "onnx (shipped, default), hf:MODEL, transformers:MODEL, t5-true:MODEL or chat:MODEL"
JudgeName = Annotated[
    str | None,
    typer.Option("--judge", metavar="NAME", help=f"{JUDGES}; none for exact evidence alone."),
]
ModelJudgeName = Annotated[str | None, typer.Option("--judge", metavar="NAME", help=f"{JUDGES}.")]
PolicyName = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="annotate, strict, strict-correct or best-of-n; that of the settings unless given, "
        "else annotate (serve: strict).",
    ),
]
StrictnessName = Annotated[
    str | None,
    typer.Option(
        "--strictness",
        metavar="NAME",
        help="How sure the judge must be: lenient, balanced or strict; that of the settings unless "
        "given, else balanced.",
    ),
]
Passages = Annotated[
    list[Path] | None,
    typer.Option(
        "--passage",
        "--evidence",
        metavar="FILE",
        help="A file that the answers are judged by in place of the graph: text, Markdown, PDF, "
        "HTML or DOCX, a passage for each paragraph; CSV, TSV or JSON lines, a fact for each cell. "
        "May be given several times.",
        dir_okay=False,
    ),
]
EvidenceFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--evidence",
        metavar="FILE",
        help="A file that answers are judged by in place of the graph, where a call brings no "
        "evidence of its own: text, Markdown, PDF, HTML or DOCX; CSV, TSV or JSON lines. "
        "Repeatable; those of the settings unless given.",
        dir_okay=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON also on a terminal.")]


@dataclass(frozen=True, kw_only=True)
class Judging:
    """What answers are judged against, by whom, and what is done with them."""

    kg: Graph = None
    config: Config = None
    judge: JudgeName = None
    policy: PolicyName = None
    strictness: StrictnessName = None

    def settings(self, evidence: Sequence[Path] | None = None) -> GuardrailConfig:
        """The configuration; see ``build_config``."""
        return build_config(**vars(self), evidence=evidence)

    def guard(self) -> Guardrail:
        """A loaded guardrail; see ``build_guard``."""
        return build_guard(self.settings())


def grouped(command: Callable[P, T]) -> Callable[P, T]:
    """Let a command take options in groups, which its help lists one by one.

    Args:
        command: Of its parameters those whose type is a dataclass, such as ``Judging``, stand for
            the fields of it.
    """
    groups: dict[str, type] = {}
    shown: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        kind = parameter.annotation
        if not isinstance(kind, type) or not is_dataclass(kind):
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[name] = kind
        hints = get_type_hints(kind, include_extras=True)
        shown += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=hints[field.name],
            )
            for field in fields(kind)
        ]

    @wraps(command)
    def run(*args: P.args, **given: P.kwargs) -> T:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        return command(*args, **given)

    run.__dict__["__signature__"] = inspect.Signature(shown)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run
