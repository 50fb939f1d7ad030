"""Splits texts and tokens: sentences, chunks of long evidence, windows of tokens, batches."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache, wraps
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from guardrail.core.text import sentences as parsed
from guardrail.core.text.lexicon import lexicon

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")
Owner = TypeVar("Owner")


def distinct(items: Sequence[Item]) -> tuple[list[Item], list[int]]:
    """The distinct items in order of first appearance, and the place of each input among them."""
    places: dict[Item, int] = {}
    inverse = [places.setdefault(item, len(places)) for item in items]
    return list(places), inverse


def each_once(
    method: Callable[[Owner, Sequence[Item]], list[Result]],
) -> Callable[[Owner, Sequence[Item]], list[Result]]:
    """Let a method on n items get each distinct item once; the result has the original order."""

    @wraps(method)
    def call(owner: Owner, items: Sequence[Item]) -> list[Result]:
        wanted, inverse = distinct(items)
        found = method(owner, wanted)
        return [found[place] for place in inverse]

    return call


def token_batches(lengths: Sequence[int], *, budget: int, rows: int) -> Iterator[list[int]]:
    """Group items so that a batch, padded to its longest item, stays within a token budget.

    Longest items come first: memory is at its highest in the first batch, and the last work of
    several workers is short.

    Args:
        lengths: Tokens of each item.
        budget: Maximum tokens of a batch, padding included; a longer item is a batch of its own.
        rows: Maximum items of a batch.

    Yields:
        Indices into ``lengths``.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) >= rows or (len(batch) + 1) * lengths[batch[0]] > budget):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


class PairWindow(NamedTuple):
    """A premise window and a hypothesis window that fit a model together.

    Attributes:
        premise: Token ids.
        hypothesis: Token ids.
        part: Number of the window of the hypothesis, from 0.
    """

    premise: Sequence[int]
    hypothesis: Sequence[int]
    part: int


