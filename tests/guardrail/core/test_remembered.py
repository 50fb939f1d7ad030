"""Memory that whoever writes the evidence cannot fill."""

import tracemalloc

from guardrail.core.text.names import label_in
from guardrail.core.text.units import cues
from guardrail.core.text.words import LONGEST, content_stems, property_words, remembered, tokenise


def test_short_texts_are_remembered_and_long_ones_are_not() -> None:
    asked = []

    @remembered(2)
    def length(text: str) -> int:
        """Its length."""
        asked.append(text)
        return len(text)

    short, long = "a" * LONGEST, "a" * (LONGEST + 1)
    assert [length(short), length(short), length(long), length(long)] == [128, 128, 129, 129]
    assert asked == [short, long, long]


def test_labels_of_any_length_leave_no_memory_behind() -> None:
    tokens = tokenise("The Fjell 3 costs 40 euros.")
    tracemalloc.start()
    try:
        for number in range(200):
            label = f"{number} {'ab ' * 650}"
            label_in("The Fjell 3 costs 40 euros.", tokens, label)
            content_stems(label)
            property_words(label)
            cues(label)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2_000_000
