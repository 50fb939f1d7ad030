"""Pages of HTML in the shapes that they have on the web: nothing is lost, nothing made up."""

import pytest

from guardrail import Passage
from guardrail.core.documents.markup import html_pages
from tests.growth import is_linear


def texts(page: str) -> list[str]:
    return [part for part in html_pages(page)[0].replace("  \n", "\n").split("\n\n") if part]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (
            ("<header>Site</header><article><header><h1>Alba</h1><p>Costs 990 euros.</p></header>"
            "<p>Ten gears.</p><footer>Weighs 12 kg.</footer></article><footer>(c)</footer>"),
            ["# Alba", "Costs 990 euros.", "Ten gears.", "Weighs 12 kg."],
        ),
        (("<div>Login</div><div><article><h2>A</h2><p>One.</p></article><p>Between.</p>"
         "<article><p>Two.</p></article></div>"), ["## A", "One.", "Between.", "Two."]),
        (("<form><input type=hidden value=x><h1>Prices</h1><p>990 euros.</p><select><option>S"
         "</select><button>Buy</button><h2><button>Returns</button></h2></form>"),
         ["# Prices", "990 euros.", "## Returns"]),
        ("<main hidden><p>Old.</p></main><main><p>New.</p></main>", ["New."]),
        ("<main></main><p>All is here.</p>", ["All is here."]),
        ("<div role=navigation>Home</div><div role=main><p>Text.</p></div><p>Ads</p>", ["Text."]),
        ("<main><p>Text.</p><aside>At most 5 mg.</aside></main>", ["Text.", "At most 5 mg."]),
        ("<aside>Ads</aside><section><header><h2>A</h2></header><p>B.</p></section>",
         ["## A", "B."]),
        ("<header><h1>Alba</h1><p>Menu</p></header><p>Weighs 12 kg.</p>",
         ["# Alba", "Weighs 12 kg."]),
        ("<p>Costs <del>1,190</del> <s>1,100</s> 990 euros.</p>", ["Costs   990 euros."]),
        ("<p>10<sup>6</sup> m<sup>2</sup>, 990<sup>[1]</sup>, 2<sup>1</sup>/<sub>2</sub></p>",
         ["10⁶ m², 990¹, 2 1/2"]),
        ("<address>Main St 5</address><time>1 Jan</time>", ["Main St 5", "1 Jan"]),
    ],
    ids=["article", "articles", "form", "hidden main", "empty main", "roles", "aside", "section",
         "title", "struck out", "raised", "blocks"],
)  # fmt: skip
def test_the_text_of_a_page_and_not_its_frame(page: str, expected: list[str]) -> None:
    assert texts(f"<html><head><title>T</title></head><body>{page}</body></html>") == expected


HEAD = "| Bike | Price |\n| --- | --- |\n"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("<tr><th>Bike<th>Size<th>Price<tr><td rowspan=2>Alba<td>S<td>890<tr><td>L<td>990",
         "| Bike | Size | Price |\n| --- | --- | --- |\n| Alba | S | 890 |\n| Alba | L | 990 |"),
        ("<tr><th>Bike<th>Size<tr><td rowspan=0>Alba<td>S<tr><td>L<tr><td>M",
         "| Bike | Size |\n| --- | --- |\n| Alba | S |\n| Alba | L |\n| Alba | M |"),
        (("<thead><tr><th rowspan=2>Bike<th colspan=2>Price</tr><tr><th>S<th>L</thead>"
         "<tr><td>Alba<td>890<td>990<tr><td colspan=3>Sold out"),
         ("| Bike | Price S | Price L |\n| --- | --- | --- |\n| Alba | 890 | 990 |\n"
         "| Sold out | | |")),
        (("<thead><tr><th>Bike<th>Price</thead><tbody><tr><td>Alba<td>990</tbody><tfoot><tr>"
         "<td>Sum<td>990</tfoot>"), f"{HEAD}| Alba | 990 |\n| Sum | 990 |"),
        ("<tr><th>Price<td>990 euros<tr><th>Weight<td>12 kg", "Price: 990 euros\nWeight: 12 kg"),
        ("<tr><td>Alba<td>990 euros<tr><td>Bora<td>890 euros", "Alba, 990 euros\nBora, 890 euros"),
        ("<tr><td>Alba<td>990 euros<tr><td>Bora<td>sold out<tr><td>Cima<td>790 euros",
         "Alba, 990 euros\nBora, sold out\nCima, 790 euros"),
        ("<tr><td>Bike<td>Price<tr><td>Alba<td>990", f"{HEAD}| Alba | 990 |"),
        ("<tr><td>Bike<td>2024<tr><td>Alba<td>990",
         "| Bike | 2024 |\n| --- | --- |\n| Alba | 990 |"),
        ("<tr><td><table><tr><th>Bike<th>Price<tr><td>Alba<td>990</table>",
         f"{HEAD}| Alba | 990 |"),
        (("<tr><th>Bike<th>Price<tr><td><ul><li>A<li>B</ul><td><p>S|M</p><p>L</p><tr><td>"
         "<img alt=Alba><td>1<br>2"), rf"{HEAD}| A, B | S\|M L |" + "\n| Alba | 1 2 |"),
    ],
    ids=["over rows", "over all rows", "two heads", "foot", "heads of rows", "no head",
         "no head above a text", "a head that is not marked",
         "years", "layout", "cells"],
)  # fmt: skip
def test_each_cell_of_a_table_stands_below_its_head(table: str, expected: str) -> None:
    """Ends that HTML lets be left out are left out here."""
    found = html_pages(f"<main><table>{table}</table></main>")[0].strip()
    assert found.replace("|  |", "| |").replace("|  |", "| |") == expected


def test_a_page_within_one_form_is_read() -> None:
    page = b"<body><form id=aspnetForm><h1>Prices</h1><p>The Alba costs 990 euros.</p></form>"
    assert [item.text for item in Passage.from_bytes(page, "a.html")] == [
        "# Prices\n\nThe Alba costs 990 euros."
    ]


@pytest.mark.parametrize(
    ("around", "row"),
    [("table", "<tr><td>Alba<td>990"), ("ul", "<li>Alba"), ("dl", "<dt>Alba<dd>990 euros")],
)
def test_rows_without_end_tags_take_linear_time(around: str, row: str) -> None:
    """Each one stood in the one before, and was taken out of it again."""
    assert is_linear(html_pages, lambda size: f"<{around}>{row * size}</{around}>", 200)
