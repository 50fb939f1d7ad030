import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.caqa.cli import app
from benchmarks.caqa.evaluators import (
    AutoISEvaluator,
    ChatEvaluator,
    JudgeEvaluator,
    create_evaluator,
    item_of,
)
from benchmarks.caqa.metrics import confusion, f1_by_category, fine_grained, micro_f1, report
from benchmarks.caqa.prompts import Form, demonstrations, read_category
from benchmarks.caqa.rows import CAQARow
from benchmarks.caqa.run import KeptRuns, evaluate, run
from benchmarks.caqa.transfer import transfer
from guardrail.core.errors import ConfigError, InputError
from guardrail.core.types import Category, Judgement, NLIScores
from judges.base import AttributionItem, Pair
from judges.registry import register
from tests.guardrail.scripted import Ready

S, P, C, I = Category  # noqa: E741 - the paper's letters


class ContainmentJudge(Ready):
    """Minimal judge: supportive if the evidence contains the last word of the answer."""

    name = "containment"

    def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
        said = [S if i.answer.split()[-1] in " ".join(i.evidence) else I for i in items]
        return [
            Judgement(category=item, scores={c: float(c is item) for c in Category})
            for item in said
        ]

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        hits = [float(p.hypothesis.split()[-1] in p.premise) for p in pairs]
        return [NLIScores(entailment=h, neutral=1 - h, contradiction=0) for h in hits]


class Parrot:
    """A chat model that gives one reply."""

    name = "parrot"

    def __init__(self, reply: str) -> None:
        self._reply = reply
        self.prompts: list[str] = []

    def reply(self, prompts: Sequence[str]) -> list[str]:
        self.prompts += prompts
        return [self._reply] * len(prompts)


# --- metrics, by hand --------------------------------------------------------------------


def test_f1_by_category_and_micro_f1() -> None:
    gold, said = [S, S, P, C, I, I], [S, P, P, C, S, None]
    expected = {S: 2 * 1 / (2 + 2), P: 2 * 1 / (1 + 2), C: 1.0, I: 0.0}
    assert f1_by_category(gold, said) == pytest.approx(expected)
    assert micro_f1(gold, said) == pytest.approx(2 * 3 / (6 + 5))
    assert confusion(gold, said)[I] == {S: 1, P: 0, C: 0, I: 0, "unreadable": 1}


def test_the_fine_grained_measure_compares_with_the_known_share(unseen: list[CAQARow]) -> None:
    rows = [row for row in unseen if row.category is P][:20]
    known = [fact.supported for row in rows for fact in row.sub_facts]
    perfect = fine_grained(rows, [[fact.supported for fact in row.sub_facts] for row in rows])
    assert perfect.error_rate == 0
    assert perfect.accuracy == 1
    credulous = fine_grained(rows, [[True] * len(row.sub_facts) for row in rows])
    assert credulous.factscore == 1
    assert credulous.error_rate == pytest.approx(1 - sum(known) / len(known))
    with pytest.raises(InputError, match="partially supportive"):
        fine_grained([row for row in unseen if row.category is S], [[True]])


# --- prompts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "category"),
    [
        ("Supportive", S),
        (" The relationship is: Insufficient, since ...", P),
        ("Partially supportive.", P),
        ("missing information", P),
        ("contradicts itself", C),
        ("Irrelevant (not supportive)", I),
        ("It is not supportive; it is Contradictory", C),
        ("Extrapolatory", I),
        ("Attributable", S),
        ("3", C),
        ("Well.", None),
        ("It contradicts nothing. So the relationship category is **Supportive**.", S),
        ("1. It may support it.\n**Relationship Category: Irrelevant**", I),
        ("The relationship category is:\n**Insufficient** (it is not contradictory)", P),
        ("Relationship category: Supportive? No, the relationship category is Irrelevant.", I),
    ],
)
def test_the_category_is_read_from_free_text(reply: str, category: Category | None) -> None:
    assert read_category(reply) is category


# --- evaluators --------------------------------------------------------------------------


def test_any_judge_is_an_evaluator(unseen: list[CAQARow]) -> None:
    found = evaluate(JudgeEvaluator(ContainmentJudge()), unseen)
    assert found.n == len(unseen)
    right = sum(found.confusion[c][c] for c in Category)
    assert found.overall == pytest.approx(right / len(unseen))
    assert found.category[P] == 0


def test_autois_predicts_supportive_only() -> None:
    evaluator = AutoISEvaluator(ContainmentJudge())
    assert evaluator.categories == (S,)
    items = [AttributionItem("Where?", "in Rome", ("He lives in Rome",))]
    assert evaluator.categorise(items) == [S]
    assert evaluator.supports([("He lives in Bern", ("He lives in Rome",))]) == [False]


