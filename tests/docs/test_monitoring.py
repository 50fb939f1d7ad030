"""The dashboard and the alert rules are valid PromQL and use metrics that the gateway has."""

import json
import re
from typing import Any, NamedTuple

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
BOARD = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
RULES = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))["groups"]
    for rule in group["rules"]
]
EXPRESSIONS = [
    *((panel["title"], target["expr"]) for panel in BOARD["panels"] for target in panel["targets"]),
    *((rule["alert"], rule["expr"]) for rule in RULES),
]
"""Title of panel or rule, and expression."""
OF_PROMETHEUS = {"le", "instance", "job"}
"""Labels that the gateway does not write itself."""


class Query(NamedTuple):
    """Labels by metric, compared values by label, and labels grouped by."""

    labels: dict[str, set[str]]
    values: dict[str, set[str]]
    grouped: set[str]


def query_of(expression: str) -> Query:
    """Parse an expression; ValueError if it is not PromQL."""
    query = Query({}, {}, set())

    def visit(node: promql.Expr) -> None:
        if isinstance(node, promql.MatrixSelector):
            visit(node.vector_selector)
        elif isinstance(node, promql.VectorSelector):
            assert node.name, expression
            labels = query.labels.setdefault(node.name, set())
            for matcher in node.matchers.matchers:
                labels.add(matcher.name)
                if matcher.op == promql.MatchOp.Equal:
                    query.values.setdefault(matcher.name, set()).add(matcher.value)
        elif isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            query.grouped.update(node.modifier.labels)

    promql.walk(promql.parse(expression.replace("$__rate_interval", "5m")), visit)
    return query


@pytest.fixture
async def served_labels() -> dict[str, set[str]]:
    """Labels of each sample that a gateway serves after some calls."""
    config = GuardrailConfig(policy=STRICT, judge_cache=10)
    with Guardrail(config, grounding=ScriptedJudge(), retriever=lambda _: FACTS) as guard:
        transport = httpx.ASGITransport(create_app(guard, GatewaySettings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            await client.post("/v1/checks", json={"question": "", "answer": ANSWER})
            page = (await client.get("/metrics")).text
    return {
        sample.name: set(sample.labels) - OF_PROMETHEUS
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    } | {"up": set()}


async def test_every_metric_and_label_exists(served_labels: dict[str, set[str]]) -> None:
    used = set()
    for title, expression in EXPRESSIONS:
        query = query_of(expression)
        assert query.labels, title
        for name, labels in query.labels.items():
            assert (labels | query.grouped) - OF_PROMETHEUS <= served_labels[name], title
            used.add(name)
    for name, label in re.findall(r"label_values\((\w+), (\w+)\)", json.dumps(BOARD)):
        assert label in served_labels[name]
    families = {re.sub(r"_(total|bucket|sum|count|created)$", "", name) for name in served_labels}
    shown = {re.sub(r"_(total|bucket)$", "", name) for name in used - {"up"}}
    assert {name for name in families if name.startswith("kg_guardrail_")} == shown


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_says_what_to_do(rule: dict[str, Any]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"\d+[mhd]", rule["for"])
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert set(rule["annotations"]) == {"summary", "description"}
    named = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    assert named <= query_of(rule["expr"]).grouped | {"instance"}
