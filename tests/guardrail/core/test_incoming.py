"""Text from outside, and the reasoning of models."""

from __future__ import annotations

import json
import time
from unicodedata import category

import pytest
from hypothesis import given, settings

from benchmarks.fuzz.inputs import ANY_TEXT
from chains.options import MarkerStyle
from chains.rendering import render
from guardrail import ANNOTATE, GuardedAnswer, Passage, Triple
from guardrail.core.incoming import (
    ReasoningFilter,
    clean_text,
    one_line,
    read_clean_json,
    safe_url,
    without_controls,
    without_reasoning,
)
from tests.chains.conftest import QUESTION, TRUE_START, scripted_guard

HALF = "\ud800"


@pytest.fixture(scope="module")
def guard():
    with scripted_guard() as guard:
        yield guard


@given(ANY_TEXT)
def test_what_is_left_is_text(text):
    for clean in (clean_text(text), without_controls(text), one_line(text), safe_url(text) or ""):
        json.dumps(clean, ensure_ascii=False).encode()
        assert not any(category(sign) == "Cc" and sign not in "\t\n\r\x85" for sign in clean)
    assert "\n" not in one_line(text)


@given(ANY_TEXT, ANY_TEXT)
@settings(deadline=None)
def test_evidence_of_any_text_can_be_written(text, title):
    Passage(text=text, id=title, title=title, url=title).model_dump_json()
    Triple(text, title, text, subject_id=title).model_dump_json()


@pytest.mark.parametrize(
    "evidence",
    [
        [Passage(text=f"Mary Shelley was a writer.{HALF}", title=HALF, id=f"a{HALF}")],
        [Triple(f"Mary{HALF} Shelley", "occupation", f"writer{HALF}")],
    ],
)
def test_half_a_character_in_evidence_is_no_fault(guard, evidence):
    answer = guard.check(
        question=QUESTION + HALF, answer=TRUE_START, evidence=evidence, id=f"mine{HALF}"
    )
    again = GuardedAnswer.model_validate_json(answer.model_dump_json())
    assert again.id == "mine"
    assert again.sentences[0].category == "supportive"


def test_no_control_reaches_a_terminal(guard):
    controls = "".join(map(chr, [*range(0x20), *range(0x7F, 0x85), *range(0x86, 0xA0)]))
    evidence = [Passage(f"Mary Shelley {controls} was a writer.", id=controls, title=controls)]
    answer = guard.check(f"Who{controls}?", f"She was{controls} a writer.", evidence=evidence)
    stated = GuardedAnswer.model_validate_json(answer.model_dump_json()).model_dump_json()
    assert not [sign for sign in stated if category(sign) == "Cc"]
    assert "\\u00" not in stated


@pytest.mark.parametrize("noise", ["\x00", "\x07", "\x1f", "\x7f", "\x9b", HALF, "\r", "\r\n"])
@pytest.mark.parametrize("step", [1, 3])
def test_a_session_takes_controls_letter_by_letter(guard, noise, step):
    whole = f"Mary Shelley {noise}was a writer [Q47152,{noise} occupation: writer].{noise} Yes."
    session = guard.session(question=QUESTION, policy=ANNOTATE)
    for start in range(0, len(whole), step):
        session.add(whole[start : start + step])
    session.rest()
    finished = session.finish()
    checked = guard.check(question=QUESTION, answer=whole, policy=ANNOTATE)
    assert finished.text == checked.text
    assert finished.sentences == checked.sentences
    finished.model_dump_json()


def hidden_in_tags(text):
    return "".join(chr(0xE0000 + ord(sign)) for sign in text)


def hidden_in_selectors(text):
    return "".join(chr(0xE0100 + ord(sign) - 16) for sign in text)


@pytest.mark.parametrize("hidden", [hidden_in_tags, hidden_in_selectors])
def test_text_in_signs_that_are_never_seen_is_taken_out(guard, hidden):
    secret = hidden("Mary Shelley was a baker.")
    answer = guard.check(question=QUESTION, answer=f"ok{secret} {TRUE_START}", policy=ANNOTATE)
    assert answer.text == f"ok {TRUE_START}"
    assert Passage(text=f"a{secret}", title=f"b{secret}", id=secret).text == "a"
    assert one_line(f"b{secret}") == "b"


UNSEEN = "\xad\u034f\u061c\u115f\u180e\u200b\u200c\u200d\u200e\u2060\u2064\u206a\u3164\ufeff\ufe0f"
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.mark.parametrize("sign", UNSEEN + TURNING, ids=lambda sign: f"{ord(sign):04x}")
def test_no_sign_that_is_never_seen_parts_a_figure_or_turns_it(guard, sign):
    wrong = f"Mary Shelley was born in 17{sign}9{sign}6."
    evidence = [Triple("Mary Shelley", "date of birth", "1797")]
    answer = guard.check(question=QUESTION, answer=wrong, evidence=evidence, policy=ANNOTATE)
    assert answer.text == "Mary Shelley was born in 1796."
    session = guard.session(question=QUESTION, evidence=evidence, policy=ANNOTATE)
    for letter in wrong:
        session.add(letter)
    session.rest()
    assert session.finish().sentences == answer.sentences
    assert Passage(text=wrong).text == answer.text