def test_chat_models_get_the_papers_prompts(unseen: list[CAQARow]) -> None:
    chat = Parrot("Insufficient")
    evaluator = ChatEvaluator(chat, shots=demonstrations(unseen))
    assert evaluator.categorise([item_of(unseen[0])]) == [P]
    assert "There are four possible types of relationships" in chat.prompts[0]
    assert ChatEvaluator(Parrot("True"), form=Form.SHORT).supports([("x", ("y",))]) == [True]
    assert P not in ChatEvaluator(chat, form=Form.ATTRSCORE).categories
    said = ChatEvaluator(Parrot("?")).categorise([item_of(row) for row in unseen[:2]])
    assert report(unseen[:2], said).unreadable == 2


def test_transfer_maps_categories_to_the_labels_of_a_set(tmp_path: Path) -> None:
    folder = tmp_path / "attribution"
    folder.mkdir()
    import gzip

    rows = [
        {"claim": "It is in Rome", "evidence": ["Made in Rome"], "label": "supported"},
        {"claim": "It is in Bern", "evidence": ["Made in Rome"], "label": "not_supported"},
        {"claim": "It is in Rome", "evidence": ["Rome"], "label": "partially_supported"},
    ]
    with gzip.open(folder / "wice_claim_dev.jsonl.gz", "wt") as file:
        file.write("\n".join(map(json.dumps, rows)))
    found = transfer(JudgeEvaluator(ContainmentJudge()), "wice_claim_dev", tmp_path)
    expected = {"supported": 2 / 3, "partially_supported": 0.0, "not_supported": 1.0}
    assert found.f1 == pytest.approx(expected)
    assert found.macro_f1 == pytest.approx((2 / 3 + 1) / 3)


# --- tables, page, commands --------------------------------------------------------------


def test_build_run_and_page_by_command(train: list[CAQARow], tmp_path: Path) -> None:
    register("containment", lambda model=None, **options: ContainmentJudge())
    runner = CliRunner()
    test, html = tmp_path / "test.jsonl", tmp_path / "rows.html"
    built = runner.invoke(app, ["build", "-n", "200", "--split", "test", "-o", str(test)])
    assert built.exit_code == 0, built.output
    assert "200 rows" in built.stderr
    arguments = ["run", "--judge", "containment", "--judge", "autois:containment@50"]
    arguments += ["--test", str(test), "--output", str(tmp_path / "out")]
    shown = tmp_path / "train.jsonl"
    shown.write_text("".join(row.model_dump_json() + "\n" for row in train[:500]))
    arguments += ["--train", str(shown), "--controls"]
    outcome = runner.invoke(app, [*arguments, "--json"])
    assert outcome.exit_code == 0, outcome.output
    result = json.loads(outcome.stdout)
    assert set(result["category"]) == set(Category)
    assert result["n"] == 200
    assert 0 < result["overall"] < 1
    assert {"evidence_only", "answer_only", "lexical_overlap"} < set(result["controls"])
    assert result["training"] == str(shown)
    table = (tmp_path / "out/report.md").read_text()
    assert "| **containment** |" in table
    assert f"Trained on 500 rows of {shown}, measured on 200" in table
    assert "paper, fine-tuning: Vicuna (13B)" in table
    assert runner.invoke(app, ["page", "-i", str(test), "-o", str(html)]).exit_code == 0
    assert html.read_text().count("<article") == 200
    assert re.search(r"<small>test-0-\d+</small>", html.read_text())


def test_judges_that_are_done_are_not_asked_again(unseen: list[CAQARow], tmp_path: Path) -> None:
    register("containment", lambda model=None, **options: ContainmentJudge())
    file, names = tmp_path / "judges.jsonl", ["containment", "autois:containment@20"]
    rows = {"test": unseen[:40]}
    first = run(names, rows, kept=KeptRuns(file, resume=False))
    with file.open("a") as cut:
        cut.write('{"key": "x')
    register("containment", lambda model=None, **options: None)
    assert run(names, rows, kept=KeptRuns(file, resume=True)) == first
    for kept, other in ((KeptRuns(file, resume=True), unseen[:30]), (None, unseen[:40])):
        with pytest.raises(ConfigError):  # other rows, or nothing kept: the judge is made
            run(names, {"test": other}, kept=kept)
    KeptRuns(file, resume=False)
    assert not file.exists()
    assert file.with_name("judges.jsonl.old").exists()


@pytest.mark.parametrize(
    ("name", "label", "categories"),
    [
        ("chat-zero:openai:m", "m zero-shot (gpt)", 4),
        ("short-zero:openai:m", "m zero-shot (short)", 4),
        ("short-few:openai:m", "m 1-shot (short)", 4),
        ("chat-2:openai:m", "m 2-shot (gpt)", 4),  # Table 14
        ("attrscore:openai:m", "m zero-shot (attrscore)", 3),
        ("attrscore-3:openai:m", "m 3-shot (attrscore)", 3),
    ],
)
def test_every_form_of_table_12_and_number_of_shots_has_a_name(
    name: str, label: str, categories: int, unseen: list[CAQARow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    evaluator = create_evaluator(name, shots=unseen)
    assert evaluator.name == label
    assert len(evaluator.categories) == categories
