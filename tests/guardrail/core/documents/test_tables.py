"""Tables of documents as Markdown."""

import pytest

from guardrail.core.documents.markdown import Cell, has_head, markdown_table, own_head, spread


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["Bike", "Price"], ["Alba", "990 euros"]], True),
        ([["Alba", "990 euros"], ["Bora", "1,890 euros"]], False),
        ([["Alba", "990 euros"], ["Bora", "sold out"], ["Cima", "790 euros"]], False),
        ([["Bike", "2025"], ["Alba", "10"]], True),
        ([["Bike", "Colour"]], False),
    ],
)
def test_a_row_of_figures_is_no_head(rows: list[list[str]], expected: bool) -> None:
    assert has_head(rows) is expected


def test_a_row_of_words_above_figures_may_be_a_head() -> None:
    assert own_head([["Bike", "Weight"], ["Alba", "12 kg"]])
    assert not own_head([["Alba", "12 kg"], ["Bora", "13 kg"]])
    assert not own_head([["Alba", "red"], ["Bora", "blue"]])


def test_a_table_without_a_header_becomes_lines() -> None:
    rows = [["Alba", "", "a|b"], ["", "", ""], ["Bora"]]
    assert markdown_table(rows, None) == "Alba, a|b\nBora"
    assert markdown_table(rows, ["Bike", "x", "y"]) == (
        "| Bike | x | y |\n| --- | --- | --- |\n| Alba |  | a\\|b |\n| Bora |  |  |"
    )


def test_a_merged_cell_is_repeated_in_each_position() -> None:
    rows = [[Cell("a", rows=0), Cell("b", columns=2, rows=2)], [Cell("c")], [Cell("d", columns=3)]]
    assert [[cell.text for cell in row] for row in spread(rows)] == [
        ["a", "b", "b"], ["a", "b", "b", "c"], ["a", "d", "", ""],
    ]  # fmt: skip
