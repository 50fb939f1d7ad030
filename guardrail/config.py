"""One typed configuration, from TOML and the environment.

Parts are named by data, so that each is replaceable without code::

    judge = "onnx"
    scorers = ["sck", "conner"]
    log = {path = "scores.sqlite", sample = 0.1, retention_days = 30}    # or log = "scores.sqlite"

    evidence = ["machines.csv", "handbook.pdf"]    # in place of the graph, relative to this file

    [graph]
    location = "https://query.wikidata.org/sparql"

    [policy]
    base = "strict"
    deadline_s = 5.0

    [gateway]                             # read by ``guardrail serve`` alone
    upstream = "https://api.openai.com/v1"

Environment variables win over the file: ``GUARDRAIL_JUDGE=onnx``,
``GUARDRAIL_GRAPH__LOCATION=…``, ``GUARDRAIL_POLICY=strict``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from guardrail.core.errors import ConfigError
from guardrail.core.fields import did_you_mean, fields_at, plainly, read_toml
from guardrail.core.secrets import RedactedRepr
from guardrail.core.types import Probability, Seconds, Strictness, StrictnessSetting
from guardrail.policy import ANNOTATE, Policy, policy_named
from judges.settings import ChatSettings, SecondJudgeSettings
from kg.opening import EndpointSettings

GATEWAY = "gateway"
"""Section of the file that the gateway reads itself; it may hold keys, so no config keeps it."""

_SHORTHANDS = {
    "graph": "location",
    "log": "path",
    "model": "name",
    "policy": "base",
    "second_judge": "judge",
}
"""The field of a section that a text in the section's place sets."""


REMOVED = {
    "gateway.dry_run": "set dry_run of [policy], or give --dry-run",
    "gateway.reasons": "leave the right reasons out of caller",
    "gateway.routes.models": "name models in calls",
    "gateway.routes.paths": "name paths in calls",
    "gateway.trusted_hosts": "check host names in the reverse proxy",
    "graph.endpoint.password": "set login, the place of user:password",
    "graph.endpoint.per_second": "the endpoint's own limit (429, Retry-After) is respected",
    "graph.endpoint.text_search": "set text_search in a profile that extends that of the graph",
    "graph.endpoint.user": "set login, the place of user:password",
}
"""Settings of earlier versions, with what to do instead."""


class _Section(RedactedRepr, BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )


class GraphConfig(_Section):
    """Which knowledge graph, and how much of it is read.

    Attributes:
        location: A directory, RDF file or SPARQL endpoint; None for the shipped people graph,
            ``none`` for no graph; an installed back end or ``module:Class``.
        profile: Vocabulary profile, by name or TOML file; None detects it.
        endpoint: SPARQL endpoint settings.
    """

    location: str | None = None
    profile: str | None = None
    endpoint: EndpointSettings = EndpointSettings()


class GenerationSettings(_Section):
    """How answers are sampled.

    Attributes:
        temperature: Sampling temperature; KaLMA uses 0.5.
        max_tokens: Maximum tokens per answer.
        seed: Random seed, if the back end supports it.
        facts: Maximum facts in the prompt.
    """

    temperature: FiniteFloat = Field(default=0.5, ge=0.0)
    max_tokens: int = Field(default=200, ge=1)
    seed: int | None = None
    facts: int = Field(default=40, ge=0)


class ModelConfig(_Section):
    """Which language model answers in ``ask``.

    Attributes:
        name: ``openai:NAME`` or ``completion:NAME``; None for the default model of the endpoint.
        causal_lm: CONNER's language model: ``transformers:MODEL``, ``openai:NAME`` (completions at
            ``base_url`` with echoed log-probabilities) or ``llama:URL``; None leaves out what needs
            one.
        base_url: Address of an OpenAI-compatible endpoint; None for ``OPENAI_BASE_URL``.
        api_key_env: Environment variable that holds its key.
        generation: How answers are sampled.
    """

    name: str | None = None
    causal_lm: str | None = None
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    generation: GenerationSettings = GenerationSettings()


CheckName = Literal["typed_values", "yes_no", "unknown_names", "exact_match", "mentions"]
"""Checks that can be switched off."""


class ChecksConfig(_Section):
    """Which checks run; see ``guardrail.verdict.checks``.

    Attributes:
        off: Checks to switch off: ``typed_values``, ``yes_no``, ``unknown_names``,
            ``exact_match``, ``mentions``.
        more: Additional checks: installed names or ``module:Class``.
    """

    off: tuple[CheckName, ...] = ()
    more: tuple[str, ...] = ()


