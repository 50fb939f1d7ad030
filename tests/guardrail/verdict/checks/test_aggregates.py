"""What is computed of a table's rows: each sentence, and what the check says of it."""

import pytest

from guardrail import Guardrail, GuardrailConfig, Table
from guardrail.core.types import Finding, TableRow

BIKES = Table(
    [
        {"name": "Fjell 3", "category": "city", "price_eur": 2490, "range_km": 110,
         "launched": "2024-03-01", "in_stock": True},
        {"name": "Fjell Cargo", "category": "cargo", "price_eur": 3890, "range_km": 90,
         "launched": "2023-05-02", "in_stock": False},
        {"name": "Tarn City", "category": "city", "price_eur": 1790, "range_km": 70,
         "launched": "2025-01-10", "in_stock": True},
        {"name": "Tarn Trail", "category": "trail", "price_eur": 2990, "range_km": 95,
         "launched": "2024-09-10", "in_stock": True},
    ],
    name="bikes",
)  # fmt: skip
ORDERS = Table(
    [
        {"customer": "Ann Berg", "amount_eur": 120.5, "place": "Oslo"},
        {"customer": "Ann Berg", "amount_eur": 79.5, "place": "Oslo"},
        {"customer": "Bo Dahl", "amount_eur": 300, "place": "Bergen"},
    ],
    subject="customer",
    name="orders",
)

MACHINES = Table(
    [
        {"name": "Alba 2", "price_eur": 649, "weight_kg": 4.1, "plant": "Sondheim"},
        {"name": "Alba 3", "price_eur": 999, "weight_kg": 5.1, "plant": "Sondheim"},
        {"name": "Corvo Duo", "price_eur": 1290, "weight_kg": 9, "plant": "Marl"},
        {"name": "Corvo Pro", "price_eur": 1890, "weight_kg": 12, "plant": "Marl"},
        {"name": "Petra Travel", "price_eur": 249, "weight_kg": 1.1, "plant": "Lund"},
    ],
    name="machines",
)
PLANTS = Table(
    [
        {"name": "Sondheim", "employees": 84},
        {"name": "Marl", "employees": 62},
        {"name": "Lund", "employees": 48},
    ],
    name="plants",
)


@pytest.fixture(scope="module")
def guard():
    with Guardrail(GuardrailConfig(judge="none", graph="none")) as made:
        yield made


def computed(guard: Guardrail, table: Table, sentence: str, question: str = "") -> list[Finding]:
    (told,) = guard.check(question, sentence, evidence=table).sentences
    return [finding for finding in told.findings if finding.check == "aggregates"]


@pytest.mark.parametrize(
    ("sentence", "effect", "words"),
    [
        ("There are four bikes.", "carries", "four"),
        ("We have five bikes.", "contradicts", "five"),
        ("There are 2 city bikes.", "carries", "2"),
        ("There are three city bikes.", "contradicts", "three"),
        ("Three bikes are in stock.", "carries", "Three"),
        ("The number of bikes is 5.", "contradicts", "5"),
        ("There are three categories.", "carries", "three"),
        ("Three bikes cost less than 3,000 euros.", "carries", "Three"),
        ("Two bikes cost less than 3,000 euros.", "contradicts", "Two"),
        ("Two bikes were launched in 2024.", "carries", "Two"),
        ("All bikes together cost 11,160 euros.", "carries", "11,160 euros"),
        ("The average price is 2,790 euros.", "carries", "2,790 euros"),
        ("The average price is about 2,800 euros.", "carries", "2,800 euros"),
        ("The average price of city bikes is 2,140 euros.", "carries", "2,140 euros"),
        ("The average price is 3,000 euros.", "contradicts", "3,000 euros"),
        ("The highest price is 4,890 euros.", "contradicts", "4,890 euros"),
        ("The longest range is 110 km.", "carries", "110 km"),
        ("The cheapest city bike costs 1,790 euros.", "carries", "1,790 euros"),
        ("The Tarn City is the cheapest bike.", "carries", "Tarn City is the cheapest"),
        ("The Fjell 3 is the cheapest bike.", "contradicts", "Fjell 3 is the cheapest"),
        ("The most expensive bike is the Fjell Cargo at 3,890 euros.", "carries",
         "most expensive bike is the Fjell Cargo"),
        ("The most expensive bike is the Fjell Cargo at 3,990 euros.", "contradicts",
         "3,990 euros"),
        ("The most recent one is the Tarn Trail.", "contradicts",
         "most recent one is the Tarn Trail"),
    ],
)  # fmt: skip
def test_what_is_told_of_rows_is_computed(guard, sentence, effect, words):
    (found,) = computed(guard, BIKES, sentence)
    assert (found.effect.value, sentence[found.start : found.end]) == (effect, words)


