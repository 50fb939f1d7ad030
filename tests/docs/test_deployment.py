"""The deployment files: what they name exists, and what they start is accepted by the program."""

import json
import re
import shlex
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

import typer
import yaml

from chains.gateway import GatewaySettings, create_app
from guardrail import GuardrailConfig
from guardrail.cli import app
from tests.docs.pages import ROOT

DEPLOY = ROOT / "deploy"
SERVICE_KEYS = {"build", "command", "ports", "environment", "volumes", "restart"}
"""Keys of a service that are used here, of those in the Compose specification."""


def accepted(command: Sequence[str]) -> dict[str, object]:
    """Parse a command as the program does; fails on an option or a value that it does not take."""
    assert Path(command[0]).name == "guardrail"
    group = typer.main.get_command(app)
    with group.make_context("guardrail", list(command[1:2])) as context:
        serve = group.get_command(context, command[1])  # type: ignore[attr-defined]
    with serve.make_context(command[1], list(command[2:])) as parsed:
        return dict(parsed.params)


def dockerfile(instruction: str) -> list[str]:
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    return re.findall(rf"^{instruction} +(.+)$", text, re.MULTILINE)


def compose() -> dict[str, object]:
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    assert set(found) == {"services", "volumes"}
    assert set(found["services"]["guardrail"]) == SERVICE_KEYS
    return found["services"]["guardrail"] | {"kept": found["volumes"]}  # type: ignore[no-any-return]


def unit() -> dict[str, list[str]]:
    settings: dict[str, list[str]] = {}
    for line in (DEPLOY / "guardrail.service").read_text("utf-8").splitlines():
        if line and line[0] not in "#[":
            name, _, value = line.partition("=")
            settings.setdefault(name, []).append(value)
    return settings


def test_the_image_starts_a_command_that_the_program_accepts() -> None:
    (entry,) = dockerfile("ENTRYPOINT")
    (exposed,) = dockerfile("EXPOSE")
    parsed = accepted(json.loads(entry))
    assert parsed["port"] == int(exposed)
    assert parsed["host"] == "0.0.0.0"
    (probe,) = dockerfile("HEALTHCHECK")
    address = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", probe)
    assert address is not None
    assert int(address[1]) == parsed["port"]
    served = create_app(
        GuardrailConfig.model_validate({"judge": "none", "graph": "none"}), GatewaySettings()
    )
    assert address[2] in {route.path for route in served.routes}  # type: ignore[attr-defined]


def test_the_image_is_given_what_its_installation_reads() -> None:
    assert dockerfile("COPY") == [". /app"]
    left_out = [
        line.removeprefix("**/")
        for line in (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (install,) = [line for line in dockerfile("RUN") if "pip install" in line]
    words = shlex.split(install)
    assert "--require-hashes" in words
    lock = words[words.index("--requirement") + 1]
    packages = [
        item.rstrip("*") for item in project["tool"]["setuptools"]["packages"]["find"]["include"]
    ]
    needed = [lock, "pyproject.toml", project["project"]["readme"], *packages]
    needed += project["project"]["license-files"]
    for name in needed:
        assert (ROOT / name).exists()
        assert not [item for item in left_out if fnmatch(name, item)], name
    assert {*Path(lock).stem.split("-")} <= {*project["project"]["optional-dependencies"]}


def test_the_compose_file_builds_mounts_and_starts_what_there_is() -> None:
    service = compose()
    build = service["build"]
    assert isinstance(build, dict)
    context = (DEPLOY / build["context"]).resolve()
    assert context == ROOT.resolve()
    assert (context / build["dockerfile"]).exists()
    (entry,) = dockerfile("ENTRYPOINT")
    parsed = accepted([*json.loads(entry), *service["command"]])  # type: ignore[misc]
    mounts = dict(item.split(":")[:2] for item in service["volumes"])  # type: ignore[attr-defined]
    settings, kept = mounts.items()
    assert (DEPLOY / settings[0]).exists()
    assert str(parsed["config"]) == settings[1]
    assert kept[0] in service["kept"]  # type: ignore[operator]
    held = GuardrailConfig.from_toml(DEPLOY / "guardrail.toml", environ={})
    assert held.policy.name == "strict"
    assert held.log is not None
    assert held.log.path.is_relative_to(kept[1])
    (port,) = map(str, service["ports"])  # type: ignore[call-overload]
    assert port.split(":")[-1] == str(parsed["port"])
    for name in service["environment"]:  # type: ignore[attr-defined]
        assert name.removeprefix("GUARDRAIL_GATEWAY__").lower() in GatewaySettings.model_fields


def test_the_graph_of_ones_own_lies_where_the_program_looks() -> None:
    added = yaml.safe_load((DEPLOY / "compose.graph.yaml").read_text("utf-8"))
    assert set(added) == {"services"}
    ((name, service),) = added["services"].items()
    assert name in yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    held = GuardrailConfig.from_toml(DEPLOY / "guardrail.toml", environ=service["environment"])
    (mount,) = service["volumes"]
    source, target, mode = re.fullmatch(r"(\$\{.+\}):(/\w+):(\w+)", mount).groups()  # type: ignore[union-attr]
    assert held.graph.location == target
    assert mode == "ro"
    assert source.startswith("${GRAPH:?")


def test_the_unit_starts_what_there_is_and_may_write_its_log(tmp_path: Path) -> None:
    settings = unit()
    (start,) = settings["ExecStart"]
    parsed = accepted(shlex.split(start))
    assert parsed["workers"] == 2
    variables = dict(setting.split("=", 1) for setting in settings["Environment"])
    ours = {name: text for name, text in variables.items() if name.startswith("GUARDRAIL_")}
    held = GuardrailConfig.from_toml(DEPLOY / "guardrail.toml", environ=ours)
    assert held.log is not None
    assert settings["ProtectSystem"] == ["strict"]
    (state,) = settings["StateDirectory"]
    assert held.log.path.is_relative_to(f"/var/lib/{state}")
    guide = (ROOT / "docs" / "gateway.md").read_text("utf-8")
    for file in (str(parsed["config"]), *settings["EnvironmentFile"]):
        assert file in guide, f"the guide does not say what {file} is"
