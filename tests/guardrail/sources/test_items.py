"""The items of evidence are the same in rows of check, rank, eval and bulk, and in labelled CSV."""

import json
from base64 import b64encode

import pyarrow as pa
import pytest
from pydantic import ValidationError

from guardrail import GuardrailConfig, InputError, Passage, Table, Triple
from guardrail.bulk.scorer import BulkScorer
from guardrail.core.fields import LONGEST
from guardrail.evaluation.rows import EvalRow
from guardrail.lines import CheckRow, EvidenceRow, RankRow, ScoreRow
from guardrail.sources import tables
from guardrail.sources.items import evidence_items

CSV = b"name,price_eur\nLathe 2,5200\n"
ROWS = [{"name": "Lathe 2", "price_eur": 5200}]
[CELL] = Table(ROWS, name="machines")
FILE = {"filename": "machines.csv", "file_data": b64encode(CSV).decode()}
ITEMS = [
    ({"table": {"name": "machines", "rows": ROWS}}, CELL),
    ({"file": FILE}, CELL),
    ({"text": "It is heavy.", "id": 7}, Passage("It is heavy.", id="7")),
    (["Lathe 2", "price", 5200], Triple("Lathe 2", "price", "5200")),
    (["Lathe 2", "new", True], Triple("Lathe 2", "new", "true")),
    ({"triple": ["Lathe 2", "new", False]}, Triple("Lathe 2", "new", "false")),
    ({"entity": "Lathe 2", "property": "price", "value": "5200"},
     Triple("Lathe 2", "price", "5200")),
    ({"entity": "manual.pdf", "property": "passage", "value": "It is heavy."},
     Passage("It is heavy.", id="manual.pdf")),
    (CELL.model_dump(mode="json"), CELL),
    ({"triple": ["Lathe 2", "price", "5200"]}, Triple("Lathe 2", "price", "5200")),
    ("It is heavy.", Passage("It is heavy.")),
]  # fmt: skip
KINDS = [CheckRow, RankRow, ScoreRow, EvalRow]
LONG = "x" * 5_000


def row_of(kind: type[EvidenceRow], **fields: object) -> EvidenceRow:
    return kind.model_validate({"answer": "A.", "answers": ["A."], **fields})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("item", "read"), ITEMS)
def test_an_item_means_the_same_in_every_row(
    kind: type[EvidenceRow], item: object, read: object
) -> None:
    assert row_of(kind, evidence=[item]).items == (read,)
    assert evidence_items([item]) == (read,)


@pytest.mark.parametrize("kind", KINDS)
def test_the_shorter_forms_and_a_text_alone(kind: type[EvidenceRow]) -> None:
    fact = ["Lathe 2", "price", "5200"]
    found = row_of(kind, evidence="Heavy.", triples=[fact], passages=["Loud.", "Heavy."]).items
    assert found == (Passage("Heavy."), Triple(*fact), Passage("Loud."))
    assert row_of(kind).items is None
    assert row_of(kind, evidence=[]).items == row_of(kind, passages=[]).items == ()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "item",
    [
        ["Falk", "vegan", True],
        ("Falk", "vegan", "true"),
        {"entity": "Falk", "property": "vegan", "value": "true"},
    ],
)
def test_a_triple_is_the_same_in_every_field(kind: type[EvidenceRow], item: object) -> None:
    assert row_of(kind, triples=[item]).items == (Triple("Falk", "vegan", "true"),)


@pytest.mark.parametrize("item", [["Falk", "vegan"], ["Falk", "vegan", None], {"entity": "Falk"}])
def test_what_is_no_triple_is_refused(item: object) -> None:
    with pytest.raises(ValidationError):
        row_of(EvidenceRow, triples=[item])


def test_the_evidence_of_a_reply_is_evidence_again() -> None:
    given = (Triple("Falk", "vegan", "true"), Passage("It is heavy.", id="a", title="A"), CELL)
    assert evidence_items([item.model_dump(mode="json") for item in given]) == given