def spans(length: int, size: int) -> list[tuple[int, int]]:
    """Cover ``length`` tokens by overlapping spans of at most ``size`` tokens.

    Neighbours share a quarter, so that a fact on a border is whole in one.

    Returns:
        (start, end) of each span in order; one span if all fits, also for length 0.
    """
    if size < 1:
        raise ValueError(f"a window holds at least one token, not {size}")
    if length <= size:
        return [(0, length)]
    step = max(1, size - size // 4)
    starts = range(0, length - size, step)
    return [(start, start + size) for start in starts] + [(length - size, length)]


def pair_windows(
    premise: Sequence[int], hypothesis: Sequence[int], capacity: int
) -> list[PairWindow]:
    """Cut a pair into windows of at most ``capacity`` tokens, special tokens not counted.

    The hypothesis stays whole if it takes at most half of the room. Every window of the
    hypothesis meets every window of the premise.
    """
    if len(premise) + len(hypothesis) <= capacity:
        return [PairWindow(premise, hypothesis, 0)]
    windows = []
    for part, (start, end) in enumerate(spans(len(hypothesis), max(1, capacity // 2))):
        piece = hypothesis[start:end]
        for low, high in spans(len(premise), capacity - len(piece)):
            windows.append(PairWindow(premise[low:high], piece, part))
    return windows


def deciding_windows(
    owners: Sequence[tuple[int, int]], undecided: NDArray[np.float64], support: NDArray[np.float64]
) -> dict[int, int]:
    """Index of the window that decides each pair, by the number of the pair.

    For each part of the hypothesis it is the premise window that leaves least undecided; over the
    parts, the one with the least support, since a text holds only if all of it does.

    Args:
        owners: Pair and part of its hypothesis of each window.
        undecided: Probability that a window decides nothing, [n].
        support: Probability that a window supports the hypothesis, [n].
    """
    best: dict[tuple[int, int], int] = {}
    for window, owner in enumerate(owners):
        if owner not in best or undecided[window] < undecided[best[owner]]:
            best[owner] = window
    found: dict[int, int] = {}
    for (pair, _), window in best.items():
        if pair not in found or support[window] < support[found[pair]]:
            found[pair] = window
    return found


def sentence_chunks(
    text: str,
    most: int,
    sizes: Callable[[Sequence[str]], Sequence[int]],
    *,
    joint: str | None = None,
) -> list[str]:
    """Cut a text into chunks of whole sentences.

    A sentence that is longer than a chunk is cut between its words, so that all of it is read.

    Args:
        text: The text.
        most: Maximum size of a chunk.
        sizes: Sizes of n sentences.
        joint: Joins the sentences of a chunk; None for the original space between them.
    """
    sentences = parsed.split_sentences(text)
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
            words = sentence.text.split()
            each = max(1, -(-len(words) // -(-size // most)))
            chunks += [" ".join(words[i : i + each]) for i in range(0, len(words), each)]
            continue
        if not held:
            start, room = sentence.start, most
        held.append(sentence.text)
        end = sentence.end
        room -= size
    close()
    return chunks or [text.strip()]


def even_chunks(text: str, words: int) -> list[str]:
    """Cut a text into chunks with the same number of sentences, of about ``words`` words each."""
    sentences = [sentence.text for sentence in parsed.split_sentences(text)]
    wanted = len(text.split()) // words + 1
    each = max(1, len(sentences) // wanted)
    chunks = [" ".join(sentences[i : i + each]) for i in range(0, len(sentences), each)]
    return chunks or [text.strip()]


# --- Sentences without a parser ------------------------------------------------------------------


def choose(
    sentences: Sequence[str], claim: str, lengths: Sequence[int], room: int
) -> tuple[int, ...]:
    """Choose the sentences of long evidence that are about a claim, so that they are read together.

    A judge with a short window reads long evidence piece by piece; if the parts of a claim are
    stated far from each other, no piece holds them all. Until the room is full, the sentence is
    chosen next that has most of the claim's words that are not covered yet, weighted by rarity.

    Args:
        sentences: All sentences of the evidence.
        claim: The sentence to judge.
        lengths: Tokens of each sentence.
        room: Tokens that may be chosen.

    Returns:
        Places of the chosen sentences, in the order of the text; at least one, which may be
        longer than the room.
    """
    words = [_words(sentence) for sentence in sentences]
    counts = Counter(word for found in words for word in found)
    weights = {
        word: math.log(1 + len(sentences) / counts[word]) for word in _words(claim) & counts.keys()
    }
    chosen: list[int] = []
    left = set(range(len(sentences)))
    while left:
        best = max(left, key=lambda i: (math.fsum(weights.get(w, 0.0) for w in words[i]), -i))
        chosen.append(best)
        room -= lengths[best]
        left = {i for i in left if i != best and lengths[i] <= room}
        for word in words[best] & weights.keys():
            weights[word] *= 0.4
    return tuple(sorted(chosen))


def split_sentences(text: str) -> list[str]:
    """Split a text at line breaks and after full stops, abbreviations excepted."""
    found = []
    start = 0
    for match in sentence_ends(text, lines=True):
        found.append(text[start : match.start()].strip())
        start = match.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def sentence_ends(text: str, *, lines: bool = False) -> Iterator[re.Match[str]]:
    """The gaps between sentences, by punctuation alone; with a parse see ``core.text.sentences``.

    A gap is closing marks and spaces; after an abbreviation there is none.

    Args:
        text: The text.
        lines: Whether a line break ends a sentence as well.
    """
    stop = r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])"
    for match in re.finditer(rf"{stop}|\n+" if lines else stop, text):
        if not _abbreviation().search(text[max(0, match.start() - 6) : match.start()]):
            yield match


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))


@cache
def _abbreviation() -> re.Pattern[str]:
    words = "|".join(lexicon("abbreviations")["inner"])
    return re.compile(rf"\b(?:[A-Z]|{words})\.$")
