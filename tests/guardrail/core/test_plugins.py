"""Parts from outside by name: as module and class, and as entry points of an installed package."""

import re
from pathlib import Path

import pytest

from guardrail import (
    Action,
    ConfigError,
    Effect,
    Guardrail,
    GuardrailConfig,
    KnowledgeGraphError,
    Passage,
    Score,
    Triple,
    finding,
)
from guardrail.core.errors import GuardrailError
from judges.registry import create_nli
from kg import open_graphs
from tests.docs.pages import ROOT, blocks

ENTRY_POINTS = """
[kg_guardrail.checks]
promises = outside_parts:Promises
[kg_guardrail.judges]
words = outside_parts:WordJudge
sized = outside_parts:Sized
[kg_guardrail.scorers]
length = outside_parts:Length
[kg_guardrail.graphs]
shop = outside_parts:Shop
broken = outside_parts:Nowhere
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parts of docs/extending.md as a package that is installed."""
    page = ROOT / "docs" / "extending.md"
    files = "|".join(block.title[:-3] for block in blocks(page) if block.title.endswith(".py"))
    classes = []
    for block in blocks(page):
        if block.language == "python":
            text = block.text.partition("\nwith Guardrail")[0]
            classes.append(re.sub(rf"from ({files}) import \w+\n", "", text))
    head = "class Sized(WordJudge):\n    def __init__(self, size):\n"
    classes += [head + '        self.name = f"words-{size}"\n', "number = 7\n"]
    (tmp_path / "outside_parts.py").write_text("\n\n".join(classes), "utf-8")
    info = tmp_path / "outside_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


SETTINGS = {
    "entry points": ("words", "length", "shop", "promises"),
    "modules": tuple(
        f"outside_parts:{name}" for name in ("WordJudge", "Length", "Shop", "Promises")
    ),
}


@pytest.mark.parametrize("names", SETTINGS.values(), ids=SETTINGS)
def test_all_four_are_found_by_name(installed: Path, names: tuple[str, ...]) -> None:
    judge, scorer, graph, check = names
    path = installed / "guardrail.toml"
    path.write_text(
        f'judge = "{judge}"\nscorers = ["{scorer}"]\ngraph = "{graph}"\n'
        f'[checks]\nmore = ["{check}"]\n'
    )
    with Guardrail(GuardrailConfig.from_toml(path, environ={})) as guard:
        guard.warm_up()
        answer = guard.check("", "We guarantee it.", evidence=[Passage("We guarantee it.")])
        assert answer.versions["judge"] == "words-1"
        assert "length" in answer.scorecard.scores
        assert ("promises", "a promise") in [
            (finding.check, finding.because) for finding in answer.sentences[0].findings
        ]
        assert len(guard.retrieve("What does the Fjell 3 cost?").evidence) == 2


def test_what_follows_the_colon_is_handed_over(installed: Path) -> None:
    assert create_nli("sized:large").name == "words-large"
    with pytest.raises(ConfigError, match="does not take these options"):
        create_nli("sized")


def test_one_of_several_graphs_may_be_from_outside(installed: Path) -> None:
    both = open_graphs("shop + people")
    assert [len(found) for found in both.find(["Fjell 3", "Ada Lovelace"])] == [1, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"checks": {"more": ["promisses"]}}, "no check 'promisses'; write module:Class"),
        (
            {"checks": {"more": ["outside_parts:Shop"]}},
            "makes a Shop, which lacks apply; it needs name, apply",
        ),
        ({"checks": {"more": ["outside_parts:number"]}}, "neither a class nor a function"),
        ({"checks": {"more": ["no_such_module:Check"]}}, "no check 'no_such_module:Check'"),
        ({"checks": {"more": ["outside_parts:Gone"]}}, "cannot be loaded: .*no attribute 'Gone'"),
        ({"scorers": ["no_such:Scorer"]}, "no scorer 'no_such:Scorer'; known: sck, conner"),
        ({"judge": "no_such:Judge"}, "no judge 'no_such:Judge'; known: onnx"),
        ({"judge": "chta:gpt-4o"}, "did you mean 'chat:gpt-4o'"),
        ({"graph": "no_such:Graph"}, "no graph at no_such:Graph; .* write module:Class"),
        ({"graph": "broken"}, "graphs: 'broken' cannot be loaded"),
        ({"scorers": ["outside_parts:Shop"]}, "makes a Shop, which lacks score"),
        ({"scorers": ["outside_parts:Sized"]}, "cannot be made; it failed: TypeError"),
        ({"graph": "outside_parts:Length"}, "makes a Length, which lacks find, entities"),
        ({"judge": "outside_parts:Shop"}, "lacks warm_up, judge; it needs name, warm_up, judge"),
    ],
)
def test_an_unknown_name_is_reported_before_the_first_answer(
    installed: Path, settings: dict[str, object], message: str
) -> None:
    kind = KnowledgeGraphError if "no graph" in message else ConfigError
    base = {"judge": "none", "graph": "none"}
    with Guardrail(GuardrailConfig.model_validate(base | settings)) as guard:
        with pytest.raises(GuardrailError, match=message) as stated:
            guard.warm_up()
        assert isinstance(stated.value, kind)


