"""The dashboard and the alert rules ask for metrics and labels that the gateway has."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, Guardrail, GuardrailConfig
from tests.chains.conftest import ANSWER, FACTS
from tests.chains.scripted import ScriptedJudge
from tests.docs.pages import ROOT

FOLDER = ROOT / "deploy" / "monitoring"
METRIC = re.compile(r"\b(kg_guardrail_\w+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
SELECTED = re.compile(r'(\w+)(?:=~|!~|!=|=)"')
OF_PROMETHEUS = {"le", "instance", "job"}
"""Labels that the gateway does not write itself."""


def panels() -> list[dict[str, object]]:
    found = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
    return found["panels"]  # type: ignore[no-any-return]


def rules() -> list[dict[str, object]]:
    found = yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))
    return [rule for group in found["groups"] for rule in group["rules"]]


def expressions() -> Iterator[tuple[str, str]]:
    """Every expression with the panel or the rule that it stands in."""
    for panel in panels():
        for target in panel["targets"]:  # type: ignore[attr-defined]
            yield str(panel["title"]), target["expr"]
    for rule in rules():
        yield str(rule["alert"]), str(rule["expr"])


@pytest.fixture
async def served_labels() -> dict[str, set[str]]:
    """The labels of each sample that a gateway tells after some calls."""
    config = GuardrailConfig(policy=STRICT, judge_cache=10)
    with Guardrail(config, grounding=ScriptedJudge(), retriever=lambda asked: FACTS) as guard:
        transport = httpx.ASGITransport(create_app(guard, GatewaySettings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            await client.post("/v1/checks", json={"question": "", "answer": ANSWER})
            page = (await client.get("/metrics")).text
    return {
        sample.name: set(sample.labels) - OF_PROMETHEUS
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


async def test_every_metric_and_label_exists(served_labels: dict[str, set[str]]) -> None:
    asked = set()
    for place, expression in expressions():
        found = METRIC.findall(expression)
        assert found or expression.startswith("up{"), place
        for name, selector in found:
            assert name in served_labels, f"{place}: there is no metric {name}"
            labels = set(SELECTED.findall(selector))
            assert labels <= served_labels[name], f"{place}: {name} has no {labels}"
            asked.add(name)
        grouped = {
            label.strip() for group in GROUPED.findall(expression) for label in group.split(",")
        }
        known = set().union(*(served_labels[name] for name, _ in found)) if found else set()
        assert grouped - OF_PROMETHEUS <= known, place
    families = {re.sub(r"_(total|bucket|sum|count|created)$", "", name) for name in served_labels}
    shown = {re.sub(r"_(total|bucket)$", "", name) for name in asked}
    ours = {name for name in families if name.startswith("kg_guardrail_")}
    assert ours == shown, "a metric that nobody shows"


def test_the_dashboards_parts_fit_together() -> None:
    board = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
    variables = {item["name"] for item in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps([board["panels"], board["templating"]])))
    assert used - {"__rate_interval", "__all"} == variables
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= 24, panel["title"]
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_rule_says_what_to_do() -> None:
    for rule in rules():
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}, rule
        assert re.fullmatch(r"\d+[mhd]", str(rule["for"]))
        assert rule["labels"]["severity"] in ("warning", "critical")  # type: ignore[index]
        assert set(rule["annotations"]) == {"summary", "description"}  # type: ignore[call-overload]
        expression = str(rule["expr"])
        assert expression.count("(") == expression.count(")")
        named = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        grouped = {
            label.strip() for found in GROUPED.findall(expression) for label in found.split(",")
        }
        assert named <= grouped | {"instance"}, rule["alert"]


def test_prometheus_reads_the_rules_and_the_job_that_they_name() -> None:
    settings = yaml.safe_load((FOLDER / "prometheus.yaml").read_text("utf-8"))
    assert all((FOLDER / name).exists() for name in settings["rule_files"])
    jobs = {job["job_name"] for job in settings["scrape_configs"]}
    named = {
        job for _, expression in expressions() for job in re.findall(r'job="(\w+)"', expression)
    }
    assert named == jobs
