from __future__ import annotations

from training.encoder_data import Text, hold_out, split_sentences


def test_sentences_split_at_their_ends_and_keep_fragments_with_the_one_before() -> None:
    text = "The Odyssey is a poem . It was written in Greek , long ago . Yes ! He read it twice ."
    assert split_sentences(text) == (
        "The Odyssey is a poem .",
        "It was written in Greek , long ago . Yes !",
        "He read it twice .",
    )


def test_texts_of_one_group_stay_on_one_side() -> None:
    texts = [Text(f"group {row % 5}", (f"one {row}", "two")) for row in range(50)]
    kept, held = hold_out(texts, share=0.4, seed=1)
    assert len(kept) + len(held) == 50
    assert len({text.group for text in held}) == 2
    assert not {text.group for text in kept} & {text.group for text in held}