class LogConfig(_Section):
    """Where responses are recorded, how many of them, and for how long.

    Attributes:
        path: The SQLite file.
        sample: Share of responses to record, 0 to 1; those with errors are always recorded.
        retention_days: Days to keep records; None keeps them.
    """

    path: Path
    sample: Probability = 1.0
    # At most a thousand years: the calendar of Python begins two thousand years ago.
    retention_days: float | None = Field(default=None, gt=0, le=365_000)


QUESTION_CHARS = 20_000
"""Maximum length of a question."""


class LimitsConfig(_Section):
    """Bounds that keep one hostile input from taking the service down.

    Attributes:
        answer_chars: Maximum length of an answer; that of a question is 20,000.
        sentences: Maximum judged sentences per answer. Further ones count as unsupported and make
            the answer unverified; ``strict`` refuses it.
        evidence: Maximum triples and passages per answer, shared fairly by their entities; the rest
            is reported in ``errors``. Beyond 500,000 characters in all, the longest passages are
            truncated.
        concurrency: Concurrent calls of graph, judge and retriever. Once four times as many hang,
            answers are unverified at once (``overload``).
        batch_s: Maximum seconds for up to 64 answers of a batch.
    """

    answer_chars: int = Field(default=100_000, ge=1)
    sentences: int = Field(default=500, ge=1)
    evidence: int = Field(default=5_000, ge=1)
    concurrency: int = Field(default=8, ge=1)
    batch_s: Seconds = 300.0


class GuardrailConfig(_Section):
    """Everything a guardrail is made of.

    Attributes:
        graph: The knowledge graph.
        evidence: Files that replace the graph for calls without evidence, read once at start: a
            passage per paragraph of text, Markdown, PDF, HTML or DOCX, a fact per cell of CSV, TSV
            or JSON lines. Relative to the settings file; separated by commas.
        evidence_links: Columns of these tables that hold row ids of another table, by table name:
            ``{customer = "customers"}``.
        judge: ``onnx`` (shipped), ``hf:MODEL``, ``transformers:MODEL``, ``t5-true:MODEL``,
            ``chat:MODEL``, ``none`` for exact evidence only, an installed judge, or
            ``module:Class``.
        second_judge: Judge for sentences that ``judge`` is unsure of: a name or a table; None or
            ``none`` for none.
        chat: How chat models (``chat:MODEL``) judge.
        model: The language model.
        scorers: Additional scorers: ``sck``, ``conner``, ``quality``, an installed one, or
            ``module:Class``.
        strictness: How certain the judge must be: ``lenient``, ``balanced``, ``strict``, or a table
            of thresholds.
        policy: A policy or its name.
        log: The score log or its file.
        judge_cache: Number of cached verdicts, also batches concurrent callers (2 ms wait); 0 for
            none. Default of the gateway: 65,536.
        checks: Which checks run.
        citations: ``stated`` cites every triple that a sentence states; ``verbatim`` only those
            whose value is in it as written (ignoring case). Affects neither support nor passages.
        limits: Bounds.
    """

    graph: GraphConfig = GraphConfig()
    evidence: tuple[Path, ...] = ()
    evidence_links: Mapping[str, str] = Field(default_factory=dict)
    judge: str = "onnx"
    second_judge: SecondJudgeSettings | None = None
    chat: ChatSettings = ChatSettings()
    model: ModelConfig = ModelConfig()
    scorers: tuple[str, ...] = ()
    strictness: StrictnessSetting = Strictness.BALANCED
    policy: Policy = ANNOTATE
    log: LogConfig | None = None
    judge_cache: int = Field(default=0, ge=0)
    checks: ChecksConfig = ChecksConfig()
    citations: Literal["stated", "verbatim"] = "stated"
    limits: LimitsConfig = LimitsConfig()

    @field_validator("graph", mode="after")
    @classmethod
    def _no_table(cls, graph: GraphConfig) -> GraphConfig:
        if (graph.location or "").lower().endswith((".csv", ".tsv")):
            raise ValueError(
                f"{graph.location} is a table; make a graph of it first: guardrail kg load "
                f"{graph.location} --kg FOLDER --subject COLUMN --label COLUMN"
            )
        return graph

    @field_validator("graph", "log", "model", "second_judge", mode="before")
    @classmethod
    def _by_its_shorthand(cls, value: object, info: ValidationInfo) -> object:
        if info.field_name == "second_judge" and value == "none":
            return None
        field = _SHORTHANDS[str(info.field_name)]
        return {field: value} if isinstance(value, str | Path) else value

    @field_validator("evidence", mode="before")
    @classmethod
    def _evidence_by_name(cls, value: object) -> object:
        return _names(value) if isinstance(value, str) else value

    @field_validator("policy", mode="before")
    @classmethod
    def _policy_by_name(cls, value: object) -> object:
        if isinstance(value, str):
            return policy_named(value)
        if isinstance(value, Mapping):
            changes = dict(value)
            base = policy_named(str(changes.pop("base", changes.get("name", "annotate"))))
            return {**base.model_dump(), **changes}
        return value

    @classmethod
    def from_toml(cls, path: str | Path, *, environ: Mapping[str, str] | None = None) -> Self:
        """Read a TOML file, then the environment over it.

        Args:
            path: The file.
            environ: Variables to read; those of the process by default.

        Raises:
            ConfigError: The file cannot be read, or a setting is unknown or malformed; the
                message names the nearest known setting.
        """
        settings = _read_toml(path)
        settings.pop(GATEWAY, None)
        if "evidence" in settings:
            settings["evidence"] = _relative_to(path, settings["evidence"])
        return cls._build(settings, environ, str(path))

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """Defaults, with the environment's ``GUARDRAIL_…`` variables over them.

        Raises:
            ConfigError: A variable names no setting, or its value is malformed.
        """
        return cls._build({}, environ, "the environment")

    def changed(self, **fields: object) -> Self:
        """A copy with other values, each checked.

        Args:
            fields: New values by setting, as the settings file has them.

        Raises:
            ConfigError: There is no such setting, or its value cannot be used.
        """
        return self._build({**self.model_dump(), **fields}, {}, "the arguments")

    @classmethod
    def _build(
        cls, settings: dict[str, object], environ: Mapping[str, str] | None, source: str
    ) -> Self:
        _overlay(settings, os.environ if environ is None else environ)
        try:
            made = cls.model_validate(settings)
            made.policy.changed()  # refuses a misspelled score in a threshold
        except (ValidationError, ConfigError) as error:
            detail = _explain(cls, error) if isinstance(error, ValidationError) else error
            raise ConfigError(f"{source}: {detail}") from error
        return made


