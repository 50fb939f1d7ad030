"""Corrected sentences: values, names, yes and no."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrail import STRICT_CORRECT, Action, Guardrail, GuardrailConfig, Passage, Table, Triple
from guardrail.core.text.values import find_values
from guardrail.core.types import SpanKind
from guardrail.core.types.answers import CheckRequest
from guardrail.correction.edits import replaced, value_edit
from guardrail.log.records import open_log


def written(sentence: str, held: str) -> str | None:
    """The sentence with its last value exchanged for the one that is held."""
    stated, known = find_values(sentence)[-1], find_values(held)[0]
    edit = value_edit(sentence, stated, known, 0)
    return None if edit is None else replaced(sentence, [edit])


@pytest.mark.parametrize(
    ("sentence", "held", "expected"),
    [
        ("It costs 2,190 euros.", "2490 EUR", "It costs 2,490 euros."),
        ("It costs 2190 euros.", "2,490 euros", "It costs 2490 euros."),
        ("It costs €990.", "2,490 euros", "It costs €2,490."),
        ("It costs €69.", "64.90 euros", "It costs €64.90."),
        ("It has 2 million rows.", "50,000", "It has 50,000 rows."),
        ("It made 2.4 million euros.", "-2,600,000 euros", "It made -2.6 million euros."),
        ("It made -2.4 million euros.", "-2,600,000 euros", "It made -2.6 million euros."),
        ("It made -2.4 million euros.", "2,600,000 euros", "It made 2.6 million euros."),
        ("It is -5 °C there.", "-6 °C", "It is -6 °C there."),
        ("It has five gears.", "6", "It has six gears."),
        ("It weighs an 8 kg.", "24 kg", "It weighs a 24 kg."),
        ("It takes a 5 hour night.", "8 hours", "It takes an 8 hour night."),
        ("It takes 1 hour.", "4 hours", "It takes 4 hours."),
        ("It takes 3 hours.", "1 hour", "It takes 1 hour."),
        ("The cable is 90 cm long.", "0.75 m", "The cable is 75 cm long."),
        ("A 3-year warranty.", "5 years", "A 5-year warranty."),
        ("You wait three weeks.", "14 days", "You wait two weeks."),
        ("You wait 10 days.", "2 weeks", "You wait 14 days."),
        ("Its ISSN is 1080-6077.", "1080-6377", "Its ISSN is 1080-6377."),
        ("It arrives within 7 days.", "3 to 5 days", "It arrives within 3 to 5 days."),
        ("It opened in 1989.", "12 March 1998", "It opened in 1998."),
        ("It opened on 12 March 1989.", "1998-03-14", "It opened on 14 March 1998."),
        ("It opened on March 12th, 1989.", "1998-03-22", "It opened on March 22, 1998."),
        ("It ends on 12 May.", "14 May", "It ends on 14 May."),
        ("It ends on May 12.", "2027-05-14", "It ends on May 14."),
        ("It is on Sunday, 1 March 1998.", "1998-03-14", "It is on Saturday, 14 March 1998."),
        ("It is on Sun 1 March 1998.", "Monday, 2 March 1998", "It is on Mon 2 March 1998."),
        ("It is on Fri, March 14, 1998.", "1998-03-14", "It is on Sat, March 14, 1998."),
        ("Tours start at 3:30 pm.", "14:30", "Tours start at 2:30 pm."),
        ("Tours start at 9 a.m.", "10:00", "Tours start at 10:00."),
        ("Tours start at 08:00.", "9:30", "Tours start at 9:30."),
        ("It runs version 2.3.0.", "v2.4.1", "It runs version 2.4.1."),
        ("Call +44 20 7946 0081.", "+44 20 7946 0018", "Call +44 20 7946 0018."),
    ],
)
def test_a_value_is_written_as_the_sentence_writes_it(sentence, held, expected):
    assert written(sentence, held) == expected


@pytest.mark.parametrize(
    ("sentence", "held"),
    [
        ("It has six gears.", "1"),  # what is counted would need another form
        ("The club is called Gubbio 1910.", "2014"),  # a piece of a name
        ("The notice period is 6 months.", "6 weeks"),
        ("You wait three weeks.", "12 days"),  # no whole number of weeks
        ("It opened on 12 March 1989.", "April 1998"),  # the day is not known
        ("It was seen by 4.8 million people.", "3.8"),  # of a column that counts in millions
        ("It took more than 300 minutes.", "250 minutes"),  # 250 is not more than 250
    ],
)
def test_what_cannot_be_written_surely_is_left(sentence, held):
    assert written(sentence, held) is None


def about(subject: str, **values: str) -> tuple[Triple, ...]:
    """Triples of a subject; a property is written with ``_`` for a space."""
    return tuple(Triple(subject, name.replace("_", " "), item) for name, item in values.items())


FJELL = about("Fjell 3", price="2,490 euros", gears="6")
ADA = about("Ada Lovelace", place_of_birth="London", date_of_birth="1815-12-10")
BAKSO = about("Bakso", country="Indonesia", main_ingredient="Celery")
BOAT = about(
    "Alba", USB_ports="no", own_lift="no", waterproof="no", parking_lot="no", heated_seats="no"
)
EAGLE = about(
    "The Eagle", eatType="coffee shop", food="English", priceRange="high",
    customer_rating="average", familyFriendly="yes", near="Burger King",
)  # fmt: skip
TEOW = about(
    "Beef kway teow", INGREDIENT="Oyster sauce", REGION="Indonesia",
    COUNTRY="Singapore and Indonesia",
)  # fmt: skip
HOTEL = about("Hotel", swimming_pool="no", sauna="yes", pets_allowed="yes", airport_shuttle="no")


@pytest.fixture(scope="module")
def guard():
    """The smaller judge alone: corrections are tested here, not what the pool makes of them."""
    with Guardrail(GuardrailConfig(judge="minilm")) as guard:
        yield guard


@pytest.mark.parametrize(
    ("evidence", "said", "expected"),
    [
        (FJELL, "The Fjell 3 costs 2,190 euros.", "The Fjell 3 costs 2,490 euros."),
        (FJELL, "The Fjell 3 has 5 gears.", "The Fjell 3 has 6 gears."),
        (ADA, "Ada Lovelace was born in Paris.", "Ada Lovelace was born in London."),
        (ADA, "Ada Lovelace was born in London on 12 December 1815.",
         "Ada Lovelace was born in London on 10 December 1815."),
        (about("Louisiana 5", INCUMBENT="Riley Joseph Wilson"),
         "Louisiana has S. William Green as the incumbent.",
         "Louisiana has Riley Joseph Wilson as the incumbent."),
        (about("Bananaman", STARRING="Bill Oddie"), "Scott Adsit stars in Bananaman.",
         "Bill Oddie stars in Bananaman."),
        (BOAT, "The Alba has heated seats.", "The Alba has no heated seats."),
        (BOAT, "The Alba has a parking lot.", "The Alba has no parking lot."),
        (HOTEL, "The hotel has a swimming pool.", "The hotel has no swimming pool."),
        (HOTEL, "The hotel has no sauna.", "The hotel has a sauna."),
        (HOTEL, "The hotel does not have a sauna.", "The hotel has a sauna."),
        (HOTEL, "The hotel does not offer a sauna.", "The hotel offers a sauna."),
        (HOTEL, "No, pets are not allowed.", "Yes, pets are allowed."),
        (HOTEL, "The hotel offers an airport shuttle.",
         "The hotel does not offer an airport shuttle."),
    ],
)  # fmt: skip
def test_the_words_that_conflict_are_exchanged(guard, evidence, said, expected):
    answer = guard.check("", said, evidence=evidence, policy=STRICT_CORRECT)
    assert (answer.text, answer.action) == (expected, Action.CORRECT)
    (sentence,) = answer.sentences
    assert sentence.correction.original == said
    assert sentence.citations
    assert answer.marked.count("[corrected]") == 1


def test_what_was_right_from_the_start_ranks_first_and_the_log_says_why(tmp_path):
    said = ["The Fjell 3 costs 2,190 euros.", "The Fjell 3 costs 2,490 euros."]
    with Guardrail(GuardrailConfig(log=tmp_path / "scores.sqlite")) as own:
        first, second = own.rank("", said, evidence=FJELL, policy=STRICT_CORRECT)
    assert (first.index, first.action) == (1, Action.PASS)
    assert (second.index, second.action) == (0, Action.CORRECT)
    with open_log(tmp_path / "scores.sqlite", read_only=True) as log:
        kept = {record.answer.index: record.answer.reasons for record in log.records()}
    assert kept == {1: first.reasons, 0: second.reasons}
    assert kept[1][0].startswith("rank 1 of 2: ")


def test_a_correction_is_shown_with_its_fact_and_the_original(guard):
    said = "The Fjell 3 costs 2,190 euros."
    answer = guard.check("", said, evidence=FJELL, policy="strict-correct")
    (span,) = answer.sentences[0].spans
    assert span.kind is SpanKind.CORRECTED
    assert (span.text, span.instead_of) == ("2,490 euros", "2,190 euros")
    assert span.triple == FJELL[0]
    assert answer.text[span.start : span.end] == span.text
    cited = "[Fjell 3, price: 2,490 euros]"
    assert answer.marked == f"The Fjell 3 costs 2,490 euros {cited} [corrected]."
    assert answer.original == said
    assert answer.explain()[0].outcome == "corrected"
    assert "2,190" in answer.reasons[0]


def test_of_a_passage_the_value_of_the_same_thing_is_written(guard):
    text = "A bicycle can be sent back within 30 days of delivery if it was ridden under 50 km."
    said, held = "A bicycle can be sent back within 60 days of delivery.", [Passage(text)]
    answer = guard.check("Can I send it back?", said, evidence=held, policy=STRICT_CORRECT)
    assert answer.text == "A bicycle can be sent back within 30 days of delivery."
    assert answer.sentences[0].citations


def test_a_value_of_another_thing_in_prose_is_not_written(guard):
    """Two values in days; only one is what the sentence is about."""
    evidence = [
        Passage("Bicycles are delivered within 7 working days."),
        Passage("A purchase may be returned for 30 days."),
    ]
    said = "You can send it back within 60 days of delivery."
    answer = guard.check("Can I send it back?", said, evidence=evidence, policy=STRICT_CORRECT)
    assert "7 days" not in answer.text
    assert not [item for item in answer.judged if item.correction]


def test_the_name_of_the_subject_alone_does_not_tell_which_value_is_meant(guard):
    text = "At its deepest Lake Sorvane has 330 m of water. It lies at 1,450 m above the sea."
    said = "Lake Sorvane lies at an elevation of 1540 m."
    evidence = [Passage(text, title="Lake Sorvane")]
    answer = guard.check("", said, evidence=evidence, policy=STRICT_CORRECT)
    assert "330 m" not in answer.text


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        # Of two children the sentence may mean either.
        (about("Mary", child="Percy") + about("Mary", child="Clara"),
         "The child of Mary was William."),
        # Whom a sentence is about is not exchanged, though the number in its name differs.
        (about("Fjell 3", gears="6"), "The Fjell 3 has 6 gears."),
        # Another spelling of a name is no contradiction to mend.
        (about("Belgium", leader="Philippe of Belgium"),
         "The leader of Belgium is Phillipe of Belgium."),
        # A piece of a longer name, and names of countries, are left alone.
        (BAKSO, "Bakso comes from Indonesia, and Brown sauce is its main ingredient."),
        (TEOW, "Beef kway teow is a dish found in Ethiopia."),
        # To deny these takes more than a word.
        (BOAT, "The Alba has two USB ports."),
        (BOAT, "The Alba has its own lift."),
        (BOAT, "The Alba has always been waterproof."),
        (BOAT, "The Alba has a parking lot, which is free."),
    ],
)  # fmt: skip
def test_what_is_not_sure_is_not_exchanged(guard, evidence, said):
    answer = guard.check("", said, evidence=evidence, policy=STRICT_CORRECT)
    assert not [item for item in answer.judged if item.correction]


def test_what_is_british_may_be_english(guard):
    said = "The Eagle is located just below the river, near Ranch."
    true = "It serves high priced British food."
    answer = guard.check("", f"{said} {true}", evidence=EAGLE, policy=STRICT_CORRECT)
    assert "English" not in answer.text
    assert answer.text.startswith("The Eagle is located just below the river, near Burger King.")


def test_what_else_lacks_support_keeps_a_sentence_from_being_released(guard):
    said = "The Fjell 3 costs 2,190 euros and was voted bicycle of the year in Norway."
    answer = guard.check("", f"{said} It has 6 gears.", evidence=FJELL, policy=STRICT_CORRECT)
    assert "2,490" not in answer.text
    assert not [item for item in answer.judged if item.correction]


LIBRARY = (
    Triple("Alder Library", "head librarian", "Tove Lind"),
    Triple("Alder Library", "supplier", "Norli Books"),
    Triple("Alder Library", "town", "Nyborg"),
)


@pytest.mark.parametrize(
    ("said", "corrected"),
    [
        ("The head librarian of Alder Library is Bea Strand.", "Tove Lind"),
        ("The head librarian of Alder Library is called Bea Strand.", "Tove Lind"),
        ("Alder Library is run by head librarian Bea Strand.", "Tove Lind"),
        ("In Odense, Alder Library lends books on behalf of the head librarian.", ""),
        # Another property than the fact's, two names, and a name in a clause of its own.
        ("The caretaker of Alder Library is Bea Strand.", ""),
        ("The head librarian of Alder Library is Bea Strand or Ole Falk.", ""),
        ("The supplier of Alder Library is the firm that also supplies Odense.", ""),
        # The name stands beside the property's word, not in its place.
        ("The head librarian of Alder Library lives in Odense.", ""),
        ("The supplier of Alder Library was founded by Lars Holm.", ""),
        ("Alder Library's supplier also prints Macbeth.", ""),
        ("According to Outside Magazine, the head librarian is famous.", ""),
    ],
)
def test_the_only_name_without_support_becomes_the_fact_that_it_is_meant_to_give(said, corrected):
    with Guardrail(GuardrailConfig(judge="none")) as guard:
        answer = guard.check("", said, evidence=LIBRARY, policy=STRICT_CORRECT)
    mended = [item.text for item in answer.judged if item.correction]
    assert [corrected in text for text in mended] == [True] * bool(corrected)


BIKES = Table(
    [
        {"name": "Fjell 3", "maker": "Nordwerk", "colour": "green", "town": "The Hague"},
        {"name": "Tarn City", "maker": "Alpora", "colour": "red", "town": "Bergen"},
    ],
    name="bikes",
)


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize(
    ("said", "corrected"),
    [
        ("The maker of the Fjell 3 is Alpora.", "The maker of the Fjell 3 is Nordwerk."),
        ("Alpora is the maker of the Fjell 3.", "Nordwerk is the maker of the Fjell 3."),
        ("The colour of the Fjell 3 is red.", "The colour of the Fjell 3 is green."),
        ("Red is the colour of the Fjell 3.", "Green is the colour of the Fjell 3."),
        ("The maker of the Tarn City is Alpora.", ""),
        # The name of another column, of two rows, and a denial.
        ("The maker of the Fjell 3 is in Bergen.", ""),
        ("The Fjell 3 and the Tarn City have the maker Alpora.", ""),
        ("The maker of the Fjell 3 is not Alpora.", ""),
    ],
)
def test_the_text_of_another_row_becomes_that_of_the_own(said, corrected, rows):
    evidence = [one if rows else Triple(one.subject, one.property, one.value) for one in BIKES]
    with Guardrail(GuardrailConfig(judge="none")) as guard:
        answer = guard.check("", said, evidence=evidence, policy=STRICT_CORRECT)
    assert [item.text for item in answer.judged if item.correction] == [corrected][: len(corrected)]


CLINIC = about(
    "Varga Clinic", opening_hours_on_Monday="08:00 to 16:00", opening_hours_on_Saturday="closed",
    opening_hours_on_Friday="08:00 to 12:00",
)  # fmt: skip


@pytest.mark.parametrize(
    ("said", "corrected"),
    [
        ("Varga Clinic is open on Saturdays from 10:00 to 14:00.",
         "Varga Clinic is closed on Saturdays."),
        ("On Saturdays Varga Clinic is open.", "On Saturdays Varga Clinic is closed."),
        ("On Mondays Varga Clinic is closed.",
         "On Mondays Varga Clinic is open from 08:00 to 16:00."),
        # In the notation of the sentence
        ("On Mondays Varga Clinic is open from 9 am to 4 pm.",
         "On Mondays Varga Clinic is open from 8 am to 4 pm."),
        ("On Fridays Varga Clinic is open from 08:00 to 16:00.",
         "On Fridays Varga Clinic is open from 08:00 to 12:00."),
        # Only one of the two days differs
        ("Varga Clinic is closed on Fridays and Saturdays.", ""),
        ("On Mondays Varga Clinic is open from 8 am to 4 pm.", ""),
    ],
)  # fmt: skip
def test_hours_become_those_of_the_day(said, corrected):
    with Guardrail(GuardrailConfig(judge="none")) as guard:
        answer = guard.check("", said, evidence=CLINIC, policy=STRICT_CORRECT)
    assert [item.text for item in answer.judged if item.correction] == [corrected][: len(corrected)]


TRAM = about("Line 7", runs_on="Monday to Saturday", market_day="Thursday", fare="2.80 euros")
MEAL = about("Barny cakes", protein="1.8 g", carbohydrate="18 g")


@pytest.mark.parametrize(
    ("evidence", "said", "corrected"),
    [
        (TRAM, "Line 7 runs on Sundays.", "Line 7 runs from Monday to Saturday."),
        (TRAM, "Line 7 runs from Monday to Sunday.", "Line 7 runs from Monday to Saturday."),
        (TRAM, "The market day of Line 7 is Tuesday.", "The market day of Line 7 is Thursday."),
        (TRAM, "Line 7 runs on Saturdays.", ""),
        # Two values are against one fact; it is about the one at its word
        (MEAL, "Barny cakes have 18 g of carbs and 1.4 g of protein.",
         "Barny cakes have 18 g of carbs and 1.8 g of protein."),
    ],
)  # fmt: skip
def test_the_one_that_differs_is_exchanged(evidence, said, corrected):
    with Guardrail(GuardrailConfig(judge="onnx")) as guard:
        answer = guard.check("", said, evidence=evidence, policy=STRICT_CORRECT)
    assert [item.text for item in answer.judged if item.correction] == [corrected][: len(corrected)]


TRUE = json.loads(Path(__file__).with_name("true_sentences.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("domain", TRUE, ids=lambda domain: domain["true"][0])
def test_true_sentences_stay_as_they_are(domain):
    """Roundings, bounds, computed and converted values, other names and days of a range."""
    evidence = [Triple(*fact) for fact in domain["triples"]]
    passages = [Passage(text, title=title) for title, text in domain["passages"]]
    with Guardrail(GuardrailConfig(judge="onnx")) as guard:
        answers = guard.check_batch(
            [CheckRequest(question="", answer=said, evidence=(*evidence, *passages))
             for said in domain["true"]],
            policy=STRICT_CORRECT,
        )  # fmt: skip
    assert not [item.text for answer in answers for item in answer.judged if item.correction]
