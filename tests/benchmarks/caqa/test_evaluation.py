import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from benchmarks.caqa.cli import app
from benchmarks.caqa.evaluators import (
    AutoISEvaluator,
    ChatEvaluator,
    JudgeEvaluator,
    create_evaluator,
    item_of,
)
from benchmarks.caqa.metrics import (
    agreement,
    confusion,
    f1_by_category,
    fine_grained,
    micro_f1,
    pearson,
    report,
)
from benchmarks.caqa.page import render_page
from benchmarks.caqa.prompts import (
    Form,
    category_prompt,
    demonstrations,
    read_category,
    read_truth,
)
from benchmarks.caqa.rows import CAQARow
from benchmarks.caqa.run import KeptRuns, evaluate, read_labels, run, thinned
from benchmarks.caqa.tables import paper_tables
from benchmarks.caqa.transfer import transfer
from guardrail.core.errors import ConfigError, InputError
from guardrail.core.types import Category, Judgement, NLIScores
from judges.base import AttributionItem, Pair
from judges.registry import register

S, P, C, I = Category  # noqa: E741 - the paper's letters


class ContainmentJudge:
    """A whole small judge: supportive where the answer's last word stands in the evidence."""

    name = "containment"

    def warm_up(self) -> None:
        return None

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
    assert f1_by_category(gold, said) == {
        S: pytest.approx(2 * 1 / (2 + 2)),
        P: pytest.approx(2 * 1 / (1 + 2)),
        C: 1.0,
        I: 0.0,
    }
    assert micro_f1(gold, said) == pytest.approx(2 * 3 / (6 + 5))
    assert confusion(gold, said)[I] == {S: 1, P: 0, C: 0, I: 0, "unreadable": 1}


def test_agreement_and_correlation() -> None:
    assert agreement([S, S, C, I], [S, S, C, C]).micro_f1 == 0.75
    assert agreement([S, S, C, I], [S, S, C, C]).kappa == pytest.approx((0.75 - 0.375) / 0.625)
    assert agreement([S, S], [S, S]).kappa is None
    assert pearson([0.1, 0.2, 0.3], [0.2, 0.4, 0.6]) == pytest.approx(1.0)
    assert pearson([1, 1], [0, 1]) is None


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


def test_lengths_must_agree() -> None:
    with pytest.raises(InputError, match="one for each"):
        micro_f1([S], [])


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
    ],
)
def test_the_category_is_read_from_free_text(reply: str, category: Category | None) -> None:
    assert read_category(reply) is category


@given(st.text())
def test_reading_a_reply_never_fails(reply: str) -> None:
    assert read_category(reply) in (None, *Category)
    assert read_truth(reply) in (None, True, False)


def test_few_shot_prompts_show_one_row_of_each_category(unseen: list[CAQARow]) -> None:
    shots = demonstrations(unseen)
    assert [row.category for row in shots] == list(Category)
    prompt = category_prompt(item_of(unseen[-1]), Form.GPT, shots)
    assert prompt.count("Question: ") == 5
    assert "Relationship Category: Insufficient" in prompt
    assert prompt.endswith("Relationship Category:")
    attrscore = category_prompt(item_of(unseen[-1]), Form.ATTRSCORE)
    assert "Options: Attributable, Extrapolatory or Contradictory." in attrscore


# --- evaluators --------------------------------------------------------------------------


def test_any_judge_is_an_evaluator(unseen: list[CAQARow]) -> None:
    found = evaluate(JudgeEvaluator(ContainmentJudge()), unseen)
    assert found.n == len(unseen)
    assert found.overall == pytest.approx(
        sum(found.confusion[c][c] for c in Category) / len(unseen)
    )
    assert found.category[P] == 0


def test_autois_tells_supportive_only() -> None:
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
    assert report(unseen[:2], ChatEvaluator(Parrot("?")).categorise(
        [item_of(row) for row in unseen[:2]])).unreadable == 2  # fmt: skip


def test_chat_models_read_the_start_of_long_evidence() -> None:
    shown: list[str] = []

    class Chat:
        name = "chat"

        def reply(self, prompts: Sequence[str]) -> list[str]:
            shown.extend(prompts)
            return ["Supportive"] * len(prompts)

    evidence = ("a" * 3_000, "b" * 3_000, "c")
    assert ChatEvaluator(Chat()).categorise([AttributionItem("q", "x", evidence)]) == [S]
    assert shown[0].count("b" * 1_000) == 1
    assert "b" * 1_001 not in shown[0]


