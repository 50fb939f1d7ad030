"""Sentences and the layout that they stand in."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.core.text.sentences import Piece, code_blocks, laid_out, split_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. J. R. R. Tolkien lived in the U.S. for 3.5 years.", "He left on 5 Jan. 1950."],
        ["She moved to the U.S. in 1990.", "The U.S. Army hired her.", "It paid well."],
        ["Apple Inc. was founded by Steve Jobs.", "Was it in 1976?", "Yes!", "It was."],
        ["He won 2.5 million at St. Andrews vs. Mr. Smith Jr. of Yahoo! in 1999."],
        ['He said "Stop." and left.', 'She wrote "The End."', "Then she died."],
        ["He lived c. 1590 – c. 1656 (b. Rome, d. Naples).", "His vitamin C. intake was low."],
        ["Breakfast is served until 10 a.m.", "Dogs stay for free.", "It opens at 9 a.m. Monday."],
        ["Is it free?", "No.", "See No. 5.", "It is on Main St.", "The bell rings at 7 p.m. EST."],
        ["It earned a Ph.D. in physics.", "No. 5 was alive…", "1993 was better."],
        [
            "Its note is D.",
            "Marrow Quay has a frame.",
            "It leaves from Terminal A.",
            "Gate 2 is shut.",
        ],
        [
            "The lead is at most 2 m.",
            "Dogs on 3.5 t.",
            "Children pay less.",
            "It has 12 V.",
            "It is 5 l.",
        ],
        [
            "It covers zones A and B.",
            "It costs 5 euros.",
            "Take lines A, C or F.",
            "Dogs pay less.",
        ],
        ["J. S. Bach and J. A. Smith met Franklin D. Roosevelt on p. 12.", "See No. 5 and Fig. 3."],
        ["In 1990 A. Berg paid.", "R. Smith and B. Dylan came in c. 1990."],
        ["It was written by J. Marrow.", "Vitamin D. is not meant.", "He met John F. Kennedy."],
    ],
)
def test_prose_is_split_where_a_reader_would(sentences: list[str]) -> None:
    assert [stretch.text for stretch in split_sentences(" ".join(sentences))] == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["**Opening hours:** Mon-Fri, 9 a.m. - 5 p.m."],
        ["Open 9 a.m. – 5 p.m. on weekdays.", "Closed on Sunday."],
        ["It costs 60 euros.[^2]", "It is green.[3][4]", "It is new.【1†source】", "It sells.²"],
        ["A first thought.</think>", "It costs 60 euros.<br>", "It is green."],
        ["It costs 60 euros.<sup>1</sup>", "It is green.†", "It is new."],
        ["Open 9 a.m. — 5 p.m.", "The shop is closed on Sunday."],
        ["We open at 9 a.m. Mon-Fri.", "It is closed at 2 p.m. Sat."],
        ["Open 9 a.m.-5 p.m. Mon.-Fri.", "Ask for keys before 9 a.m.", "Well-known guests wait."],
        ["See fig. [2] and the area of approx.[3] 12 m²."],
        ["Use `list.<T>` here, as on page p.[4]"],
    ],
)
def test_a_mark_behind_a_full_stop_belongs_to_its_sentence(sentences: list[str]) -> None:
    text = " ".join(sentences).replace("> ", ">")
    assert [stretch.text for stretch in split_sentences(text)] == sentences


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The furnace of the foundry holds 3.2 tonnes of bronze and reaches\n1,150 °C.", 1),
        ("The furnace of the foundry was built to a drawing that Anna\nBerg made in 1900.", 2),
        ("The furnace of the old foundry was built to a drawing that Anna\nBerg made in 1900.", 1),
        (
            "# The furnace of the foundry and all that belongs to it, with its history\nIt is hot.",
            2,
        ),
        ("price: 2,490 euros\nrange: 110 km\nweight: 24 kg", 3),
        ("Range: 110 km\nwith a full battery", 1),
    ],
)
def test_wrapped_lines_go_on_and_named_values_do_not(text: str, count: int) -> None:
    assert len(split_sentences(text)) == count


@pytest.mark.parametrize(
    "sentences",
    [
        ["It costs 60 euros.【4:0†source】", "It is green.[1]", "The rest follows."],
        ["It costs 9.99 EUR.", "The range is 110 km!", "It is green..."],
        ["It runs on ASP.Net and uses U.S.Steel parts, see [1].Then it goes on."],
    ],
)
def test_a_sentence_may_follow_without_a_space(sentences: list[str]) -> None:
    assert [stretch.text for stretch in split_sentences("".join(sentences))] == sentences


def test_full_width_stops_need_no_space() -> None:
    text = "The Fjell 3 is green。It costs 60 euros。また「安い。」と言う！"
    assert [stretch.text for stretch in split_sentences(text)] == [
        "The Fjell 3 is green。",
        "It costs 60 euros。",
        "また「安い。」",
        "と言う！",
    ]


def test_markdown_blocks_are_sentences_of_their_own() -> None:
    text = (
        "# Life of Ada\n\nAda was born in\nlondon. She died young.\n\n"
        "- **Father:** Lord Byron\n- Mother: Anne\n1. First computer programmer\n"
        "| name | year |\n|---|---|\n| Ada | 1815 |\n```\nprint(1)\n```\n"
    )
    assert [stretch.text for stretch in split_sentences(text)] == [
        "Life of Ada",
        "Ada was born in\nlondon.",
        "She died young.",
        "**Father:** Lord Byron",
        "Mother: Anne",
        "First computer programmer",
        "| name | year |",
        "| Ada | 1815 |",
        "print(1)",
    ]


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_text_on_the_line_of_a_code_fence_is_text(fence: str) -> None:
    """Nothing of an answer may be passed over: what is no sentence is never judged."""
    [hidden] = split_sentences(f"{fence}Ada was born in Paris.{fence}")
    assert "Ada was born in Paris." in hidden.text
    [first, last] = split_sentences(f"{fence} Ada was born in Paris.{fence} She died in London.")
    assert first.text.startswith(fence)
    assert last.text == "She died in London."
    assert [s.text for s in split_sentences(f"{fence}python\nprint(1)\n{fence}")] == ["print(1)"]


@pytest.mark.parametrize(
    ("language", "body", "program"),
    [
        ("yaml", "range: 110 km", False),
        ("YAML", "bikes:\n  - range: 110 km", False),
        ("json", '{"range": "110 km"}', False),
        ("toml", 'range = "110 km"', False),
        ("", "model: Fjell 3\n\nrange: 110 km", False),
        ("", "- 'range': 110 km", False),
        ("", "range = 110", True),
        ("", "if range: stop()", True),
        ("", "model: Fjell 3\nprint(model)", True),
        ("python", "range: 110", True),
        ("bash", "host: example", True),
    ],
)
def test_data_between_fences_is_no_program(language: str, body: str, program: bool) -> None:
    text = f"Here:\n```{language}\n{body}\n```\nDone."
    found = [text[start:end] for start, end in code_blocks(text)]
    assert found == ([f"{body}\n"] if program else [])


def test_an_open_fence_holds_the_rest() -> None:
    assert code_blocks("```python\nprint(1)") == [(10, 18)]


def test_missing_space_after_a_full_stop_still_splits() -> None:
    assert len(split_sentences("The athlete is Inars Kivlenieks.The country is Latvia")) == 2
    assert len(split_sentences("He wrote it in Node.js and ASP.NET for example.com users")) == 1


@given(st.text(alphabet=st.sampled_from("ab A.B!?\n-#|1\"'…") | st.characters(), max_size=300))
def test_stretches_are_exact_ordered_and_lose_no_word(text: str) -> None:
    stretches = split_sentences(text)
    assert all(text[s.start : s.end] == s.text for s in stretches)
    assert all(item.end <= two.start for item, two in itertools.pairwise(stretches))


@pytest.mark.parametrize("text", ["[" * 10_000, "a" * 1_000_000, "a. " * 300_000, ". " * 500_000])
def test_time_is_bounded_on_hostile_text(text: str) -> None:
    begin = time.process_time()
    split_sentences(text)
    assert time.process_time() - begin < 8


HANDBOOK = """# Storage

