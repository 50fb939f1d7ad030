"""Files of the settings as evidence, in place of the graph."""

from pathlib import Path

import pytest

from guardrail import ConfigError, Guardrail, GuardrailConfig, InputError, Passage, Triple
from guardrail.bulk.scorer import BulkScorer
from guardrail.commands.options import build_config
from guardrail.sources.items import evidence_of_files

MACHINES = "name,power_kw,price_eur\nDrill 7,1.5,900\nLathe 2,4,5200\n"
QUESTION = "What does the Lathe 2 cost?"
RIGHT = "The Lathe 2 costs 5,200 euros."
WRONG = "The Lathe 2 costs 4,200 euros."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "machines.csv").write_text(MACHINES, "utf-8")
    (tmp_path / "notes.md").write_text("# Returns\n\nA machine can be sent back.\n", "utf-8")
    (tmp_path / "guardrail.toml").write_text('evidence = ["machines.csv", "notes.md"]\n', "utf-8")
    return tmp_path


def settings(folder: Path) -> GuardrailConfig:
    return GuardrailConfig.from_toml(folder / "guardrail.toml", environ={})


def test_files_beside_the_settings_stand_in_place_of_the_graph(folder: Path) -> None:
    with Guardrail(settings(folder)) as guard:
        right, wrong = guard.check(QUESTION, RIGHT), guard.check(QUESTION, WRONG)
    categories = [right.sentences[0].category, wrong.sentences[0].category]
    assert categories == ["supportive", "contradictory"]
    assert right.evidence_from == ("files",)
    assert {type(item) for item in right.evidence} == {Triple, Passage}
    assert "graph" not in right.versions


def test_what_a_call_brings_stands_in_their_place(folder: Path) -> None:
    own = [Triple("Lathe 2", "price_eur", "4200")]
    with Guardrail(settings(folder)) as guard:
        answer = guard.check(QUESTION, WRONG, evidence=own)
        retrieved = guard.retrieve(QUESTION)
        of_the_graph = guard.retrieve("Who was Ada Lovelace?", graph=True)
    assert (answer.sentences[0].category, answer.evidence_from) == ("supportive", ("caller",))
    assert retrieved.source == "files"
    assert of_the_graph.source == "graph"
    assert of_the_graph.entities
    with Guardrail(settings(folder), retriever=lambda question: own) as guard:
        assert guard.check(QUESTION, WRONG).evidence_from == ("retriever",)


def test_a_retriever_that_fails_is_named_as_the_source() -> None:
    def fails(question: str) -> list[str]:
        raise OSError("the index is gone")

    with Guardrail(GuardrailConfig(judge="none"), retriever=fails) as guard:
        answer = guard.check(QUESTION, RIGHT)
    assert (answer.action, answer.evidence_from) == ("unverified", ("retriever",))


async def test_a_growing_answer_and_a_ranking_are_judged_by_them(folder: Path) -> None:
    with Guardrail(settings(folder)) as guard:
        session = guard.session(question=QUESTION)
        await session.aadd(f"{WRONG} ")
        answer = await session.afinish()
        best, worst = guard.rank(QUESTION, [WRONG, RIGHT])
    assert answer.sentences[0].category == "contradictory"
    assert (best.text, worst.text) == (RIGHT, WRONG)
    assert best.evidence_from == ("files",)


def test_files_are_read_once(folder: Path) -> None:
    with Guardrail(settings(folder)) as guard:
        guard.warm_up()
        (folder / "machines.csv").unlink()
        assert guard.check(QUESTION, RIGHT).sentences[0].category == "supportive"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("machine.csv", None),
        ("machines.csv", "name,price\n"),
        ("notes.md", ""),
        ("a.csv", "a\n1,2"),
    ],
)
def test_a_file_that_cannot_be_used_stops_the_start_and_is_named(
    folder: Path, name: str, text: str | None
) -> None:
    if text is not None:
        (folder / name).write_text(text, "utf-8")
    with (
        Guardrail(GuardrailConfig(evidence=(folder / name,), judge="none")) as guard,
        pytest.raises(ConfigError, match=f"evidence: .*{name}"),
    ):
        guard.warm_up()


def test_the_environment_and_the_option_name_files_where_one_stands(folder: Path) -> None:
    file = folder / "guardrail.toml"
    named = {"GUARDRAIL_EVIDENCE": "a.csv, b.pdf"}
    found = GuardrailConfig.from_toml(file, environ=named).evidence
    assert found == (Path("a.csv"), Path("b.pdf"))
    listed = {"GUARDRAIL_EVIDENCE": '["a, b.csv"]'}
    assert GuardrailConfig.from_env(listed).evidence == (Path("a, b.csv"),)
    assert build_config(file, evidence=[Path("c.md")]).evidence == (Path("c.md"),)
    assert settings(folder).evidence == (folder / "machines.csv", folder / "notes.md")


def test_what_is_no_list_of_files_is_refused(folder: Path) -> None:
    (folder / "guardrail.toml").write_text("evidence = 3\n", "utf-8")
    with pytest.raises(ConfigError, match="evidence: Input should be a list"):
        settings(folder)


def test_another_file_makes_another_result_of_bulk(folder: Path) -> None:
    scorer = BulkScorer(task="check", config=settings(folder))
    before = scorer.state()
    assert scorer.state() == before
    (folder / "machines.csv").write_text(MACHINES + "Saw 1,2,700\n", "utf-8")
    assert scorer.state() != before