def test_a_sample_is_spread_over_all_rows(unseen: list[CAQARow]) -> None:
    assert thinned(unseen, 10) == unseen[:: len(unseen) // 10][:10]
    assert thinned(unseen, None) == unseen


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
    assert found.f1 == {
        "supported": pytest.approx(2 / 3),
        "partially_supported": 0.0,
        "not_supported": 1.0,
    }
    assert found.macro_f1 == pytest.approx((2 / 3 + 1) / 3)


# --- tables, page, commands --------------------------------------------------------------


def test_the_papers_numbers_are_at_hand() -> None:
    best = paper_tables()["table_6"][23]
    assert best["evaluator"] == "Vicuna (13B)"
    assert best["overall"] == 0.933
    assert best["complexity"]["concatenation"] == 0.847


def test_the_page_escapes_what_it_shows(unseen: list[CAQARow]) -> None:
    row = unseen[0].model_copy(update={"question": "<script>?"})
    page = render_page([row])
    assert "<script>" not in page
    assert "&lt;script&gt;?" in page


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
    told = runner.invoke(app, [*arguments, "--json"])
    assert told.exit_code == 0, told.output
    result = json.loads(told.stdout)
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


def test_an_interrupted_run_tells_what_is_kept_and_goes_on(
    unseen: list[CAQARow], tmp_path: Path
) -> None:
    class Interrupted(ContainmentJudge):
        def attribute(self, items: Sequence[AttributionItem]) -> list[Judgement]:
            raise KeyboardInterrupt

    register("containment", lambda model=None, **options: ContainmentJudge())
    register("interrupted", lambda model=None, **options: Interrupted())
    test, out = tmp_path / "test.jsonl", tmp_path / "out"
    test.write_text("".join(row.model_dump_json() + "\n" for row in unseen[:40]))
    arguments = ["run", "--judge", "containment", "--judge", "interrupted", "-i", str(test)]
    stopped = CliRunner().invoke(app, [*arguments, "-o", str(out)])
    assert stopped.exit_code == 130
    assert stopped.stderr.startswith(f"stopped; 1 of 2 judges are kept in {out}: ")
    assert "--resume" in stopped.stderr
    lost = CliRunner().invoke(app, arguments)
    assert lost.exit_code == 130
    assert "--output" in lost.stderr
    register("interrupted", lambda model=None, **options: ContainmentJudge())
    register("containment", lambda model=None, **options: None)  # asked again, it would fail
    assert CliRunner().invoke(app, [*arguments, "-o", str(out), "--resume"]).exit_code == 0


def test_training_rows_are_not_built_from_a_graph_that_nobody_named(
    unseen: list[CAQARow], tmp_path: Path
) -> None:
    test = tmp_path / "test.jsonl"
    test.write_text("".join(row.model_dump_json() + "\n" for row in unseen[:40]))
    told = CliRunner().invoke(app, ["run", "-i", str(test), "--controls"])
    assert isinstance(told.exception, InputError)
    assert "--source" in str(told.exception)
    assert "--train" in str(told.exception)


def test_progress_is_told_to_the_end(unseen: list[CAQARow]) -> None:
    register("containment", lambda model=None, **options: ContainmentJudge())
    told: dict[str, list[tuple[int, int]]] = {}
    run(
        ["containment"],
        {"test": unseen[:300]},
        tell=lambda what, done, total: told.setdefault(what, []).append((done, total)),
    )
    assert told["containment, test"] == [(0, 300), (256, 300), (300, 300)]
    done, total = told["containment, sub-facts"][-1]
    assert done == total > 0


def test_chat_models_are_asked_piece_by_piece(unseen: list[CAQARow]) -> None:
    told: list[int] = []
    evaluate(
        ChatEvaluator(Parrot("Supportive")),
        unseen[:40],
        tell=lambda what, done, total: told.append(done),
    )
    assert told == [0, 16, 32, 40]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nli-onnx", "did you mean 'nli:onnx'"),
        ("chat-zero-local", "did you mean 'chat-zero:local'"),
        ("chat-local", "did you mean 'chat:local'"),
        ("zzz", "known: onnx, .*, chat-few"),
    ],
)
def test_a_wrong_evaluator_is_told_what_to_write(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        create_evaluator(name)


def test_a_persons_labels_are_compared_with_the_construction(
    unseen: list[CAQARow], tmp_path: Path
) -> None:
    register("containment", lambda model=None, **options: ContainmentJudge())
    file = tmp_path / "labels.jsonl"
    lines = [{"id": row.id, "category": row.category} for row in unseen[:7]]
    lines.append({"id": unseen[7].id, "category": "irrelevant"})
    file.write_text("\n".join(map(json.dumps, lines)))
    labels = read_labels(file)
    found = run(["containment", "autois:containment"], {"test": unseen}, labels=labels).human
    assert found is not None
    assert found.agreement.n == 8
    assert found.agreement.micro_f1 >= 7 / 8
    assert set(found.human) == {"containment", "autois:containment"}


def test_a_missing_file_says_how_to_make_it(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["run", "--test", str(tmp_path / "none.jsonl")])
    assert isinstance(result.exception, InputError)
    assert "guardrail bench caqa build" in str(result.exception)


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


def test_attrscore_judges_sub_facts_by_its_own_labels() -> None:
    class Attributable:
        name = "fixed"

        def reply(self, prompts: Sequence[str]) -> list[str]:
            assert all("True or False" not in prompt for prompt in prompts)
            return ["Attributable" if "London" in prompt else "Extrapolatory" for prompt in prompts]

    evaluator = ChatEvaluator(Attributable(), form=Form.ATTRSCORE)
    facts = [("Ada was born in London.", ("text",)), ("Ada was born in Rome.", ("text",))]
    assert evaluator.supports(facts) == [True, False]