**Opening**

The desk is open daily. It closes at 5 pm.

Bring:

- a photo ID,
- your card.

| Plan | Price (EUR) | Term |
|---|---|---|
| Basic | 12 | 1 year |
| **Plus** | 20 | |

1.
2. Shower first.
"""


def test_headings_labels_and_heads_are_context():
    assert list(laid_out(HANDBOOK)) == [
        Piece("The desk is open daily.", "Opening"),
        Piece("It closes at 5 pm.", "Opening"),
        Piece("Bring: a photo ID,", "Opening", label="Bring", is_item=True),
        Piece("Bring: your card.", "Opening", label="Bring", is_item=True),
        Piece("Basic, Price (EUR): 12.", "Opening", ("Basic", "Price (EUR)", "12")),
        Piece("Basic, Term: 1 year.", "Opening", ("Basic", "Term", "1 year")),
        Piece("Plus, Price (EUR): 20.", "Opening", ("Plus", "Price (EUR)", "20")),
        Piece("Shower first.", "Opening"),
    ]


@pytest.mark.parametrize(
    "text", ["", "3.", "## Fees", "**Storage**", "Bring:", "| a | b |\n|--|--|"]
)
def test_what_only_names_is_no_statement(text):
    assert list(laid_out(text)) == []


def test_a_bold_sentence_is_a_statement():
    assert [piece.text for piece in laid_out("**Dogs are welcome.**")] == ["**Dogs are welcome.**"]