@pytest.fixture
def orders(folder: Path) -> Path:
    (folder / "customers.csv").write_text(
        "id,name,city\n7,Ann Berg,Lund\n8,Bo Dahl,Oslo\n", "utf-8"
    )
    (folder / "orders.csv").write_text("number,customer\nA-1,8\nA-2,7\nA-3,9\n", "utf-8")
    return folder


def linked(folder: Path, links: str) -> Guardrail:
    (folder / "guardrail.toml").write_text(
        f'evidence = ["orders.csv", "customers.csv"]\nevidence_links = {links}\n', "utf-8"
    )
    return Guardrail(settings(folder))


def test_a_linked_column_is_read_as_the_name_of_the_row(orders: Path) -> None:
    with linked(orders, '{customer = "customers"}') as guard:
        found = guard.check("Who ordered?", "The customer of A-1 is Bo Dahl.")
        wrong = guard.check("Who ordered?", "The customer of A-1 is Ann Berg.")
    cells = [item for item in found.evidence if isinstance(item, Triple)]
    customers = [item.value for item in cells if item.property == "customer"]
    assert customers == ["Bo Dahl", "Ann Berg", "9"]  # nobody has the id 9
    assert found.sentences[0].category == "supportive"
    assert wrong.sentences[0].category != "supportive"


def read(folder: Path, links: dict[str, str], **tables: str) -> set[tuple[str, str, str]]:
    """The facts of some linked tables."""
    files = [folder / f"{name}.csv" for name in tables]
    for file, text in zip(files, tables.values(), strict=True):
        file.write_text(text, "utf-8")
    found = evidence_of_files(files, links) or ()
    return {(item.subject, item.property, item.value) for item in found if isinstance(item, Triple)}


CUSTOMERS = "id,name,city,desk\n7,Ann Berg,Lund,8\n8,Bo Dahl,Oslo,7\n"
PRODUCTS = "sku,name,maker\np-1,Fjell 3,m1\np-2,Tarn City,m2\n"
MAKERS = "code,name,country\nm1,Fjell Works,Norway\nm2,Tarn Cycles,Sweden\n"


def test_tables_are_linked_in_a_chain(tmp_path: Path) -> None:
    """A linked column is not what the rows of its own table are about."""
    found = read(
        tmp_path,
        {"customer": "customers", "product": "products", "maker": "makers"},
        orders="number,customer,product\nA-1,8,p-2\nA-2,7,p-1\nA-3,7,p-2\n",
        customers=CUSTOMERS,
        products=PRODUCTS,
        makers=MAKERS,
    )
    assert {
        ("A-1", "customer", "Bo Dahl"), ("A-1", "product", "Tarn City"),
        ("A-2", "customer", "Ann Berg"), ("A-2", "product", "Fjell 3"),
        ("A-3", "product", "Tarn City"), ("Tarn City", "maker", "Tarn Cycles"),
    } <= found  # fmt: skip


def test_a_column_may_refer_to_its_own_table(tmp_path: Path) -> None:
    staff = "id,name,manager\n1,Ann Berg,\n2,Bo Dahl,1\n3,Cora Eide,2\n"
    found = read(tmp_path, {"manager": "staff"}, staff=staff)
    managers = {(name, manager) for name, property_, manager in found if property_ == "manager"}
    assert managers == {("Bo Dahl", "Ann Berg"), ("Cora Eide", "Bo Dahl")}


@pytest.mark.parametrize(
    ("orders", "customers"),
    [
        # A column of numbers with gaps, as data frames export it
        ("number,customer\nA-1,8.0\nA-2,\n", CUSTOMERS),
        # The numbers of the ids are also those of another column, before them and with repeats.
        ("number,customer\nA-1,8\nA-2,7\n", "group,name,id\n8,Cora Eide,9\n8,Bo Dahl,8\n7,A,7\n"),
        # The id column has the same name in both tables.
        ("number,customer\nA-1,8\n", "customer,name,desk\n7,Ann Berg,8\n8,Bo Dahl,7\n"),
        # The column holds the names already.
        ("number,customer\nA-1,Bo Dahl\n", "name,partner\nAnn Berg,Bo Dahl\nBo Dahl,Ann Berg\n"),
    ],
)
def test_the_id_column_is_found_by_its_values(tmp_path: Path, orders: str, customers: str) -> None:
    found = read(tmp_path, {"customer": "customers"}, orders=orders, customers=customers)
    assert ("A-1", "customer", "Bo Dahl") in found


def test_a_link_that_joins_no_row_is_refused(tmp_path: Path) -> None:
    orders = "number,customer\nA-1,c-8\n"
    with pytest.raises(InputError, match="'customer' joins nothing"):
        read(tmp_path, {"customer": "customers"}, orders=orders, customers=CUSTOMERS)


@pytest.mark.parametrize("links", ['{customer = "people"}', '{client = "customers"}'])
def test_a_link_that_leads_nowhere_is_refused(orders: Path, links: str) -> None:
    with linked(orders, links) as guard, pytest.raises(ConfigError):
        guard.check("Who ordered?", "Bo Dahl did.")


def test_an_empty_question_is_no_problem_of_own_evidence(folder: Path) -> None:
    with Guardrail(settings(folder)) as guard:
        assert guard.check("", RIGHT).errors == ()
    with Guardrail() as guard:
        parts = [problem.part for problem in guard.check("", RIGHT).errors]
    assert parts.count("question") == 1
