"""The Helm chart, as far as it can be told without Helm: values, schema and templates agree."""

import copy
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from chains.gateway import GatewaySettings, create_app
from chains.gateway.settings import variable_of
from guardrail import GuardrailConfig
from guardrail.config import gateway_section
from tests.docs.pages import ROOT
from tests.docs.test_deployment import accepted, dockerfile

CHART = ROOT / "deploy" / "helm" / "kg-guardrail"
TEMPLATES = sorted((CHART / "templates").glob("*.yaml"))
ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
VALUE = re.compile(r"\.Values((?:\.\w+)+)")
OPENS = ("if", "with", "range", "define")
KINDS = {
    "ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Ingress", "PodDisruptionBudget",
    "Service", "ServiceMonitor",
}  # fmt: skip


WRITTEN = {"GUARDRAIL_GRAPH__PROFILE": "wikidata", "GUARDRAIL_LOG__RETENTION_DAYS": "30"}
"""What a release writes in place of variables' values."""


def values() -> dict[str, Any]:
    return yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))  # type: ignore[no-any-return]


def schema() -> dict[str, Any]:
    return json.loads((CHART / "values.schema.json").read_text("utf-8"))  # type: ignore[no-any-return]


def leaves(section: dict[str, Any], place: str = "") -> Iterator[str]:
    """Paths of all values; an object that is empty is one."""
    for name, value in section.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{place}.{name}")
        else:
            yield f"{place}.{name}"


def actions(template: Path) -> list[str]:
    return ACTION.findall(template.read_text("utf-8"))


def shape(template: Path) -> dict[str, Any]:
    """What a template writes where every branch is taken, with a word for each value."""
    lines = []
    for line in template.read_text("utf-8").splitlines():
        if not ACTION.sub("", line).strip():
            continue  # control, or a block that is written in
        lines.append(re.sub(r'"?\{\{.*?\}\}"?', "VALUE", line))
    return yaml.safe_load("\n".join(lines))  # type: ignore[no-any-return]


def deployed() -> dict[str, Any]:
    """The container of the deployment."""
    pod = shape(CHART / "templates" / "deployment.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return container | {"volumes": pod["volumes"]}  # type: ignore[no-any-return]


def test_the_values_are_those_of_the_schema() -> None:
    jsonschema.Draft7Validator.check_schema(schema())
    jsonschema.validate(values(), schema())

    def same(told: dict[str, Any], given: dict[str, Any], place: str) -> None:
        if "properties" in told:
            assert set(told["properties"]) - {"global"} == set(given), place
            assert told["additionalProperties"] is False, place
            for name, value in given.items():
                same(told["properties"][name], value, f"{place}.{name}")

    same(schema(), values(), "")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("replica", 2),
        ("replicas", 0),
        ("upstream", "api.openai.com/v1"),
        ("keys.existingSecret", ""),
        ("keys.plain", "sk-secret"),
        ("graph.kind", "sparql"),
        ("graph.kind", "endpoint"),  # without its address
        ("graph.kind", "volume"),  # without its claim
        ("graph.path", "/absolute"),
        ("ingress.enabled", True),  # without a host
        ("autoscaling.cpuPercent", 170),
        ("dryRun", "yes"),
    ],
)
def test_the_schema_refuses_what_is_wrong(place: str, value: object) -> None:
    given = copy.deepcopy(values())
    *sections, name = place.split(".")
    section = given
    for part in sections:
        section = section[part]
    section[name] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(given, schema())


@pytest.mark.parametrize(
    ("log", "scale", "taken"),
    [
        ({"existingClaim": "scores"}, {"replicas": 2, "autoscaling": False}, False),
        ({"existingClaim": "scores"}, {"replicas": 1, "autoscaling": True}, False),
        ({"existingClaim": "scores"}, {"replicas": 1, "autoscaling": False}, True),
        ({"existingClaim": ""}, {"replicas": 2, "autoscaling": True}, True),
        ({"existingClaim": "scores", "enabled": False}, {"replicas": 2, "autoscaling": True}, True),
    ],
)
def test_pods_do_not_share_a_log(
    log: dict[str, object], scale: dict[str, object], taken: bool
) -> None:
    """It is an SQLite file in WAL mode: several machines would spoil it."""
    given = values()
    given["log"] |= {"enabled": True} | log
    given["replicas"] = scale["replicas"]
    given["autoscaling"]["enabled"] = scale["autoscaling"]
    assert jsonschema.Draft7Validator(schema()).is_valid(given) is taken
    strategy = shape(CHART / "templates" / "deployment.yaml")["spec"]["strategy"]
    assert strategy == {"type": "Recreate"}
    for page in ("operation.md", "scale.md"):
        assert "ReadWriteMany" not in (ROOT / "docs" / page).read_text("utf-8")
    assert "ReadWriteMany" not in (CHART / "values.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    "graph",
    [
        {"kind": "endpoint", "endpoint": "https://graph.example.com/sparql"},
        {"kind": "volume", "existingClaim": "facts", "path": "people"},
        {"kind": "none"},
    ],
)
def test_the_schema_takes_each_kind_of_graph(graph: dict[str, str]) -> None:
    jsonschema.validate(values() | {"graph": values()["graph"] | graph}, schema())


