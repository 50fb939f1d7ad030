"""Rows that share evidence as word pieces, and batches in which many stand side by side."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer
from torch import Tensor

from guardrail.core.text.canonical import canonical
from judges.heads import HEADS, STATEMENT_MARK
from training.reader import Packed
from training.rows import Row, nli_targets

__all__ = [
    "Batch",
    "Group",
    "Judged",
    "Window",
    "batches",
    "by_evidence",
    "encode_groups",
    "load_tokenizer",
]

LONGEST_WINDOW = 256
"""Word pieces of a window, [CLS] and [SEP] included."""

LONGEST_SENTENCE = 160
"""Word pieces of a sentence; what is longer is cut."""

LONGEST_CONTEXT = 80
"""Word pieces of the context before it, whose end is kept."""

SEQUENCE = 448
"""Word pieces that stand side by side: attention's cost grows with them, padding shrinks."""

MOST_WINDOWS = 12
"""Windows of a group; further ones are left out, those that nothing cites first."""


class Window(NamedTuple):
    """Word pieces of a window, and by number of each statement in the row the place of its mark."""

    ids: NDArray[np.uint16]
    marks: dict[int, int]

    def stretches(self) -> dict[int, tuple[int, int]]:
        """By number of each statement the place of its mark, and that past its last word."""
        ends = [*self.marks.values(), len(self.ids) - 1][1:]
        return dict(zip(self.marks, zip(self.marks.values(), ends, strict=True), strict=True))


class Judged(NamedTuple):
    """A sentence beside its windows, and what is right of it.

    Attributes:
        ids: [CLS], the sentence, [SEP], and its context with [SEP].
        context: Number of word pieces that are context.
        words: By place in ``ids``, the index into ``TOKEN_HEADS["words"]``.
        statements: By number of the statement, the index into ``TOKEN_HEADS["statements"]``.
        nli: Indices that count as right; empty for none.
        attribution: Likewise.
        complexity: Index, or ``NO_LABEL``.
        claim: Index, or ``NO_LABEL``.
    """

    ids: NDArray[np.uint16]
    context: int
    words: dict[int, int]
    statements: dict[int, int]
    nli: tuple[int, ...]
    attribution: tuple[int, ...]
    complexity: int
    claim: int


class Group(NamedTuple):
    """Windows of one evidence, and the sentences that read all of them."""

    source: str
    windows: tuple[Window, ...]
    judged: tuple[Judged, ...]

    @property
    def length(self) -> int:
        """Word pieces of windows and sentences."""
        windows = sum(len(window.ids) for window in self.windows)
        return windows + sum(len(item.ids) for item in self.judged)


