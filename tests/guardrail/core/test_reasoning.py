"""Reasoning in the text of an answer is left out, however the text comes."""

import time

import pytest

from guardrail.core.incoming import ReasoningFilter, without_reasoning

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
