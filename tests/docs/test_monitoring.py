"""The dashboard and the alert rules are PromQL, and ask for what the gateway has."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import httpx
import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, Guardrail, GuardrailConfig
from tests.chains.conftest import ANSWER, FACTS
from tests.chains.scripted import ScriptedJudge
from tests.docs.pages import ROOT

FOLDER = ROOT / "deploy" / "monitoring"
VARIABLE = re.compile(r"label_values\((\w+), (\w+)\)")
OF_PROMETHEUS = {"le", "instance", "job"}
"""Labels that the gateway does not write itself."""
FOR_THE_INTERVAL = "5m"
"""What Grafana may write for its ``$__rate_interval``."""


class Asked(NamedTuple):
    """What an expression asks for.

    Attributes:
        labels: Of each metric, the labels that are compared.
        values: The values that labels are compared with, where they are no pattern.
        grouped: Labels that are grouped by.
    """

    labels: dict[str, set[str]]
    values: dict[str, set[str]]
    grouped: set[str]


def asked_by(expression: str) -> Asked:
    """Parse an expression, with its types and functions.

    Raises:
        ValueError: It is no PromQL.
    """
    asked = Asked({}, {}, set())

    def visit(node: promql.Expr) -> None:
        if isinstance(node, promql.MatrixSelector):
            visit(node.vector_selector)
        elif isinstance(node, promql.VectorSelector):
            assert node.name, f"a series without the name of a metric: {expression}"
            labels = asked.labels.setdefault(node.name, set())
            for matcher in node.matchers.matchers:
                labels.add(matcher.name)
                if matcher.op == promql.MatchOp.Equal:
                    asked.values.setdefault(matcher.name, set()).add(matcher.value)
        elif isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            asked.grouped.update(node.modifier.labels)

    written = expression.replace("$__rate_interval", FOR_THE_INTERVAL)
    promql.walk(promql.parse(written), visit)
    return asked


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
    served_labels["up"] = set()  # Prometheus's own
    for place, expression in expressions():
        found = asked_by(expression)
        assert found.labels, place
        for name, labels in found.labels.items():
            assert name in served_labels, f"{place}: there is no metric {name}"
            missing = (labels | found.grouped) - OF_PROMETHEUS - served_labels[name]
            assert not missing, f"{place}: {name} has no {missing}"
            asked.add(name)
    for name, label in VARIABLE.findall((FOLDER / "dashboard.json").read_text("utf-8")):
        assert label in served_labels[name], f"the variable of {label}"
    families = {re.sub(r"_(total|bucket|sum|count|created)$", "", name) for name in served_labels}
    shown = {re.sub(r"_(total|bucket)$", "", name) for name in asked - {"up"}}
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
        named = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        grouped = asked_by(str(rule["expr"])).grouped
        assert named <= grouped | {"instance"}, rule["alert"]


def test_prometheus_reads_the_rules_and_the_job_that_they_name() -> None:
    settings = yaml.safe_load((FOLDER / "prometheus.yaml").read_text("utf-8"))
    assert all((FOLDER / name).exists() for name in settings["rule_files"])
    jobs = {job["job_name"] for job in settings["scrape_configs"]}
    named = [asked_by(expression).values.get("job", set()) for _, expression in expressions()]
    assert set().union(*named) == jobs


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ("sum(rate(a_total[5m])", "unclosed"),
        ("rate(a_total)", "expected type matrix"),
        ("increse(a_total[5m])", "unknown function"),
        ("sum by result (a_total)", "invalid promql"),
    ],
)
def test_what_is_no_expression_is_found(written: str, wrong: str) -> None:
    """Brackets, types, functions and the grammar: the test above sees them all."""
    with pytest.raises(ValueError, match=wrong):
        asked_by(written)