@pytest.mark.parametrize("column", ["parquet", "json"])
def test_columns_of_bulk_hold_them_too(column: str) -> None:
    """Where Parquet has one type for all items of a column, what an item lacks is null there."""
    items = [{"text": None, "file": FILE}, {"text": "It is heavy.", "file": None}]
    row = {"id": "a", "answer": "The Lathe 2 costs 5200 euros.", "evidence": items}
    table = pa.Table.from_pylist([row if column == "parquet" else {"json": json.dumps(row)}])
    scorer = BulkScorer(task="check", config=GuardrailConfig(judge="none", graph="none"))
    [(id_, result, error)] = scorer.results(table)
    assert (id_, error) == ("a", None)
    assert result is not None
    held = json.loads(result)["evidence"]
    assert [item.get("value", item.get("text")) for item in held] == ["5200", "It is heavy."]


@pytest.mark.parametrize(
    "item",
    [
        {"file": {"filename": "a.csv", "file_data": f"§{LONG}"}},
        {LONG: 1},
        {"text": {"inner": LONG}},
        {"table": {"rows": ROWS, "subject": LONG}},
        {"table": {"columns": [LONG, LONG], "rows": []}},
        {"table": {"rows": [{LONG: 1}], "subject": "name"}},
        {"triple": [LONG]},
        {"file": {"filename": f"{LONG}.csv", "file_data": b64encode(b"a\n1,2\n").decode()}},
        {"file": {"filename": f"{LONG}.pdf", "file_data": "AAAA"}},
    ],
)
def test_no_error_prints_a_long_value(item: object) -> None:
    messages = []
    with pytest.raises(InputError) as at_once:
        evidence_items([item])
    messages.append(str(at_once.value))
    for kind in KINDS:
        with pytest.raises(ValidationError) as in_a_row:
            row_of(kind, evidence=[item])
        messages.append(str(in_a_row.value.errors()[0]["ctx"]["error"]))
    assert not any("x" * (LONGEST + 1) in text for text in messages)
    assert {text.partition("[")[0] for text in messages} == {"evidence"}


def file_of(name: str, content: str) -> dict[str, object]:
    return {"file": {"filename": name, "file_data": b64encode(content.encode()).decode()}}


HEAD = ",".join(f"c{number}" for number in range(5_000)) + "\n"
TEN = [{f"c{number}": number for number in range(10)}]


@pytest.mark.parametrize(
    "items",
    [
        [file_of("t.csv", "a,b\n" + "1,2\n" * 100_001)],
        [file_of("t.csv", HEAD + "1\n" * 41)],  # cells that are not written cost as much
        [file_of("t.jsonl", "{}\n" * 200_001)],
        [file_of("t.jsonl", '{"a": [' + "1," * 200_000 + "1]}\n")],
        [{"table": {"rows": TEN * 20_001}}],
        [{"table": {"columns": ["a"], "rows": [[1]] * 200_001}}],
        [{"table": {"rows": TEN * 11_000}}] * 2,
    ],
    ids=["csv", "short rows", "empty rows", "a list", "rows", "columns", "two tables"],
)
def test_tables_that_are_handed_over_have_a_bound(items: list[object]) -> None:
    with pytest.raises(InputError, match="more than 200,000"):
        evidence_items(items)


@pytest.mark.parametrize(
    "item", ["a", ["a", "b", "c"], {"text": "a"}, {"page_content": "a"}], ids=str
)
def test_items_of_every_kind_have_a_bound(item: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_CELLS", 10)
    assert len(evidence_items([item] * 10)) == 10
    items = iter([item] * 100)
    with pytest.raises(InputError, match="more than 10 texts, triples and cells"):
        evidence_items(items)
    assert len(list(items)) == 89  # reading stops there


def test_what_python_has_made_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_CELLS", 10)
    made = [Triple("a", "b", "c"), Passage("a"), Table(TEN)]
    assert len(evidence_items(made * 20)) == 20 * 12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "fields",
    [{"triples": [["a", "b", "c"]] * 200_001}, {"passages": ["a"] * 200_001}],
    ids=["triples", "passages"],
)
def test_the_shorter_forms_have_a_bound(kind: type[EvidenceRow], fields: object) -> None:
    with pytest.raises(ValidationError, match="at most 200000"):
        row_of(kind, **fields)


def test_all_forms_of_a_row_have_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_CELLS", 10)
    some = {"evidence": ["a"] * 4, "triples": [["a", "b", "c"]] * 3, "passages": ["b"] * 3}
    assert row_of(CheckRow, **some).items is not None
    with pytest.raises(ValidationError, match="more than 10 texts, triples and cells"):
        row_of(CheckRow, **some | {"passages": ["b"] * 4})