class Broken:
    """A part whose every method fails."""

    name = "broken"

    def find(self, labels):
        raise ValueError("oops")

    def apply(self, claim, evidence, context):
        raise ValueError("oops")

    def score(self, batch):
        raise ValueError("oops")

    entities = subgraphs = links = find

    def close(self):
        pass


class Returning(Broken):
    """A part that gives back what it was made with."""

    def __init__(self, made):
        self.made = made

    def apply(self, claim, evidence, context):
        return self.made(claim)

    def score(self, batch):
        return self.made(batch)


SETTINGS_ALONE = {"judge": "none", "graph": "none"}
FACTS = [Triple("Fjell 3", "price", "2,490 euros")]
SAID = "The Fjell 3 costs 2,190 euros. It is green."

CHECKS = {
    "raises": (Broken(), r"ValueError: oops \(test_plugins.py:\d+\)"),
    "no list": (Returning(lambda claim: None), "'NoneType' object is not iterable"),
    "no findings": (Returning(lambda claim: ["x"]), "'str' object has no attribute"),
    "beyond the sentence": (
        Returning(lambda claim: [finding("broken", Effect.MISSING, claim, (0, 999), "x")]),
        "is no span of claim.text",
    ),
    "no such statement": (
        Returning(lambda claim: [finding("broken", Effect.CARRIES, claim, (0, 1), "x", (77,))]),
        "by numbers of evidence.chosen",
    ),
}


@pytest.mark.parametrize(("check", "said"), CHECKS.values(), ids=CHECKS)
def test_a_check_that_fails_is_reported_once_and_the_answer_is_unverified(check, said) -> None:
    config = GuardrailConfig.model_validate(SETTINGS_ALONE)
    with Guardrail(config, checks=[check]) as guard:
        answer = guard.check("", SAID, evidence=FACTS)
        refused = guard.check("", SAID, evidence=FACTS, policy="strict")
    [problem] = [problem for problem in answer.errors if problem.part == "checks"]
    assert re.match(f"check 'broken' failed: .*{said}", problem.message)
    assert (answer.action, refused.action) == (Action.UNVERIFIED, Action.REFUSE)
    assert "typed_values" in [found.check for found in answer.sentences[0].findings]
    assert "broken" not in [found.check for one in answer.sentences for found in one.findings]


SCORERS = {
    "raises": Broken(),
    "too few": Returning(lambda batch: []),
    "no list": Returning(lambda batch: None),
    "no scores": Returning(lambda batch: [{"broken": "high"} for _ in batch]),
}


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
def test_a_scorer_that_fails_costs_its_scores_alone(scorer) -> None:
    good = Returning(lambda batch: [{"good": Score(value=1.0)} for _ in batch])
    config = GuardrailConfig.model_validate(SETTINGS_ALONE)
    with Guardrail(config, scorers=[scorer, good]) as guard:
        answer = guard.check("", SAID, evidence=FACTS)
    assert (
        "scorer 'broken' failed" in {it.part: it.message for it in answer.errors}["scorer broken"]
    )
    assert "good" in answer.scorecard.scores
    assert answer.action is Action.ANNOTATE


def test_a_graph_that_fails_leaves_the_answer_unverified() -> None:
    with Guardrail(GuardrailConfig.model_validate({"judge": "none"}), graph=Broken()) as guard:
        answer = guard.check("What does the Fjell 3 cost?", SAID)
        assert answer.action is Action.UNVERIFIED
        assert "the graph failed: ValueError: oops" in answer.errors[0].message
        with pytest.raises(GuardrailError, match="ValueError: oops"):
            guard.warm_up()


def test_what_a_retriever_returns_is_not_put_down_to_the_caller() -> None:
    config = GuardrailConfig.model_validate({"judge": "none"})
    with Guardrail(config, retriever=lambda question: [{"text": "x"}]) as guard:
        answer = guard.check("What does the Fjell 3 cost?", SAID)
    assert answer.action is Action.UNVERIFIED
    assert "the retriever failed: InputError: evidence must be" in answer.errors[0].message
