from __future__ import annotations

from training.encoder_data import Text, hold_out


def test_texts_of_one_group_stay_on_one_side() -> None:
    texts = [Text(f"group {row % 5}", (f"one {row}", "two")) for row in range(50)]
    kept, held = hold_out(texts, share=0.4, seed=1)
    assert len(kept) + len(held) == 50
    assert len({text.group for text in held}) == 2
    assert not {text.group for text in kept} & {text.group for text in held}