class Batch(NamedTuple):
    """Sequences with what is right of their k sentences.

    Attributes:
        packed: What the model reads.
        nli: bool [k, 3], the labels that count as right; no True for no target.
        attribution: bool [k, 4], likewise.
        complexity: int64 [k], or ``NO_LABEL``.
        claim: int64 [k], or ``NO_LABEL``.
        words: int64 [w].
        word_shares: float32 [w], one over the words of their sentence.
        statements: int64 [p].
        statement_shares: float32 [p], one over the statements beside their sentence.
    """

    packed: Packed
    nli: Tensor
    attribution: Tensor
    complexity: Tensor
    claim: Tensor
    words: Tensor
    word_shares: Tensor
    statements: Tensor
    statement_shares: Tensor

    def to(self, device: str) -> Batch:
        """The batch on a device."""
        packed = Packed(*(item.to(device, non_blocking=True) for item in self.packed))
        return Batch(packed, *(item.to(device, non_blocking=True) for item in self[1:]))


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a word-piece tokenizer that neither cuts nor pads.

    Args:
        path: A ``tokenizer.json``.
    """
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def encode_groups(tokenizer: Tokenizer, rows: Sequence[Row]) -> list[Group]:
    """Split rows into word pieces; neighbours with the same evidence share its windows.

    Args:
        tokenizer: A tokenizer that neither cuts nor pads.
        rows: The rows.
    """
    encoder = _Encoder(tokenizer)
    return [group for some in by_evidence(rows) for group in encoder.groups(some)]


def by_evidence(rows: Sequence[Row]) -> list[Sequence[Row]]:
    """Neighbouring rows with the same evidence, together."""
    found: list[Sequence[Row]] = []
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or _evidence(rows[end]) != _evidence(rows[start]):
            found.append(rows[start:end])
            start = end
    return found


def _evidence(row: Row) -> tuple[object, ...]:
    return row.source, row.premise, row.statements, row.windows


class _Encoder:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        ids = [tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]", STATEMENT_MARK)]
        if None in ids[:2]:
            raise ValueError("the tokenizer has no [CLS] and [SEP] tokens")
        self._start, self._end, self._mark = ids

    def groups(self, rows: Sequence[Row]) -> Iterator[Group]:
        """One group, or several where the sentences do not fit one sequence."""
        cited = frozenset(place for row in rows for place in row.cited or ())
        windows = self._windows(rows[0], cited)
        known = {number for window in windows for number in window.marks}
        taken = sum(len(window.ids) for window in windows)
        some: list[Judged] = []
        length = taken
        for row in rows:
            one = self._judged(row, known)
            if some and length + len(one.ids) > SEQUENCE:
                yield Group(rows[0].source, windows, tuple(some))
                some, length = [], taken
            some.append(one)
            length += len(one.ids)
        yield Group(rows[0].source, windows, tuple(some))

    def _pieces(self, texts: Sequence[str]) -> list[Encoding]:
        forms = [canonical(text).text for text in texts]
        return self._tokenizer.encode_batch(forms, add_special_tokens=False)

    def _windows(self, row: Row, cited: frozenset[int]) -> tuple[Window, ...]:
        room = LONGEST_WINDOW - 2
        if not row.statements:
            ids = self._pieces([row.premise])[0].ids
            cuts = range(0, max(1, len(ids)), room)
            return tuple(self._window(ids[cut : cut + room], {}) for cut in cuts)
        if self._mark is None:
            raise ValueError(f"the tokenizer has no {STATEMENT_MARK} to number statements with")
        made: list[Window] = []
        ids, marks, last = list[int](), dict[int, int](), -1
        for number, pieces in enumerate(self._pieces(row.statements)):
            own = [self._mark, *pieces.ids[: room - 1]]
            wanted = row.windows[number] if row.windows else 0
            if ids and (wanted != last or len(ids) + len(own) > room):
                made.append(self._window(ids, marks))
                ids, marks = [], {}
            marks[number] = 1 + len(ids)
            ids += own
            last = wanted
        made.append(self._window(ids, marks))
        if len(made) > MOST_WINDOWS:
            best = sorted(range(len(made)), key=lambda i: (not cited & made[i].marks.keys(), i))
            made = [made[i] for i in sorted(best[:MOST_WINDOWS])]
        return tuple(made)

    def _window(self, ids: Sequence[int], marks: dict[int, int]) -> Window:
        return Window(np.array([self._start, *ids, self._end], np.uint16), marks)

    def _judged(self, row: Row, known: set[int]) -> Judged:
        said, before = self._pieces([row.hypothesis, row.context])
        context = [*before.ids[-LONGEST_CONTEXT:], self._end] if before.ids else []
        sentence = said.ids[:LONGEST_SENTENCE]
        ids = [self._start, *sentence, self._end, *context]
        against = row.nli == HEADS["nli"].index("contradiction")
        words: dict[int, int] = {}
        if row.span is not None:
            first, last = row.span or (0, 0)
            form = canonical(row.hypothesis)
            for place, piece in enumerate(said.offsets[: len(sentence)], start=1):
                start, end = form.original(*piece)
                words[place] = (2 if against else 1) if first < end and start < last else 0
        statements: dict[int, int] = {}
        if row.cited is not None:
            bearing = 2 if against else 1
            statements = {number: bearing if number in row.cited else 0 for number in known}
        return Judged(
            np.array(ids, np.uint16),
            len(context),
            words,
            statements,
            nli_targets(row),
            row.attribution,
            row.complexity,
            row.claim,
        )


def batches(
    groups: Sequence[Group], *, tokens: int, sequence: int = SEQUENCE, seed: int | None = None
) -> Iterator[Batch]:
    """Pack groups into sequences, and sequences into batches.

    Args:
        groups: The groups, in the order in which they should be met.
        tokens: Padded word pieces of a batch.
        sequence: Most word pieces of a sequence, where no single group is longer.
        seed: Shuffles batches of similar length; None keeps the order of the groups.
    """
    shuffler = random.Random(seed)
    pool: list[list[Group]] = []
    sizes: list[int] = []
    for group in groups:
        for i, size in enumerate(sizes):
            if size + group.length <= sequence:
                pool[i].append(group)
                sizes[i] += group.length
                break
        else:
            pool.append([group])
            sizes.append(group.length)
        if len(pool) >= POOL:
            yield from _emit(pool, sizes, tokens, shuffler if seed is not None else None)
            pool, sizes = [], []
    yield from _emit(pool, sizes, tokens, shuffler if seed is not None else None)


POOL = 64
"""Sequences that are filled at the same time."""


def _emit(
    pool: list[list[Group]], sizes: list[int], tokens: int, shuffler: random.Random | None
) -> Iterator[Batch]:
    order = sorted(range(len(pool)), key=lambda i: -sizes[i])
    made: list[list[list[Group]]] = []
    longest = 0
    for i in order if shuffler is not None else range(len(pool)):
        longest = max(longest if made and made[-1] else 0, sizes[i])
        if not made or (len(made[-1]) + 1) * longest > tokens:
            made.append([])
            longest = sizes[i]
        made[-1].append(pool[i])
    if shuffler is not None:
        shuffler.shuffle(made)
    for some in made:
        yield _batch(some)


def _batch(sequences: Sequence[Sequence[Group]]) -> Batch:
    length = max(sum(group.length for group in groups) for groups in sequences)
    most_windows = max(sum(len(group.windows) for group in groups) for groups in sequences)
    most_judged = max(sum(len(group.judged) for group in groups) for groups in sequences)
    shape = (len(sequences), length)
    ids, types, positions = (np.zeros(shape, np.int64) for _ in range(3))
    windows, sentences = (np.zeros(shape, np.int64) for _ in range(2))
    reads = np.zeros((len(sequences), most_judged + 1, most_windows + 1), bool)
    first: list[int] = []
    tails: list[int] = []
    own: list[tuple[int, int]] = []
    words: list[tuple[int, int, float]] = []
    marks: list[tuple[int, int, int, int, float]] = []
    judged: list[Judged] = []
    for n, groups in enumerate(sequences):
        place, window_count, sentence_count = 0, 0, 0
        for group in groups:
            there: dict[int, tuple[int, int]] = {}
            beside = []
            for window in group.windows:
                end = place + len(window.ids)
                window_count += 1
                ids[n, place:end] = window.ids
                positions[n, place:end] = np.arange(end - place)
                windows[n, place:end] = window_count
                beside.append(window_count)
                for number, (at, until) in window.stretches().items():
                    there[number] = (n * length + place + at, n * length + place + until)
                place = end
            after = max(len(window.ids) for window in group.windows)
            for item in group.judged:
                end = place + len(item.ids)
                sentence_count += 1
                ids[n, place:end] = item.ids
                types[n, place:end] = 1
                types[n, end - item.context : end] = 2
                positions[n, place:end] = after + np.arange(end - place)
                sentences[n, place:end] = sentence_count
                reads[n, sentence_count, beside] = True
                first.append(n * length + place)
                tails.append(n * length + end - item.context - 1)
                own.append((n, sentence_count))
                at = n * length + place
                share = 1.0 / max(1, len(item.words))
                words += [(at + word, target, share) for word, target in item.words.items()]
                share = 1.0 / max(1, len(item.statements))
                marks += [
                    (*there[number], len(judged), target, share)
                    for number, target in item.statements.items()
                ]
                judged.append(item)
                place = end
    nli = np.zeros((len(judged), len(HEADS["nli"])), bool)
    attribution = np.zeros((len(judged), len(HEADS["attribution"])), bool)
    for k, item in enumerate(judged):
        nli[k, list(item.nli)] = True
        attribution[k, list(item.attribution)] = True
    packed = Packed(
        torch.from_numpy(ids),
        torch.from_numpy(types),
        torch.from_numpy(positions),
        torch.from_numpy(windows),
        torch.from_numpy(sentences),
        torch.from_numpy(reads),
        torch.tensor(first),
        torch.tensor(own),
        torch.tensor([item[0] for item in words], dtype=torch.int64),
        torch.tensor(tails),
        *(torch.tensor([item[i] for item in marks], dtype=torch.int64) for i in range(3)),
    )
    return Batch(
        packed,
        torch.from_numpy(nli),
        torch.from_numpy(attribution),
        torch.tensor([item.complexity for item in judged]),
        torch.tensor([item.claim for item in judged]),
        torch.tensor([item[1] for item in words], dtype=torch.int64),
        torch.tensor([item[2] for item in words]),
        torch.tensor([item[3] for item in marks], dtype=torch.int64),
        torch.tensor([item[4] for item in marks]),
    )
