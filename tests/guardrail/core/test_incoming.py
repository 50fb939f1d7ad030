"""One guard for text that comes in: what is no text is taken out, wherever it came from."""

import json
from unicodedata import category

import pytest
from hypothesis import given, settings

from benchmarks.fuzz.inputs import ANY_TEXT
from chains.rendering import MarkerStyle, render
from guardrail import ANNOTATE, GuardedAnswer, Passage, Triple
from guardrail.core.incoming import (
    clean_text,
    one_line,
    read_clean_json,
    safe_url,
    without_controls,
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
    told = GuardedAnswer.model_validate_json(answer.model_dump_json()).model_dump_json()
    assert not [sign for sign in told if category(sign) == "Cc"]
    assert "\\u00" not in told


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
