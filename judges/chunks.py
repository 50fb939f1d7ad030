"""Long evidence in chunks of whole sentences, as checkers of documents were trained to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from guardrail.core.text.sentences import split_sentences

__all__ = ["even_chunks", "sentence_chunks"]


def sentence_chunks(
    text: str,
    most: int,
    sizes: Callable[[Sequence[str]], Sequence[int]],
    *,
    joint: str | None = None,
) -> list[str]:
    """Cut a text into chunks of whole sentences; what fits is one chunk.

    A sentence that is longer than a chunk is cut between its words, so that all of it is read.

    Args:
        text: The text.
        most: Greatest size of a chunk.
        sizes: Sizes of n sentences.
        joint: Stands between the sentences of a chunk; None for what stands there in the text.
    """
    sentences = split_sentences(text)
    chunks: list[str] = []
    start = end = room = 0
    held: list[str] = []

    def close() -> None:
        if held:
            chunks.append(text[start:end] if joint is None else joint.join(held))
            held.clear()

    for sentence, size in zip(sentences, sizes([each.text for each in sentences]), strict=True):
        if held and size > room:
            close()
        if size > most:
            chunks += _pieces(sentence.text, -(-size // most))
            continue
        if not held:
            start, room = sentence.start, most
        held.append(sentence.text)
        end = sentence.end
        room -= size
    close()
    return chunks or [text.strip()]


def even_chunks(text: str, words: int) -> list[str]:
    """Cut a text into chunks of as many sentences each, of some 350 words in AlignScore."""
    sentences = [sentence.text for sentence in split_sentences(text)]
    wanted = len(text.split()) // words + 1
    each = max(1, len(sentences) // wanted)
    chunks = [" ".join(sentences[i : i + each]) for i in range(0, len(sentences), each)]
    return chunks or [text.strip()]


def _pieces(text: str, count: int) -> list[str]:
    """A text in ``count`` pieces of as many words each."""
    words = text.split()
    each = max(1, -(-len(words) // count))
    return [" ".join(words[i : i + each]) for i in range(0, len(words), each)]