def gateway_section(path: str | Path) -> dict[str, object]:
    """The ``[gateway]`` section of a settings file, unchecked; empty if there is none.

    Raises:
        ConfigError: The file cannot be read, or the section is no table.
    """
    section = _read_toml(path).get(GATEWAY, {})
    if not isinstance(section, dict):
        raise ConfigError(f"{path}: {GATEWAY!r} must be a section, [gateway], with its settings")
    return section


def _read_toml(path: str | Path) -> dict[str, object]:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the settings file {path}: {error.strerror}") from error
    return read_toml(content, path)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _relative_to(path: str | Path, files: object) -> object:
    """Names of files in a settings file, relative to it; other values are left unchanged."""
    files = _names(files) if isinstance(files, str) else files
    if not isinstance(files, list):
        return files
    folder = Path(path).parent
    return [folder / Path(name).expanduser() if isinstance(name, str) else name for name in files]


def _overlay(settings: dict[str, object], environ: Mapping[str, str]) -> None:
    for variable, text in sorted(environ.items()):
        *parents, last = variable.removeprefix("GUARDRAIL_").lower().split("__")
        if not variable.startswith("GUARDRAIL_") or parents[:1] == [GATEWAY]:
            continue
        table = settings
        for parent in parents:
            section = table.get(parent)
            if isinstance(section, str):
                section = {_SHORTHANDS[parent]: section} if parent in _SHORTHANDS else {}
            inner: dict[str, object] = dict(section) if isinstance(section, dict) else {}
            table[parent] = inner
            table = inner
        try:
            table[last] = read_toml(f"value = {text}", "it")["value"]
        except ConfigError:
            table[last] = text


def _explain(model: type[BaseModel], error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        where = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = fields_at(model, problem["loc"][:-1])
            if len(problem["loc"]) == 1:
                known.append(GATEWAY)
            hint = did_you_mean(str(problem["loc"][-1]), sorted(known))
            if where in REMOVED:
                lines.append(f"{where!r}: this setting is gone; {REMOVED[where]}")
            else:
                lines.append(f"there is no setting {where!r}; {hint}")
        else:
            lines.append(f"{where}: {plainly(problem)}")
    return "; ".join(lines)