@pytest.mark.parametrize(
    "sentence",
    [
        "The Fjell 3 is the second cheapest bike.",
        "The cheapest bike with a rack is the Fjell 3.",
        "There are two bikes with a rack.",
        "No bike is cheaper than the Tarn City, the cheapest one.",
        "The highest price of the Fjell 3 is 2,490 euros.",
        "At least two bikes have lights.",
        "The Fjell 3 costs 2,490 euros.",
        "Either the Fjell 3 or the Tarn City is the cheapest bike.",
        "The average price in May 2021 was 1,000 euros.",
    ],
)
def test_what_the_table_does_not_tell_is_left_alone(guard, sentence):
    assert computed(guard, BIKES, sentence) == []


def test_a_name_narrows_the_rows(guard):
    (found,) = computed(guard, ORDERS, "Ann Berg has two orders.")
    assert found.effect.value == "carries"
    (found,) = computed(guard, ORDERS, "The orders of Ann Berg total 200 euros.")
    assert found.effect.value == "carries"
    (found,) = computed(guard, ORDERS, "The orders from Oslo total 500 euros.")
    assert found.because == "sum of amount_eur in 2 of 3 rows of orders: 200"


def test_what_the_question_narrows_is_no_contradiction(guard):
    question = "How many city bikes are there?"
    (found,) = computed(guard, BIKES, "We have two bikes.", question)
    assert found.effect.value == "carries"
    assert computed(guard, BIKES, "We have three bikes.", "How many with a rack?") == []
    (found,) = computed(guard, BIKES, "We have three bikes.", question)
    assert found.because == "count in 2 of 4 rows of bikes: 2"


@pytest.mark.parametrize(
    ("question", "effect"),
    [
        ("Which city bike is the most expensive?", "carries"),
        ("Which bike is the most expensive?", "contradicts"),
        ("Is the Fjell 3 the most expensive bike?", "contradicts"),
        ("Which of the Fjell 3 and the Tarn City is the most expensive?", "carries"),
        ("Which trail bike is the most expensive?", "contradicts"),
    ],
)
def test_ends_are_those_of_what_is_asked_for(guard, question, effect):
    (found,) = computed(guard, BIKES, "The Fjell 3 is the most expensive.", question)
    assert found.effect.value == effect


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("We offer two Alba models.", ["two +"]),
        ("We offer three Alba models.", ["three -"]),
        ("The two Alba machines cost 1,648 euros in total.", ["two +", "1,648 euros +"]),
        ("The two Alba machines cost 1,748 euros in total.", ["two +", "1,748 euros -"]),
        ("The Corvo machines cost 3,180 euros in total.", ["3,180 euros +"]),
        ("The Corvo machines cost 3,080 euros in total.", ["3,080 euros -"]),
        ("Our two Corvo machines weigh 21 kg together.", ["two +", "21 kg +"]),
        ("Our two Corvo machines weigh 22 kg together.", ["two +", "22 kg -"]),
        ("The Alba and Corvo machines cost 4,828 euros in total.", ["4,828 euros +"]),
        ("The cheapest Corvo costs 1,290 euros.", ["1,290 euros +"]),
        ("The cheapest Corvo costs 249 euros.", ["249 euros -"]),
        ("The cheapest Corvo is the Corvo Duo.", ["cheapest Corvo is the Corvo Duo +"]),
        ("The cheapest Corvo is the Corvo Pro.", ["cheapest Corvo is the Corvo Pro -"]),
        ("We offer six models.", ["six -"]),
        # What the table does not explain may narrow its rows.
        ("We offer two espresso models.", []),
        ("There are four refurbished machines.", []),
        ("There are five refurbished machines.", []),
        ("The two Alba grinders cost 900 euros in total.", []),
        ("We offer 2 Alba and 2 Corvo machines.", []),
        ("Two of our five machines are Corvo models.", []),
        ("We offer two Alba models and the Corvo Pro.", []),
        ("The Corvo Pro is the most expensive, before the Alba models.", []),
        ("The Alba machines cost 649 and 999 euros, 1,648 euros in total.", ["1,648 euros +"]),
    ],
)
def test_a_word_of_some_names_narrows_the_rows(guard, sentence, expected):
    marks = {"carries": "+", "contradicts": "-"}
    found = computed(guard, MACHINES, sentence)
    told = [f"{sentence[item.start : item.end]} {marks[item.effect.value]}" for item in found]
    assert told == expected


