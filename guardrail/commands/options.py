"""Options that several commands share, and what they configure."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, ParamSpec, TypeVar, get_type_hints

import typer
from pydantic import BaseModel

from guardrail.config import GuardrailConfig
from guardrail.core.fields import documented
from guardrail.core.types import as_strictness
from guardrail.policy import policy_named

if TYPE_CHECKING:
    from guardrail.guard import Guardrail

P = ParamSpec("P")
T = TypeVar("T")


def opt(names: str, text: str, metavar: str | None = None, **more: object) -> object:
    """An option of a command; names are separated by spaces, and empty for the parameter's own."""
    return typer.Option(*names.split(), metavar=metavar, help=text, **more)  # type: ignore[arg-type]


def arg(text: str, metavar: str | None = None, **more: object) -> object:
    """An argument of a command; see ``opt``."""
    return typer.Argument(metavar=metavar, help=text, **more)  # type: ignore[arg-type]


JUDGES = "onnx (shipped, default), hf:MODEL, transformers:MODEL, t5-true:MODEL or chat:MODEL"

Input = Annotated[str, opt("--input -i", "JSON lines to read.", "FILE|-")]
Output = Annotated[str, opt("--output -o", "Where to write JSON lines.", "FILE|-")]
Question = Annotated[str | None, arg("One question; without it, rows of --input.")]
Graph = Annotated[
    str | None,
    opt(
        "--kg",
        "On-disk graph, RDF file or SPARQL endpoint. Default: that of the settings, "
        "else the shipped people graph.",
        "PATH|URL",
    ),
]
Config = Annotated[Path | None, opt("--config", "Settings in TOML.", "FILE", dir_okay=False)]
JudgeName = Annotated[
    str | None, opt("--judge", f"{JUDGES}; none for exact evidence only.", "NAME")
]
ModelJudgeName = Annotated[str | None, opt("--judge", f"{JUDGES}.", "NAME")]
PolicyName = Annotated[
    str | None,
    opt(
        "--policy",
        "annotate, strict, strict-correct or best-of-n. Default: that of the settings, "
        "else annotate (serve: strict).",
        "NAME",
    ),
]
StrictnessName = Annotated[
    str | None,
    opt(
        "--strictness",
        "How certain the judge must be: lenient, balanced or strict. Default: that of "
        "the settings, else balanced.",
        "NAME",
    ),
]
EvidenceFiles = Annotated[
    list[Path] | None,
    opt(
        "--evidence --passage",
        "Evidence in place of the graph, for what has none of its own: text, Markdown, "
        "PDF, HTML, DOCX, CSV, TSV or JSON lines. Repeatable.",
        "FILE",
        dir_okay=False,
    ),
]
CausalModel = Annotated[
    str | None,
    opt(
        "--causal-lm",
        "Token likelihoods for CONNER: transformers:MODEL, openai:MODEL or llama:URL.",
        "NAME",
    ),
]
AsJson = Annotated[bool, opt("--json", "Print JSON even on a terminal.")]


@dataclass(frozen=True, kw_only=True)
class Judging:
    """Options on evidence, judge and policy."""

    kg: Graph = None
    evidence: EvidenceFiles = None
    config: Config = None
    judge: JudgeName = None
    policy: PolicyName = None
    strictness: StrictnessName = None

    def settings(self) -> GuardrailConfig:
        """The configuration; see ``build_config``."""
        return build_config(**vars(self))

    def guard(self) -> Guardrail:
        """A loaded guardrail; see ``build_guard``."""
        return build_guard(self.settings())


def grouped(command: Callable[P, T]) -> Callable[P, T]:
    """Let a command take groups of options, which its help lists one by one.

    Each of its parameters whose type is a dataclass, such as ``Judging``, stands for its fields.
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
        own = inspect.signature(kind).parameters.values()
        shown += [parameter.replace(annotation=hints[parameter.name]) for parameter in own]

    @wraps(command)
    def run(*args: P.args, **given: P.kwargs) -> T:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        return command(*args, **given)

    run.__dict__["__signature__"] = inspect.Signature(shown)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def writes(**models: type[BaseModel]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Add the fields of what a command writes to its help, by the names given."""

    def add(command: Callable[P, T]) -> Callable[P, T]:
        parts = [inspect.getdoc(command) or ""]
        for title, model in models.items():
            meanings = documented(model)
            written = [name for name, field in model.model_fields.items() if not field.exclude]
            lines = [
                fill(
                    f"{name}: {meanings[name]}" if name in meanings else name,
                    76,
                    initial_indent="  ",
                    subsequent_indent="    ",
                )
                for name in (*written, *model.model_computed_fields)
            ]
            parts.append("\n".join(["\b", f"Fields of {title}:", *lines]))
        command.__doc__ = "\n\n".join(parts)
        return command

    return add


def build_config(
    config: Path | None = None,
    *,
    kg: str | None = None,
    evidence: list[Path] | None = None,
    judge: str | None = None,
    policy: str | None = None,
    strictness: str | None = None,
    causal_lm: str | None = None,
) -> GuardrailConfig:
    """The configuration of a command: file, environment, then the command's own options."""
    settings = GuardrailConfig.from_toml(config) if config else GuardrailConfig.from_env()
    changes: dict[str, object] = {}
    if kg is not None:
        changes["graph"] = settings.graph.model_copy(update={"location": kg})
    if evidence:
        changes["evidence"] = tuple(evidence)
    if judge is not None:
        changes["judge"] = judge
    if policy is not None:
        changes["policy"] = policy_named(policy)
    if strictness is not None:
        changes["strictness"] = as_strictness(strictness)
        if policy is None and settings.policy.strictness is not None:
            # A policy's strictness overrides the settings', but not the option.
            changes["policy"] = settings.policy.model_copy(update={"strictness": None})
    if causal_lm is not None:
        changes["model"] = settings.model.model_copy(update={"causal_lm": causal_lm})
    return settings.model_copy(update=changes)


def build_guard(settings: GuardrailConfig) -> Guardrail:
    """A loaded guardrail, so that a wrong option stops the command before any row is read."""
    from guardrail.guard import Guardrail

    guard = Guardrail(settings)
    try:
        guard.warm_up()
    except BaseException:
        guard.close()
        raise
    return guard
