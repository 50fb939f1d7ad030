"""Claims: headings, heads of tables, bare answers."""

from __future__ import annotations

import pytest

from guardrail import STRICT, Guardrail, GuardrailConfig, Passage
from guardrail.core.text.words import tokenise
from guardrail.core.types import Triple
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import ParsedText, parse
from guardrail.verdict.claims import GroundingRequest, claims_of, named_runs

NOTHING = prepare([])


@pytest.mark.parametrize(
    "form",
    [
        "{}", "**{}**", "*{}*", "__{}__", "`{}`", "<p>{}</p>", "{}<br/>", "<b>{}</b>",
        "✅ {}", "✔️ {}", "🎉 {}", "⚠️🔥 {}", "→ {}", "• {}", "▪ {}", "★ {}", "ℹ️ {}", "a) {}",
        "(b) {}",
    ],
)  # fmt: skip
def test_the_form_of_a_sentence_is_not_judged(form: str) -> None:
    text = form.format("The pool is warm.")
    [claim] = claims_of(GroundingRequest("", ParsedText(clean=text, marked=text), NOTHING))
    assert claim.text.strip() == "The pool is warm."
    assert len(claim.text) == len(claim.stretch.text)


@pytest.mark.parametrize(
    "text",
    [
        "❌ Dogs are allowed.", "🚫 Dogs are allowed.", "👎 Dogs are allowed.", "Dogs: ✗.",
        "-5 °C is it.", "€5 is the fee.", "≥ 5 people may enter.", "№ 5 is hers.", "5 * 3 is 15.",
        "x < y and z > w.",
    ],
)  # fmt: skip
def test_a_sign_that_means_something_is_judged(text: str) -> None:
    [claim] = claims_of(GroundingRequest("", ParsedText(clean=text, marked=text), NOTHING))
    assert claim.text == text


def test_a_sentence_in_capitals_is_judged_like_any_other() -> None:
    for text, read in [
        ("UNFORTUNATELY NO CLINIC TAKES CASH.", "unfortunately no clinic takes cash."),
        ("ASK THE BBC.", "ASK THE BBC."),
    ]:
        [claim] = claims_of(GroundingRequest("", ParsedText(clean=text, marked=text), NOTHING))
        assert claim.text == read


def test_headings_and_headers_of_tables_claim_nothing() -> None:
    text = (
        "## Plans\n\n| Plan | 2024 |\n|:---|---:|\n| Basic | 9 EUR |\n\n"
        "**Main facts:**\n\na | b\n--|--\nc | d\n"
    )
    claims = claims_of(GroundingRequest("", ParsedText(clean=text, marked=text), NOTHING))
    assert {claim.stretch.text: claim.prose for claim in claims} == {
        "Plans": False,
        "| Plan | 2024 |": False,
        "| Basic | 9 EUR |": True,
        "**Main facts:**": False,
        "a | b": False,
        "c | d": True,
    }


def test_a_bare_yes_is_read_with_its_question() -> None:
    question = "Does the Fjell 3 have a warranty of five years?"
    answers = ("It does.", "The Fjell 3 has a warranty of five years.")
    asked = [
        claims_of(GroundingRequest(question, parse(answer), NOTHING))[0].asked for answer in answers
    ]
    assert asked == [question, ""]


@pytest.mark.parametrize(
    ("answer", "question", "proposition"),
    [
        ("Yes.", "Is the Fjell 3 waterproof?", "The Fjell 3 is waterproof."),
        ("No, it is not.", "Is the Fjell 3 waterproof?", "The Fjell 3 is waterproof."),
        ("No.", "Hello! Can I pay by card?", "I can pay by card."),
        ("False", "True or false: ships sink.", "Ships sink."),
        ("Yes, until Friday.", "Is the desk open?", None),
        ("Yes.", "When is the desk open?", None),
        ("Yes.", "", None),
    ],
)
def test_a_bare_answer_asserts_the_proposition_of_the_question(answer, question, proposition):
    evidence = prepare([Triple("Fjell 3", "waterproof", "yes")])
    [claim] = claims_of(GroundingRequest(question, parse(answer), evidence))
    assert (claim.text if claim.answers else None) == proposition
    assert claim.place.text == answer