def test_a_family_of_the_question_narrows_the_rows(guard):
    (found,) = computed(guard, MACHINES, "We offer two models.", "How many Corvo models are there?")
    assert found.effect.value == "carries"


@pytest.mark.parametrize("tables", [(MACHINES, PLANTS), (PLANTS, MACHINES)])
@pytest.mark.parametrize(
    ("sentence", "effects"),
    [
        ("The three plants have 194 employees in total.", {"three": "+", "194": "+"}),
        ("The three plants have 250 employees in total.", {"three": "+", "250": "-"}),
        ("The four plants have 194 employees in total.", {"four": "-", "194": "+"}),
        ("The machines cost 5,077 euros in total.", {"5,077 euros": "+"}),
        ("There are three plants.", {"three": "+"}),
    ],
)
def test_each_value_is_told_of_the_table_that_is_named(guard, tables, sentence, effects):
    evidence = [triple for table in tables for triple in table]
    (told,) = guard.check("", sentence, evidence=evidence).sentences
    marks = {"carries": "+", "contradicts": "-"}
    found = {sentence[f.start : f.end]: marks[f.effect.value] for f in told.findings}
    assert found == effects
    wrong = "-" in effects.values()
    assert told.category.value == ("contradictory" if wrong else "supportive")


def test_nothing_is_computed_of_a_part_of_the_rows(guard):
    part = [triple for triple in BIKES if triple.row.number < 3]
    assert computed(guard, part, "There are two bikes.") == []


ITEMS = Table(
    [
        {"name": f"Item {n}", "colour": "red" if n % 2 else "blue", "price_eur": 3, "weight_kg": 2}
        for n in range(8)
    ],
    name="items",
)


@pytest.mark.parametrize(
    ("sentence", "effects"),
    [
        ("The total weight is 16 kg.", []),  # half of the weights are left out
        ("The total weight is 8 kg.", []),
        ("The heaviest item weighs 2 kg.", []),
        ("The red items weigh 8 kg in total.", []),
        ("There are 8 items.", ["carries"]),
        ("The total price is 24 euros.", ["carries"]),
        ("The red items cost 12 euros in total.", ["carries"]),
        ("There are two colours.", ["carries"]),
        # What is missing may be what these tell of.
        ("The total price is 16 euros.", []),
        ("The green items cost 24 euros in total.", []),
        ("Three items weigh less than 3 kg.", []),
    ],
)
def test_of_a_table_that_is_cut_whole_columns_are_computed(sentence, effects):
    """Cells are left out column by column: of each row the last one goes first."""
    limits = {"evidence": 2 * len(ITEMS) + 4}
    config = GuardrailConfig.model_validate({"judge": "none", "graph": "none", "limits": limits})
    with Guardrail(config) as guard:
        assert [item.effect.value for item in computed(guard, ITEMS, sentence)] == effects
        assert len(guard.check("", sentence, evidence=ITEMS).evidence) == limits["evidence"]


def test_a_table_of_any_size_is_not_summed_in_part():
    """As the settings are: 5,000 cells are read, and these are 5,400."""
    row = {f"part {n}": "steel" for n in range(8)} | {"weight_kg": 2}
    rows = [{"name": f"Item {n}"} | row for n in range(600)]
    with Guardrail(GuardrailConfig(judge="none", graph="none")) as guard:
        assert computed(guard, Table(rows), "The total weight is 1,200 kg.") == []


@pytest.mark.parametrize(
    ("kept", "sentence", "effects"),
    [
        ({"price_eur"}, "All bikes together cost 11,160 euros.", ["carries"]),
        ({"price_eur"}, "The city bikes together cost 11,160 euros.", []),
        ({"price_eur"}, "All bikes together cost 4,280 euros.", []),
        ({"category"}, "There are three categories.", ["carries"]),
        ({"category"}, "There are four categories.", []),
        ({"in_stock"}, "Three bikes are in stock.", ["carries"]),
        ({"range_km"}, "The Tarn City is the cheapest bike.", []),
    ],
)
def test_cells_that_were_kept_of_an_earlier_answer_are_no_table(guard, kept, sentence, effects):
    cells = [item for item in BIKES if item.property in kept]
    assert [item.effect.value for item in computed(guard, cells, sentence)] == effects


def test_a_row_with_empty_cells_is_whole(guard):
    rows = [{"name": "Fjell 3", "price_eur": 2490, "note": None}, {"name": "Tarn City"}]
    rows += [{"name": "Fjell Cargo", "price_eur": 3890, "note": "new"}, {"name": "Tarn Trail"}]
    (found,) = computed(guard, Table(rows, name="bikes"), "The average price is 3,000 euros.")
    assert found.because == "mean of price_eur in 4 of 4 rows of bikes: 3,190"


