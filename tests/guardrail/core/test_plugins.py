"""Parts from outside by name: as module and class, and as entry points of an installed package."""

import re
from pathlib import Path

import pytest

from guardrail import ConfigError, Guardrail, GuardrailConfig, KnowledgeGraphError, Passage
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
        ({"checks": {"more": ["outside_parts:Shop"]}}, "is no check; it needs a name and a method"),
        ({"checks": {"more": ["outside_parts:number"]}}, "neither a class nor a function"),
        ({"checks": {"more": ["no_such_module:Check"]}}, "no check 'no_such_module:Check'"),
        ({"checks": {"more": ["outside_parts:Gone"]}}, "cannot be loaded: .*no attribute 'Gone'"),
        ({"scorers": ["no_such:Scorer"]}, "no scorer 'no_such:Scorer'; known: sck, conner"),
        ({"judge": "no_such:Judge"}, "no judge 'no_such:Judge'; known: onnx"),
        ({"judge": "chta:gpt-4o"}, "did you mean 'chat:gpt-4o'"),
        ({"graph": "no_such:Graph"}, "no graph at no_such:Graph; .* write module:Class"),
        ({"graph": "broken"}, "graphs: 'broken' cannot be loaded"),
    ],
)
def test_a_name_that_leads_nowhere_is_told_before_the_first_answer(
    installed: Path, settings: dict[str, object], message: str
) -> None:
    kind = KnowledgeGraphError if "no graph" in message else ConfigError
    base = {"judge": "none", "graph": "none"}
    with Guardrail(GuardrailConfig.model_validate(base | settings)) as guard:
        with pytest.raises(GuardrailError, match=message) as told:
            guard.warm_up()
        assert isinstance(told.value, kind)
