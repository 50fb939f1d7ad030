"""Sentences with evidence and its counterfactual."""

import random

import pytest
import torch

from judges.window_reader import Claim
from training.counterfactual import Pieces, counterfactuals
from training.kit import PAIRED, Item, drawn
from training.run import contrast, gaps

WORDS = """
<s> </s> , : fjell tarn alp ##en costs weighs euros kg 20 30 2 . 5 9 ##5 and the is red blue
""".split()  # noqa: SIM905
IDS = {word: number for number, word in enumerate(WORDS)}
PIECES = Pieces(IDS)


def ids(text: str) -> tuple[int, ...]:
    return tuple(IDS[word] for word in text.split())


def claim(text: str) -> Claim:
    return Claim((0, 0, *ids(text), 0), 2, len(text.split()))


def item(windows: list[str], claims: list[tuple[str, int]]) -> Item:
    texts, labels = zip(*claims, strict=True)
    return Item(tuple(map(ids, windows)), tuple(map(claim, texts)), labels, True)


def shown(made: Item) -> tuple[list[str], list[tuple[str, int]]]:
    """Windows and labelled sentences as text."""

    def text(some: tuple[int, ...]) -> str:
        return " ".join(WORDS[number] for number in some)

    sentences = [text(one.ids[one.start : one.start + one.length]) for one in made.claims]
    return [*map(text, made.windows)], sorted(zip(sentences, made.labels, strict=True))


def test_two_numbers_change_places_in_evidence_and_sentence():
    plain = item(["fjell costs 20", "tarn costs 30"], [("fjell costs 20", 1)])
    [(before, after)] = counterfactuals([plain], PIECES, seed=1)
    assert shown(before) == (
        ["fjell costs 20", "tarn costs 30"],
        [("fjell costs 20", 1), ("fjell costs 30", 6)],
    )
    assert shown(after) == (
        ["fjell costs 30", "tarn costs 20"],
        [("fjell costs 20", 6), ("fjell costs 30", 1)],
    )


def test_two_values_of_a_subject_change_places():
    plain = item(
        ["<s> fjell , alp : red . </s> fjell , tarn : blue . </s>"], [("fjell is the red alp", 1)]
    )
    [(_, after)] = counterfactuals([plain], PIECES, seed=1)
    assert shown(after) == (
        ["<s> fjell , alp : blue . </s> fjell , tarn : red . </s>"],
        [("fjell is the blue alp", 1), ("fjell is the red alp", 6)],
    )


def test_the_words_by_which_a_twin_differs_are_renamed_in_the_evidence():
    sentences = [("the fjell is red and costs 20", 1), ("the fjell is blue and costs 20", 4)]
    [(before, after)] = counterfactuals(
        [item(["fjell is red", "fjell costs 20"], sentences)], PIECES, seed=1
    )
    assert shown(before)[0] == ["fjell is red", "fjell costs 20"]
    assert shown(after) == (
        ["fjell is blue", "fjell costs 20"],
        [("the fjell is blue and costs 20", 1), ("the fjell is red and costs 20", 6)],
    )


@pytest.mark.parametrize(
    ("windows", "claims"),
    [
        (["fjell costs 20", "tarn costs 30"], [("fjell costs 20", 2)]),  # no right sentence
        (["fjell costs 20"], [("fjell costs 20", 1)]),  # one number alone
        (["fjell costs 20", "tarn costs 2 . 5"], [("fjell costs 20", 1)]),  # another form
        (["fjell costs 20", "tarn costs 30"], [("fjell costs 20 and tarn costs 30", 1)]),  # both
        (
            ["fjell is red"],
            [("the tarn is the alp ##en", 1), ("the tarn is the alp", 4)],
        ),  # a piece
    ],
)
def test_evidence_that_cannot_be_changed_so_has_no_counterfactual(windows, claims):
    assert not [*counterfactuals([item(windows, claims)], PIECES, seed=1)]


def test_a_piece_of_a_word_or_number_is_no_place_of_it():
    text = ids("alp ##en costs 2 . 5 euros and alp costs 5")
    assert PIECES.places(text, ids("alp")) == [8]
    assert PIECES.places(text, ids("5")) == [10]
    assert PIECES.numbers(text) == [ids("2 . 5"), ids("5")]


def test_a_pair_is_drawn_together_with_the_same_sentences():
    plain = item(["fjell costs 20", "tarn costs 30"], [("fjell costs 20", 1)])
    pairs = [one for pair in counterfactuals([plain], PIECES, seed=1) for one in pair]
    made = drawn({PAIRED: pairs, "more": [plain]}, {PAIRED: 4, "more": 1}, chooser=random.Random(2))
    pairs_drawn = [group for group in (next(made) for _ in range(40)) if len(group) == 2]
    assert pairs_drawn
    for one, other in pairs_drawn:
        assert one.claims == other.claims
        assert {*zip(one.labels, other.labels, strict=True)} == {(1, 6), (6, 1)}


def test_the_contrast_falls_as_the_right_evidence_gains():
    plain = item(["fjell costs 20", "tarn costs 30"], [("fjell costs 20", 1)])
    [pair] = counterfactuals([plain], PIECES, seed=1)
    right = torch.tensor([[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 2, 0, 0], [2, 0, 0, 0]])
    [first] = [n for n, label in enumerate(pair[0].labels) if label == 1]
    logits = right if first == 0 else right.flip(0)
    assert contrast(logits, pair) < contrast(torch.zeros(4, 4), pair) < contrast(-logits, pair)
    assert contrast(logits[:2], [pair[0]]) == 0
    assert (gaps(logits, pair) > 0).all()
