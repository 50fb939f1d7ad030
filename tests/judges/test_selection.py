from __future__ import annotations

import os
import subprocess
import sys
import time

from judges.selection import choose, split_sentences

TEXT = (
    "Dr. Ada B. Bryn was born in Rome in 1593. The weather was mild. Her father was a painter!\n"
    "The weather changed. She moved to Naples."
)


def test_sentences_end_at_full_stops_and_line_breaks_but_not_at_abbreviations() -> None:
    assert split_sentences(TEXT) == [
        "Dr. Ada B. Bryn was born in Rome in 1593.",
        "The weather was mild.",
        "Her father was a painter!",
        "The weather changed.",
        "She moved to Naples.",
    ]
    assert split_sentences(" \n ") == []


def test_each_part_of_a_claim_gets_its_sentence_in_the_order_of_the_text() -> None:
    sentences = split_sentences(TEXT)
    claim = "She moved to Naples and was born in Rome"
    assert choose(sentences, claim, [8] * 5, room=16) == (0, 4)
    assert choose(sentences, claim, [8] * 5, room=40) == (0, 1, 2, 3, 4)


def test_what_many_sentences_say_does_not_single_one_out() -> None:
    sentences = ["The weather was mild.", "The weather was wet.", "The mayor was wet."]
    assert choose(sentences, "the mayor and the weather", [5] * 3, room=5) == (2,)


def test_a_sentence_longer_than_the_room_is_read_where_it_is_the_only_one() -> None:
    assert choose(["Rome.", "Born in Rome in 1593."], "born in 1593", [2, 8], room=4) == (1,)
    assert choose([], "anything", [], room=4) == ()


def test_a_sentence_too_long_for_what_is_left_is_passed_over() -> None:
    sentences = ["Born in Rome.", "Rome, where she was born in 1593.", "Naples."]
    assert choose(sentences, "born in Rome", [4, 9, 2], room=6) == (0, 2)


def test_evidence_of_thousands_of_sentences_is_chosen_from_at_once() -> None:
    sentences = [f"Sentence {number} tells of Rome." for number in range(5_000)]
    began = time.process_time()
    assert 4_711 in choose(sentences, "What 4711 tells", [8] * 5_000, room=80)
    assert time.process_time() - began < 10.0


def test_the_choice_does_not_hang_on_the_order_of_a_set() -> None:
    """Sums of the same weights in another order differ in the last digit, which would tell."""
    script = (
        "import random; from judges.selection import choose; draw = random.Random(1).choices\n"
        "words = [f'w{n}' for n in range(8)]\n"
        "for _ in range(60):\n"
        "    texts = [' '.join(draw(words, k=5)) for _ in range(30)]\n"
        "    print(choose(texts, ' '.join(words), [5] * 30, 60))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1