LIE = "The Fjell 3 has a range of 777 km and costs 1 euro"
EVIDENCE = [Passage("The Fjell 3 costs 2,490 euros. The Fjell 3 has a range of 110 km.")]
USUAL = (
    "| Plan | Price |",
    "| Plan | Price per month | Users |",
    "| Name | Opening hours | Phone |",
    "| Model | Range (km) | Price (EUR) |",
    "| Plan | 2023 | 2024 |",
    "Feature | Basic | Premium",
    "| | Fjell 3 | Tarn City |",
    "| **Name** | **Born** | **Died** |",
    "| Day | Opens | Closes |",
    "| Price per person per night | Number of rooms with balcony |",
    "| Place | Year in which it opened | Is it free of charge? |",
    "| Employee | Department | Start date |",
    "| Parcel | Up to 5 kg | 5-10 kg |",
)
ASSERTING = (
    f"| {LIE} |\n|---|",
    f"| {LIE} |\n|---|\n| Fjell 3 |",
    "| The Fjell 3 has a range of 777 km | Price |\n|---|---|\n",
    "The Fjell 3 has a range of 777 km | it costs 1 euro\n--|--\nFjell 3 | 2,490 euros",
    "| Fjell 3 range: 777 km | Price: 1 euro |\n|---|---|\n| Fjell 3 | 2,490 euros |",
    "| Model | The Fjell 3 was designed by Elvis Presley |\n|---|---|\n| Fjell 3 | 110 km |",
    "| Fjell 3 range 777 km |\n|---|\n\nThe Fjell 3 costs 2,490 euros.",
)


@pytest.fixture(scope="module")
def guard():
    with Guardrail(GuardrailConfig(graph={"location": "none"})) as guard:
        yield guard


@pytest.mark.parametrize("answer", ASSERTING)
def test_a_head_that_asserts_is_judged(guard, answer) -> None:
    checked = guard.check("What does the Fjell 3 cost?", answer, evidence=EVIDENCE, policy=STRICT)
    head = answer.partition("\n")[0].strip("| ")
    assert head not in checked.text or checked.sentences[0].na


@pytest.mark.parametrize("head", USUAL)
def test_a_head_that_names_its_columns_is_free(guard, head) -> None:
    answer = f"{head}\n|---|---|---|\n| Fjell 3 | 110 km | |\n"
    checked = guard.check("What does the Fjell 3 cost?", answer, evidence=EVIDENCE, policy=STRICT)
    assert checked.sentences[0].category is None
    assert head in checked.text


@pytest.mark.parametrize("head", [head for head in USUAL if not any(map(str.isdigit, head))][:3])
def test_bare_names_of_columns_are_free_without_rows(head) -> None:
    for text in (f"{head}\n|---|---|", f"{head}\n|---|---|\n\n"):
        [claim] = claims_of(GroundingRequest("", ParsedText(clean=text, marked=text), prepare([])))
        assert not claim.prose


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Booking KX4-77Q has been paid.", ["Booking KX4-77Q"]),
        ("The trip is AB-12-CD or PT9-03L.", ["AB-12-CD", "PT9-03L"]),
        ("Your Fjell 3 is a B12-rich bike.", ["Fjell 3", "B12"]),
    ],
)
def test_a_name_is_not_cut_inside_an_identifier(text: str, names: list[str]) -> None:
    assert [text[slice(*span)] for span in named_runs(text, tokenise(text))] == names


def test_a_sentence_about_a_known_identifier_has_a_known_subject() -> None:
    evidence = prepare([Triple("get_booking", "reference", "KX4-77Q")])
    assert evidence.mentions("Booking KX4-77Q")
    assert not evidence.mentions("Booking KX4-77Z")