def test_the_templates_use_every_value_and_no_other() -> None:
    used = {
        path for template in TEMPLATES for action in actions(template)
        for path in VALUE.findall(action)
    }  # fmt: skip
    known = set(leaves(values()))
    for path in used:
        assert path in known or any(leaf.startswith(f"{path}.") for leaf in known), path
    for leaf in known:
        assert any(leaf == path or leaf.startswith(f"{path}.") for path in used), leaf


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_blocks_end_and_what_is_included_is_defined(template: Path) -> None:
    helpers = actions(CHART / "templates" / "_helpers.tpl")
    defined = {match[1] for action in helpers if (match := re.match(r'define "(.+)"', action))}
    for found in (actions(template), helpers):
        opened = [action for action in found if action.split()[0] in OPENS]
        assert len(opened) == found.count("end")
    for action in (*actions(template), *helpers):
        assert set(re.findall(r'include "([^"]+)"', action)) <= defined
    assert shape(template)["kind"] in KINDS


def test_the_chart_holds_each_kind_once() -> None:
    assert sorted(shape(template)["kind"] for template in TEMPLATES) == sorted(KINDS)


def test_the_container_starts_what_the_program_accepts() -> None:
    container = deployed()
    (entry,) = dockerfile("ENTRYPOINT")
    given = ["1" if word == "VALUE" else word for word in container["args"]]
    parsed = accepted([*json.loads(entry), *given])
    assert parsed["dry_run"] is True
    assert str(parsed["config"]) == "/etc/guardrail/guardrail.toml"
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in container["volumes"]}
    settings = shape(CHART / "templates" / "configmap.yaml")["data"]
    assert parsed["config"] == Path(mounts["settings"]) / next(iter(settings))
    (exposed,) = dockerfile("EXPOSE")
    (port,) = container["ports"]
    assert port["containerPort"] == parsed["port"] == int(exposed)
    variables = {item["name"]: item["value"] for item in container["env"]}
    del variables["OPENBLAS_NUM_THREADS"]
    held = GuardrailConfig.from_env(
        {name: WRITTEN[name] if text == "VALUE" else text for name, text in variables.items()}
    )
    assert held.log is not None
    assert held.log.path.parent == Path(mounts["data"])


def test_the_probes_ask_for_paths_that_are_served() -> None:
    config = GuardrailConfig.model_validate({"judge": "none", "graph": "none"})
    served = {route.path for route in create_app(config, GatewaySettings()).routes}  # type: ignore[attr-defined]
    container = deployed()
    probes = ("startupProbe", "readinessProbe", "livenessProbe")
    asked = {container[probe]["httpGet"]["path"] for probe in probes}
    asked |= {
        point["path"]
        for point in shape(CHART / "templates" / "servicemonitor.yaml")["spec"]["endpoints"]
    }
    assert asked <= served
    assert asked == {"/readyz", "/healthz", "/metrics"}


def test_the_settings_of_the_chart_are_read(tmp_path: Path) -> None:
    path = tmp_path / "guardrail.toml"
    path.write_text(values()["config"], "utf-8")
    assert GuardrailConfig.from_toml(path, environ={}).policy.name == "strict"
    assert gateway_section(path) == {}
    text = (CHART / "values.yaml").read_text("utf-8")
    named = set(re.findall(r"GUARDRAIL_GATEWAY__\w+", text))
    assert named == {variable_of(name) for name in ("keys", "upstream_key", "tenants")}


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert chart["appVersion"] == project["version"]
    assert chart["name"] == CHART.name
