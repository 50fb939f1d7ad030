"""The Helm chart, checked without Helm: values, schema and templates agree."""

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
from guardrail import GuardrailConfig
from tests.docs.pages import ROOT
from tests.docs.test_deployment import accepted, dockerfile

CHART = ROOT / "deploy" / "helm" / "kg-guardrail"
TEMPLATES = {path.stem: path.read_text("utf-8") for path in (CHART / "templates").glob("*.yaml")}
VALUES = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text("utf-8"))
ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
RENDERED = {"GUARDRAIL_GRAPH__PROFILE": "wikidata", "GUARDRAIL_LOG__RETENTION_DAYS": "30"}
"""Values of variables that a release renders."""


def shape(template: str) -> dict[str, Any]:
    """A template with every branch taken and ``VALUE`` in place of each value."""
    lines = [
        re.sub(r'"?\{\{.*?\}\}"?', "VALUE", line)
        for line in TEMPLATES[template].splitlines()
        if ACTION.sub("", line).strip()
    ]
    return yaml.safe_load("\n".join(lines))  # type: ignore[no-any-return]


def leaves(section: dict[str, Any], place: str = "") -> Iterator[str]:
    """Paths of all values; an empty object is one."""
    for name, value in section.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{place}.{name}")
        else:
            yield f"{place}.{name}"


def with_values(**places: object) -> dict[str, Any]:
    """The default values, changed at dotted places."""
    changed = copy.deepcopy(VALUES)
    for place, value in places.items():
        *sections, name = place.split(".")
        section = changed
        for part in sections:
            section = section[part]
        section[name] = value
    return changed  # type: ignore[no-any-return]


def is_valid(values: dict[str, Any]) -> bool:
    return bool(jsonschema.Draft7Validator(SCHEMA).is_valid(values))


def test_the_schema_describes_exactly_the_values() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert is_valid(VALUES)

    def compare(schema: dict[str, Any], values: dict[str, Any]) -> None:
        if "properties" in schema:
            assert set(schema["properties"]) - {"global"} == set(values)
            assert schema["additionalProperties"] is False
            for name, value in values.items():
                compare(schema["properties"][name], value)

    compare(SCHEMA, VALUES)


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
def test_the_schema_refuses_invalid_values(place: str, value: object) -> None:
    assert not is_valid(with_values(**{place: value}))


@pytest.mark.parametrize(
    ("enabled", "claim", "replicas", "autoscaling", "valid"),
    [
        (True, "scores", 2, False, False),
        (True, "scores", 1, True, False),
        (True, "scores", 1, False, True),
        (True, "", 2, True, True),
        (False, "scores", 2, True, True),
    ],
)
def test_pods_do_not_share_a_log(
    enabled: bool, claim: str, replicas: int, autoscaling: bool, valid: bool
) -> None:
    """The log is an SQLite file in WAL mode, which several machines would corrupt."""
    places = {"log.enabled": enabled, "log.existingClaim": claim, "replicas": replicas}
    assert is_valid(with_values(**places, **{"autoscaling.enabled": autoscaling})) is valid
    assert shape("deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_the_templates_use_every_value_and_no_other() -> None:
    actions = [action for text in TEMPLATES.values() for action in ACTION.findall(text)]
    used = {path for action in actions for path in re.findall(r"\.Values((?:\.\w+)+)", action)}
    known = set(leaves(VALUES))
    for path in used:
        assert path in known or any(leaf.startswith(f"{path}.") for leaf in known), path
    for leaf in known:
        assert any(leaf == path or leaf.startswith(f"{path}.") for path in used), leaf


def test_the_container_starts_what_the_program_accepts() -> None:
    pod = shape("deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (entry,) = dockerfile("ENTRYPOINT")
    arguments = ["1" if word == "VALUE" else word for word in container["args"]]
    parsed = accepted([*json.loads(entry), *arguments])
    assert parsed["dry_run"] is True
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]}
    (settings_file,) = shape("configmap")["data"]
    assert parsed["config"] == Path(mounts["settings"]) / settings_file
    (exposed,) = dockerfile("EXPOSE")
    (port,) = container["ports"]
    assert port["containerPort"] == parsed["port"] == int(exposed)
    variables = {item["name"]: item["value"] for item in container["env"]}
    del variables["OPENBLAS_NUM_THREADS"]
    config = GuardrailConfig.from_env(
        {name: RENDERED[name] if value == "VALUE" else value for name, value in variables.items()}
    )
    assert config.log is not None
    assert config.log.path.parent == Path(mounts["data"])
    probes = ("startupProbe", "readinessProbe", "livenessProbe")
    paths = {container[probe]["httpGet"]["path"] for probe in probes}
    paths |= {point["path"] for point in shape("servicemonitor")["spec"]["endpoints"]}
    assert paths == {"/readyz", "/healthz", "/metrics"}
    app = create_app(
        GuardrailConfig.model_validate({"judge": "none", "graph": "none"}), GatewaySettings()
    )
    assert paths <= {route.path for route in app.routes}  # type: ignore[attr-defined]


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (chart["appVersion"], chart["name"]) == (project["version"], CHART.name)
