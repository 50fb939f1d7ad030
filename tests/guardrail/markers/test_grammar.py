from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from guardrail.core.types import Citation, Triple
from guardrail.markers.grammar import Marker, insert, parse, render, render_marker, strip


def cite(entity: str, name: str, value: str) -> Citation:
    return Citation(entity=entity, property=name, value=value)


ROME = cite("Q212657", "place of birth", "Rome")
PAINTER = cite("Q212657", "occupation", "painter")
LONDON = cite("Q367360", "place of death", "London")


def test_markers_leave_a_clean_text_and_keep_their_place() -> None:
    marked = "She was a painter [Q212657, occupation: painter] born in 1593 [NA] in Rome [NA]."
    parsed = parse(marked)
    assert parsed.clean == "She was a painter born in 1593 in Rome."
    before = ["She was a painter", " born in 1593", " in Rome"]
    places = [0, *(marker.at for marker in parsed.markers)]
    assert [parsed.clean[start:end] for start, end in pairwise(places)] == before
    brackets = [marked[marker.start : marker.end] for marker in parsed.markers]
    assert brackets == ["[Q212657, occupation: painter]", "[NA]", "[NA]"]
    assert parsed.citations == (PAINTER,)
    assert [marker.na for marker in parsed.markers] == [False, True, True]


@pytest.mark.parametrize(
    ("bracket", "expected"),
    [
        ("[Q212657, place of birth: Rome, occupation: painter]", [ROME, PAINTER]),
        ("[Q212657, place of birth: Rome; Q367360, place of death: London]", [ROME, LONDON]),
        ("[Q212657, place of birth: Rome, Q367360, place of death: London]", [ROME, LONDON]),
        ("[qid: Q212657, place of birth: Rome]", [ROME]),
        ("[Q1, place of birth: Paris, Texas]", [cite("Q1", "place of birth", "Paris, Texas")]),
        ("[Q1, residence: Rome, Italy, notable work: Alien: Covenant]",
         [cite("Q1", "residence", "Rome, Italy"), cite("Q1", "notable work", "Alien: Covenant")]),
        ("[Q1, title: Suite [No. 2] in B]", [cite("Q1", "title", "Suite [No. 2] in B")]),
        ("[Q1, motto: Live; learn]", [cite("Q1", "motto", "Live; learn")]),
        ("[Mars Hill, North Carolina, JOINED: 1973]",
         [cite("Mars Hill, North Carolina", "JOINED", "1973")]),
        ("[Q1]", [cite("Q1", "", "")]),
        ("[Q1, occupation]", [cite("Q1", "occupation", "")]),
    ],
)  # fmt: skip
def test_brackets_that_cite(bracket: str, expected: list[Citation]) -> None:
    parsed = parse(f"A claim {bracket}.")
    assert list(parsed.citations) == expected
    assert parsed.clean == "A claim."
    assert render(parsed) == f"A claim {bracket}."


@pytest.mark.parametrize(
    "text",
    [
        "as shown [1], [2, 3] and [sic] by [Smith et al., 2020]",
        "[a link](https://example.org/x)",
        "[Note: see below]",
        "never closed [Q1, place of birth: Rome",
        "over two lines [Q1, place of\nbirth: Rome]",
        r"\[ x + y \]",
        "x[0][i] = []",
    ],
)
def test_other_brackets_are_text(text: str) -> None:
    assert strip(text) == text


def test_an_unclosed_bracket_does_not_swallow_the_markers_after_it() -> None:
    died = "Died [NA] in London [Q1, place of death: London]."
    parsed = parse(f"Born [Q1, place of birth: Rome. {died}")
    assert parsed.citations == (cite("Q1", "place of death", "London"),)
    assert [marker.na for marker in parsed.markers] == [True, False]


def test_known_triples_decide_where_values_end() -> None:
    known = [
        Triple(subject="Ann", subject_id="Q1", property="motto", value="Stop, note: look; listen"),
        Triple(subject="Ann", subject_id="Q1", property="works, early", value="A, b: c"),
    ]
    bracket = "[Q1, motto: Stop, note: look; listen, works, early: A, b: c]"
    assert parse(bracket, known).citations == tuple(triple.citation for triple in known)
    assert parse("[motto: Stop]", known).citations == (cite("", "motto", "Stop"),)
    assert parse("[Anyone, says: this]", known).citations == ()


def test_markers_belong_to_the_sentence_before_them() -> None:
    parsed = parse("One [NA]. Two. [Q1, a: b] Three [Q1, c: d].")
    assert parsed.clean == "One. Two. Three."
    found = [parsed.within(start, end) for start, end in ((0, 4), (5, 9), (10, 16))]
    assert [len(markers) for markers in found] == [1, 1, 1]
    assert found[1][0].citations == (cite("Q1", "a", "b"),)


def test_inserted_markers_render_in_place() -> None:
    markers = [Marker(na=True, at=20), Marker(citations=(cite("Q1", "name", "Ann"),), at=3)]
    parsed = insert("Ann was born in Rome.", markers)
    assert parsed.marked == "Ann [Q1, name: Ann] was born in Rome [NA]."
    assert parse(parsed.marked).clean == parsed.clean


@given(st.text(alphabet="[]\\, :;NAQ1ab\n \té", max_size=80) | st.text())
def test_parsing_is_total_and_loses_nothing(text: str) -> None:
    parsed = parse(text)
    assert render(parsed) == text
    assert parse(text, [Triple(subject="a", property="b", value="N, A: 1")]).marked == text


parts = st.text(alphabet="ab1 ,:;[]\\NAQé\n'", min_size=1, max_size=20).filter(
    lambda part: part == part.strip() and part.strip() != ""
)
entities = st.from_regex(r"Q[1-9][0-9]{0,6}", fullmatch=True)


@given(st.lists(st.builds(Citation, entity=entities, property=parts, value=parts), min_size=1))
@example([Citation(entity="Q1", property="1", value="[Q1,")])
def test_any_citation_can_be_written_and_read_back(citations: list[Citation]) -> None:
    bracket = render_marker(citations)
    assert parse(f"A claim {bracket}.").citations == tuple(citations)


@pytest.mark.parametrize(
    "hostile",
    ["[" * 10_000, "]" * 10_000, "[" * 30_000 + "]" * 30_000, "[Q1, " * 50_000,
     "[Q1, a: b" + "; a" * 30_000 + "]", "[x" + ", y" * 30_000 + "]", "[Q1, a: b] " * 15_000,
     "\\" * 300_000, "  \t" * 30_000 + "[NA]", "[" + "[NA]" * 30_000],
    ids=range(10),
)  # fmt: skip
def test_hostile_text_parses_in_linear_time(hostile: str) -> None:
    known = [Triple(subject="x", property="a", value="b; a; a; a")]
    began = time.process_time()
    assert render(parse(hostile, known)) == hostile
    assert time.process_time() - began < 8  # below 1 s; a quadratic parser needs minutes