def test_cells_without_their_number_are_taken_as_all(guard):
    """Those of a process that does not know it yet, or made by hand."""
    bare = [
        item.model_copy(update={"row": TableRow(table="bikes", number=item.row.number, of=4)})
        for item in BIKES
    ]
    (found,) = computed(guard, bare, "All bikes together cost 12,160 euros.")
    assert found.effect.value == "contradicts"


def orders(*amounts: int, name: str | None = "orders") -> Table:
    rows = [{"number": f"A-{amount}", "amount_eur": amount} for amount in amounts]
    return Table(rows, subject="number", name=name)


@pytest.mark.parametrize("name", ["orders", None])
@pytest.mark.parametrize(
    ("sentence", "effects"),
    [
        ("The average amount is 20 euros.", ["carries"]),  # of the first
        ("The average amount is 200 euros.", ["carries"]),  # of the second
        ("The average amount is 110 euros.", ["carries"]),  # of both
        ("The average amount is 50 euros.", ["contradicts"]),
        ("The highest amount is 300 euros.", ["carries"]),
        ("The highest amount is 400 euros.", ["contradicts"]),
    ],
)
def test_tables_of_one_name_are_apart_and_together(guard, name, sentence, effects):
    """Two results of one tool, or tables that nobody gave a name."""
    both = [*orders(10, 20, 30, name=name), *orders(100, 200, 300, name=name)]
    found = computed(guard, both, sentence)
    assert [item.effect.value for item in found] == effects
    assert all("6 of 6 rows" in item.because for item in found if effects == ["contradicts"])


def test_a_page_that_is_cut_leaves_nothing_to_contradict(guard):
    page = [item for item in BIKES if item.property != "price_eur" or item.row.number < 3]
    row = {"name": "Tarn X", "category": "city", "price_eur": 1, "range_km": 2, "in_stock": True}
    both = [*page, *Table([row | {"launched": "2024-01-01"}], name="bikes")]
    assert computed(guard, both, "The total price is 6,381 euros.") == []
    assert computed(guard, both, "All bikes together cost 11,161 euros.") == []


def test_the_same_table_twice_is_one(guard):
    both = [*orders(10, 20, 30), *orders(10, 20, 30)]
    (found,) = computed(guard, both, "The orders total 120 euros.")
    assert found.because == "sum of amount_eur in 3 of 3 rows of orders: 60"


@pytest.mark.parametrize("launched", ["2025-02-30", "2025-06-31", "2023-02-29", "2023-13-45"])
def test_a_day_that_no_calendar_has_stops_nothing(guard, launched):
    rows = [
        {"name": "Fjell 3", "launched": launched},
        {"name": "Tarn City", "launched": "2025-10-01"},
        {"name": "Tarn Trail", "launched": "-0003-01-01"},
        {"name": "Tarn Old", "launched": "-0009-01-01"},
    ]
    question = "Which bike is the most recent?"
    answer = guard.check(question, "The most recent is the Tarn City.", evidence=Table(rows))
    assert answer.errors == ()
    assert answer.sentences[0].category == "supportive"
    (oldest,) = computed(guard, Table(rows), "The oldest bike is the Tarn Old.")
    assert oldest.effect.value == "carries"


def test_the_rows_are_cited_and_the_computation_told(guard):
    (right,) = guard.check("", "All bikes together cost 11,160 euros.", evidence=BIKES).sentences
    assert [item.value for item in right.citations] == ["2490", "3890", "1790", "2990"]
    (wrong,) = guard.check("", "All bikes together cost 12,160 euros.", evidence=BIKES).sentences
    assert wrong.against == ("sum of price_eur in 4 of 4 rows of bikes: 11,160",)
    assert wrong.note == "contradicted by: sum of price_eur in 4 of 4 rows of bikes: 11,160"


def test_a_day_that_no_month_has_is_behind_its_last(guard):
    dates = {"Alba": "2024-02-30", "Corvo": "2024-02-29", "Petra": "2024-03-02"}
    table = Table([{"name": name, "opened": day} for name, day in dates.items()], name="depots")
    answer = guard.check("", "The oldest depot is Corvo. The newest is Alba.", evidence=table)
    assert "checks" not in {error.part for error in answer.errors}


def test_the_check_has_a_switch():
    config = GuardrailConfig.model_validate(
        {"judge": "none", "graph": "none", "checks": {"aggregates": False}}
    )
    with Guardrail(config) as guard:
        assert computed(guard, BIKES, "There are four bikes.") == []
