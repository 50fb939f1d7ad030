"""The dashboard and the alert rules are valid PromQL and use metrics that the gateway has."""

import json
import operator
import re
from collections.abc import Mapping
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


def test_the_parts_of_the_dashboard_fit_together() -> None:
    variables = {item["name"] for item in BOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps([BOARD["panels"], BOARD["templating"]])))
    assert used - {"__rate_interval", "__all"} == variables
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= 24, panel["title"]
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_says_what_to_do(rule: dict[str, Any]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"\d+[mhd]", rule["for"])
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert set(rule["annotations"]) == {"summary", "description"}
    named = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    assert named <= query_of(rule["expr"]).grouped | {"instance"}


def test_prometheus_reads_the_rules_and_the_job_that_they_name() -> None:
    settings = yaml.safe_load((FOLDER / "prometheus.yaml").read_text("utf-8"))
    assert all((FOLDER / name).exists() for name in settings["rule_files"])
    jobs = {job["job_name"] for job in settings["scrape_configs"]}
    named = [query_of(expression).values.get("job", set()) for _, expression in EXPRESSIONS]
    assert set().union(*named) == jobs


# A small evaluator for the PromQL of the alert rules: rates, sums, arithmetic, > and or.

Labels = frozenset[tuple[str, str]]
Rates = Mapping[tuple[str, Labels], float]
OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def value_of(node: promql.Expr, now: Rates, before: Rates) -> Any:
    """A number, or a vector by labels; series with an offset are read from ``before``."""
    if isinstance(node, promql.NumberLiteral):
        return float(node.val)
    if isinstance(node, promql.ParenExpr):
        return value_of(node.expr, now, before)
    if isinstance(node, promql.Call):
        return value_of(node.args[0].vector_selector, now, before)
    if isinstance(node, promql.VectorSelector):
        matchers = node.matchers.matchers
        rates = (before if node.offset else now).items()
        return {labels: rate for (name, labels), rate in rates
                if name == node.name and all(matches(one, labels) for one in matchers)}  # fmt: skip
    if isinstance(node, promql.AggregateExpr):
        by = set(node.modifier.labels) if node.modifier else set()
        sums: dict[Labels, float] = {}
        for labels, rate in value_of(node.expr, now, before).items():
            group = frozenset(item for item in labels if item[0] in by)
            sums[group] = sums.get(group, 0.0) + rate
        return sums
    left, right = (value_of(side, now, before) for side in (node.lhs, node.rhs))
    if str(node.op) == "or":
        return {**right, **left}
    vectors = [side for side in (left, right) if isinstance(side, dict)]
    found = {}
    for labels in set.intersection(*(set(vector) for vector in vectors)):
        one, other = (side[labels] if isinstance(side, dict) else side for side in (left, right))
        if str(node.op) != ">":
            found[labels] = OPERATORS[str(node.op)](one, other)
        elif one > other:
            found[labels] = one
    return found


def matches(matcher: promql.Matcher, labels: Labels) -> bool:
    value = dict(labels).get(matcher.name, "")
    if matcher.op == promql.MatchOp.Re:
        return re.fullmatch(matcher.value, value) is not None
    return (value == matcher.value) is (matcher.op == promql.MatchOp.Equal)


def fires(alert: str, now: Rates, before: Rates | None = None) -> bool:
    (rule,) = [rule for rule in RULES if rule["alert"] == alert]
    return bool(value_of(promql.parse(rule["expr"]), now, before or {}))


def series(name: str, rate: float, **labels: str) -> dict[tuple[str, Labels], float]:
    return {(f"kg_guardrail_{name}", frozenset(labels.items())): rate}


def answers(blocked: float, policy: str = "strict") -> dict[tuple[str, Labels], float]:
    """Rates of a policy's answers by result; a result that never occurred has no series."""
    found = series("requests_total", 1.0 - blocked, policy=policy, result="allowed")
    return found | (
        series("requests_total", blocked, policy=policy, result="filtered") if blocked else {}
    )


@pytest.mark.parametrize(
    ("before", "now", "fired"),
    [(0.1, 0.5, True), (0.1, 0.2, False), (0.0, 0.5, True), (0.0, 0.04, False), (0.0, 0.0, False)],
)
def test_more_blocking_than_the_day_before(before: float, now: float, fired: bool) -> None:
    calm = answers(0.1, "calm")
    assert fires("GuardrailBlocksMore", answers(now) | calm, answers(before) | calm) is fired


@pytest.mark.parametrize(
    ("status", "fired"), [("200", False), ("429", False), ("500", True), ("502", True)]
)
def test_server_errors(status: str, fired: bool) -> None:
    now = series("http_requests_total", 0.9, status="200")
    now |= series("http_requests_total", 0.1, status=status, route="/v1/checks")
    assert fires("GuardrailServerErrors", now) is fired


def test_internal_errors() -> None:
    failed = series("requests_total", 0.1, result="error", error_type="internal", instance="a")
    assert fires("GuardrailInternalErrors", failed)  # the first one: there was no series before
    assert not fires("GuardrailInternalErrors", failed, failed)
    assert not fires("GuardrailInternalErrors", answers(0.1))
    assert fires("GuardrailNotJudging", failed | answers(0.1))


@pytest.mark.parametrize(
    "expression",
    ["sum(rate(a_total[5m])", "rate(a_total)", "increse(a_total[5m])", "sum by result (a_total)"],
)
def test_an_invalid_expression_is_an_error(expression: str) -> None:
    with pytest.raises(ValueError):
        query_of(expression)
