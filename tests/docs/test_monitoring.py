"""The dashboard and the alert rules are PromQL, and ask for what the gateway has."""

import json
import operator
import re
from collections.abc import Iterator, Mapping
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


Element = frozenset[tuple[str, str]]
"""The labels of one element of a vector."""
OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    ">": operator.gt,
}


class Rates(NamedTuple):
    """Rates of series, or what they count where no rate is asked for, by name and labels.

    Attributes:
        now: Those of the last minutes.
        before: Those that an offset asks for.
    """

    now: Mapping[tuple[str, Element], float]
    before: Mapping[tuple[str, Element], float]


def worth(node: promql.Expr, rates: Rates) -> float | dict[Element, float]:
    """What an expression gives: a number, or a vector in which each element has its labels.

    Of PromQL it knows what the alert rules are made of: rates of counters, sums, operators of
    arithmetic, ``>`` and ``or``. Elements without a partner in the other vector fall away.
    """
    if isinstance(node, promql.NumberLiteral):
        return float(node.val)
    if isinstance(node, promql.ParenExpr):
        return worth(node.expr, rates)
    if isinstance(node, promql.Call):
        (argument,) = node.args
        return worth(argument.vector_selector, rates)
    if isinstance(node, promql.VectorSelector):
        known = rates.before if node.offset else rates.now
        return {
            labels: rate
            for (name, labels), rate in known.items()
            if name == node.name and all(fits(one, labels) for one in node.matchers.matchers)
        }
    if isinstance(node, promql.AggregateExpr):
        vector = worth(node.expr, rates)
        assert isinstance(vector, dict)
        kept = set(node.modifier.labels) if node.modifier else set()
        sums: dict[Element, float] = {}
        for labels, rate in vector.items():
            group = frozenset(item for item in labels if item[0] in kept)
            sums[group] = sums.get(group, 0.0) + rate
        return sums
    assert isinstance(node, promql.BinaryExpr), node
    left, right = worth(node.lhs, rates), worth(node.rhs, rates)
    if str(node.op) == "or":
        assert isinstance(left, dict)
        assert isinstance(right, dict)
        return {**right, **left}
    assert not isinstance(left, float) or not isinstance(right, float)
    places = left.keys() if isinstance(left, dict) else right.keys()  # type: ignore[union-attr]
    if isinstance(left, dict) and isinstance(right, dict):
        places = left.keys() & right.keys()
    done = OPERATORS[str(node.op)]
    found = {}
    for place in places:
        one = left[place] if isinstance(left, dict) else left
        other = right[place] if isinstance(right, dict) else right
        value = done(one, other)
        if not isinstance(value, bool):
            found[place] = value
        elif value:
            found[place] = one
    return found


def fits(matcher: promql.Matcher, labels: Element) -> bool:
    told = dict(labels).get(matcher.name, "")
    if matcher.op in (promql.MatchOp.Equal, promql.MatchOp.NotEqual):
        return (told == matcher.value) is (matcher.op == promql.MatchOp.Equal)
    assert matcher.op == promql.MatchOp.Re, matcher
    return re.fullmatch(matcher.value, told) is not None


def fires(alert: str, **rates: Mapping[tuple[str, Element], float]) -> bool:
    """Whether a rule gives something for some rates."""
    (rule,) = [rule for rule in rules() if rule["alert"] == alert]
    told = Rates(rates.get("now", {}), rates.get("before", {}))
    return bool(worth(promql.parse(str(rule["expr"])), told))


def series(name: str, rate: float, **labels: str) -> dict[tuple[str, Element], float]:
    return {(f"kg_guardrail_{name}", frozenset(labels.items())): rate}


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


def answers(blocked: float, policy: str = "strict") -> dict[tuple[str, Element], float]:
    """Rates of a policy's answers by result; one that never came has no series."""
    found = series("requests_total", 1.0 - blocked, policy=policy, result="allowed")
    if blocked:
        found |= series("requests_total", blocked, policy=policy, result="filtered")
    return found


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (0.1, 0.5, True),
        (0.1, 0.2, False),
        (0.0, 0.5, True),  # nothing was blocked the day before: no series tells that
        (0.0, 0.04, False),
        (0.0, 0.0, False),
    ],
)
def test_more_blocking_than_the_day_before_is_seen(before: float, now: float, told: bool) -> None:
    calm = answers(0.1, "calm")
    found = fires("GuardrailBlocksMore", now=answers(now) | calm, before=answers(before) | calm)
    assert found is told


@pytest.mark.parametrize(
    ("status", "told"), [("200", False), ("429", False), ("500", True), ("502", True)]
)
def test_errors_of_a_server_are_seen(status: str, told: bool) -> None:
    now = series("http_requests_total", 0.9, status="200")
    now |= series("http_requests_total", 0.1, status=status, route="/v1/checks")
    assert fires("GuardrailServerErrors", now=now) is told
    failed = series("requests_total", 0.1, result="error", error_type="internal", instance="a")
    assert fires("GuardrailInternalErrors", now=failed)  # the first: no series was there before
    assert not fires("GuardrailInternalErrors", now=failed, before=failed)
    assert fires("GuardrailNotJudging", now=failed | answers(0.1))
    assert not fires("GuardrailInternalErrors", now=answers(0.1))


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
