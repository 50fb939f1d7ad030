from __future__ import annotations

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