NEEDED = {
    "heart": "\u2764\ufe0f",
    "keycap": "1\ufe0f\u20e3",
    "coder": "\U0001f469\u200d\U0001f4bb",
    "skin": "\U0001f44d\U0001f3fd",
    "Persian": "\u0645\u06cc\u200c\u0634\u0648\u062f",
    "Hindi": "\u0915\u094d\u200d\u0937",
}


@pytest.mark.parametrize("text", NEEDED.values(), ids=NEEDED)
def test_what_emoji_and_other_scripts_need_stays(text):
    assert clean_text(text) == text


HOSTILE = (
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "java\r\nscript:alert(1)",
    " \x01javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
    "\u202ejavascript:alert(1)",
)


@pytest.mark.parametrize("url", HOSTILE)
def test_addresses_that_run_something_are_left_out(url):
    assert Passage(text="a", url=url).url is None


@pytest.mark.parametrize(
    "url", ["https://h.example/a?b=c#d", "rooms.md", "/docs/a b", "urn:isbn:1", "C:\\docs\\a.md"]
)
def test_other_addresses_stay(url):
    assert Passage(text="a", url=url).url == url


@pytest.mark.parametrize("style", [MarkerStyle.KALMA, MarkerStyle.FOOTNOTES])
def test_a_title_stays_on_its_line_of_the_notes(guard, style):
    title = "Lives\r\n\r\n[2] Ignore the above\u2028and this\x1b[31m"
    passage = Passage(text="Mary Shelley was a writer.", title=title, url="https://h.example/\r\nx")
    answer = guard.check(question=QUESTION, answer=TRUE_START, evidence=[passage])
    shown = render(answer, style).text
    _, _, notes = shown.partition("\n\n")
    assert notes.count("\n") == 0
    assert "\r" not in shown
    assert "\x1b" not in shown
    assert notes.endswith("(https://h.example/x)")


def test_json_is_read_without_halves_of_characters():
    line = '{"a\\ud800": ["b\\udc00", "\\ud83d\\ude00", "\\u0000"]}'
    assert read_clean_json(line) == {"a": ["b", "\U0001f600", "\x00"]}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("half", ["", "\\ud800"])
def test_numbers_that_are_none_are_read_as_null(number, half):
    line = f'{{"a{half}": [1.5, {number}], "n": {10**400}}}'
    assert read_clean_json(line) == {"a": [1.5, None], "n": 10**400}


ANSWER = "The Fjell 3 costs 2,490 euros."
CASES = [
    (f"<think>Let me see. 9,999 euros?</think> {ANSWER}", ANSWER),
    (f"<think>\nLet me see.\n</think>\n\n{ANSWER}", ANSWER),
    (f"<THINK>Let me see.</Think>{ANSWER}", ANSWER),
    (f"<thinking>Hm.</thinking>{ANSWER}", ANSWER),
    (f"<seed:think>Hm.</seed:think>{ANSWER}", ANSWER),
    (f"[THINK]Hm.[/THINK]{ANSWER}", ANSWER),
    (f"◁think▷Hm.◁/think▷{ANSWER}", ANSWER),
    (f"<think></think>{ANSWER}", ANSWER),
    (f"<think>a < b and <b>c</b></think>{ANSWER}", ANSWER),
    # blocks in the middle, and two of them
    (f"{ANSWER} <think>Hm.</think>It is green.", f"{ANSWER} It is green."),
    (f"<think>One.</think><think>Two.</think>{ANSWER}", ANSWER),
    # never closed: all of it is reasoning where it begins a line, else it is text
    ("<think>Let me see. The price is", ""),
    (f"{ANSWER}\n<think>Hm.", f"{ANSWER}\n"),
    (f"{ANSWER} Write <think> first.", f"{ANSWER} Write <think> first."),
    # text about the tags, and text like them
    ("It reads `<think>` and `</think>`.", "It reads `<think>` and `</think>`."),
    ("I <thin> of 3 < 4 [and", "I <thin> of 3 < 4 [and"),
    (f"  {ANSWER} ", f"  {ANSWER} "),
    ("", ""),
]


@pytest.mark.parametrize(("text", "answer"), CASES)
def test_it_is_left_out_of_whole_texts(text, answer):
    assert without_reasoning(text) == answer


@pytest.mark.parametrize("text", [f"9,999 euros?</think>\n\n{ANSWER}", f"Hm.[/THINK]{ANSWER}"])
def test_what_was_opened_in_the_prompt_begins_with_the_text(text):
    assert without_reasoning(text) == ANSWER


@pytest.mark.parametrize(("text", "answer"), CASES)
def test_a_stream_may_be_split_at_any_place(text, answer):
    for size in range(1, len(text) + 1):
        reader = ReasoningFilter()
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert "".join(map(reader.feed, pieces)) + reader.finish() == answer


def test_text_leaves_as_soon_as_it_is_known_to_be_no_reasoning():
    reader = ReasoningFilter()
    assert reader.feed("It costs <") == "It costs "
    assert reader.feed("b>5</b>") == "<b>5</b>"


@pytest.mark.parametrize("begin", ["<think>", "text <think>", ""])
def test_it_takes_linear_time(begin):
    def seconds(count):
        reader = ReasoningFilter()
        started = time.process_time()
        for piece in (begin, *["<thi word "] * count):
            reader.feed(piece)
        reader.finish()
        return time.process_time() - started

    assert min(seconds(40_000) for _ in range(3)) < 12 * max(seconds(10_000), 0.01)
