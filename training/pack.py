"""Builds the kit that training reads: ``python -m training pack``."""

from __future__ import annotations

import random
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tokenizers import Tokenizer

from guardrail.core.types import Verdict
from judges.batching import split_sentences
from judges.letters import readable
from judges.window_reader import OnnxReader, claims_of, windows_of
from training.counterfactual import Pieces, counterfactuals
from training.data import load_nli
from training.gathered import load_gathered
from training.grounding_rows import less_evidence
from training.kit import PAIRED, ROOM, Item, Kit, write_kit
from training.one_change import KIND, one_change
from training.recipe import SEED, load_rows, load_statements
from training.rows import NOT_CONTRADICTION, NOT_ENTAILMENT, Row
from training.statements import Statement, shared_statements
from training.window_model import LABELS, Sizes

__all__ = ["Packer", "pack_kit"]

MEASURED = ("snli_dev", "mnli_dev_matched", "vitaminc_real", "infotabs_dev", "tabfact", "summedits")
"""Sources whose validation rows are on the learning curve."""

MEASURED_ROWS = 300
"""Rows of each of them."""


def pack_kit(
    data: Path, base: Path, out: Path, *, shares: Mapping[str, float], most: Mapping[str, int]
) -> Kit:
    """Build the rows, tokenise them and write the kit.

    Args:
        data: The data folder.
        base: Folder of the published encoder: ``config.json``, ``tokenizer.json`` and
            ``model.safetensors``.
        out: Where the kit goes.
        shares: Share of each family in the sentences.
        most: Most rows of a family; all by default.
    """
    from safetensors.torch import load_file

    packer = Packer(base / "tokenizer.json")
    train, _ = load_statements(data)
    families = {
        "statements": packer.statements(item for item in train if not _is_hard(item)),
        "hard": packer.statements(item for item in train if _is_hard(item)),
        "copied": packer.statements(_copied(train)),
        "table_rows": packer.statements(_table_rows(train)),
    }
    twins = packer.statements(one_change(train, seed=SEED))
    families[PAIRED] = packer.counterfactual([*twins, *families["hard"], *families["statements"]])
    families[PAIRED] += packer.with_less_evidence(train)
    sources = frozenset(shares) - families.keys()
    by_source: dict[str, list[Row]] = defaultdict(list)
    for row in load_rows(data, seed=SEED, sources=sources | _BOTH_KINDS):
        by_source[_FAMILY.get(row.source, row.source)].append(row)
    chooser = random.Random(SEED)
    for name, rows in sorted(by_source.items()):
        families[PAIRED] += packer.revised(rows)[: most.get(name, 10**9) // 2 * 2]
        if name in shares:
            families[name] = packer.rows(
                chooser.sample(rows, min(len(rows), most.get(name, 10**9)))
            )
    validation = {
        part: packer.statements(shared_statements(data, part)) for part in ("valid", "valid_hard")
    }
    twins = packer.statements(one_change(shared_statements(data, "valid"), seed=SEED))
    validation["one_change"] = twins
    validation[PAIRED] = packer.counterfactual([*twins, *validation["valid_hard"]])
    validation[f"{PAIRED}, less evidence"] = packer.with_less_evidence(
        shared_statements(data, "valid")
    )
    held: dict[str, list[Row]] = defaultdict(list)
    for row in (*load_nli(data).validation, *load_gathered(data, seed=SEED).validation):
        held[row.source].append(row)
    validation[f"{PAIRED}, revised"] = packer.revised(held["vitaminc_real"])[: 2 * MEASURED_ROWS]
    for name in MEASURED:
        rows = chooser.sample(held[name], min(len(held[name]), MEASURED_ROWS))
        validation[name] = [item for row in rows for item in packer.rows([row])]
    state = {
        k: v for k, v in load_file(base / "model.safetensors").items() if v.is_floating_point()
    }
    kit = Kit(Sizes.read(base / "config.json"), state, families, dict(shares), validation)
    write_kit(out, kit)
    return kit


_FAMILY = {f"other_evidence_{kind}": "other_evidence" for kind in ("triples", "passages")}
_BOTH_KINDS = frozenset(_FAMILY)


def _is_hard(statement: Statement) -> bool:
    """Whether a statement was written for what judges find hard; see ``training.recipe``."""
    from training.recipe import HARD

    return statement.group.startswith(HARD)


def _copied(statements: Iterable[Statement], *, seed: int = SEED) -> Iterator[Statement]:
    """A sentence of the evidence as the sentence to judge, once in each set of passages."""
    chooser = random.Random(f"{seed}/copied")
    seen = set()
    for item in statements:
        if item.triples or item.group in seen:
            continue
        seen.add(item.group)
        place = chooser.randrange(len(item.statements))
        yield item._replace(
            sentence=item.statements[place], context="", verdict=Verdict.SUPPORTED, span=None
        )


def _table_rows(statements: Iterable[Statement], *, seed: int = SEED) -> Iterator[Statement]:
    """Rows of Markdown tables over the triples of a set: right, with another's value, or made up.

    The head is context, as the sentence before a row is.
    """
    chooser = random.Random(f"{seed}/rows")
    seen = set()
    for item in statements:
        if not item.triples or item.group in seen:
            continue
        seen.add(item.group)
        table: dict[str, dict[str, str]] = defaultdict(dict)
        own: dict[tuple[str, str], set[str]] = defaultdict(set)
        for text in item.statements:
            subject, _, rest = text.removesuffix(".").partition(", ")
            name, _, value = rest.partition(": ")
            table[subject][name] = value
            own[subject, name].add(value)
        values: dict[str, set[str]] = defaultdict(set)
        for (_, name), some in own.items():
            values[name] |= some
        for subject, row in table.items():
            names = chooser.sample(sorted(row), min(len(row), chooser.choice((1, 2, 3))))
            cells = [row[name] for name in names]
            verdict = Verdict.SUPPORTED
            place = chooser.randrange(len(names))
            if chooser.random() < 0.6:
                others = sorted(values[names[place]] - own[subject, names[place]])
                if others and chooser.random() < 0.6:
                    cells[place], verdict = chooser.choice(others), Verdict.CONTRADICTED
                else:
                    unknown = sorted(set(values) - set(row))
                    if not unknown:
                        continue
                    names[place] = chooser.choice(unknown)
                    cells[place] = chooser.choice(sorted(values[names[place]]))
                    verdict = Verdict.UNSUPPORTED
            more = ["", *names, ""] if chooser.random() < 0.2 else names
            head, line = [chooser.choice(("Name", "", "Which")), *more], [subject, *cells]
            if len(more) > len(names):
                line = [subject, "", *cells, ""]
            yield item._replace(
                context=f"| {' | '.join(head)} |" if chooser.random() < 0.8 else "",
                sentence=f"| {' | '.join(line)} |",
                verdict=verdict,
                span=None,
            )


class Packer:
    """Tokenises rows into items, with the sequences that serving builds.

    Args:
        tokenizer: Path of ``tokenizer.json``.
    """

    def __init__(self, tokenizer: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        start, end = (self._tokenizer.token_to_id(token) for token in OnnxReader.end_tokens)
        if start is None or end is None:
            raise ValueError(f"{tokenizer} lacks {' or '.join(OnnxReader.end_tokens)}")
        self._start, self._end = start, end

    def tokens(self, text: str) -> list[int]:
        """Token ids without special tokens."""
        ids: list[int] = self._tokenizer.encode(readable(text), add_special_tokens=False).ids
        return ids

    def statements(self, statements: Iterable[Statement]) -> list[Item]:
        """Items of statements: those of an evidence set together."""
        sets: OrderedDict[tuple[tuple[str, ...], tuple[int, ...]], list[Statement]] = OrderedDict()
        for one in statements:
            sets.setdefault((one.statements, one.windows), []).append(one)
        return [
            item
            for (texts, windows), some in sets.items()
            if (
                item := self._item(
                    texts,
                    windows,
                    [(one.before, one.sentence, _right(one)) for one in some],
                    triples=some[0].triples,
                    closed=some[0].triples,
                )
            )
        ]

    def counterfactual(self, items: Iterable[Item]) -> list[Item]:
        """Items and their counterfactuals, in turn."""
        pieces = Pieces(self._tokenizer.get_vocab())
        return [item for pair in counterfactuals(items, pieces, seed=SEED) for item in pair]

    def with_less_evidence(self, statements: Iterable[Statement]) -> list[Item]:
        """Sentences with all evidence and without what carries some of them, in turn."""
        made: list[Item] = []
        for some in less_evidence(statements, seed=SEED):
            items = [item for side in zip(*some, strict=True) for item in self.statements(side)]
            if len(items) == 2 and items[0].claims == items[1].claims:  # none was too long
                made += items
        return made

    def revised(self, rows: Iterable[Row]) -> list[Item]:
        """Sentences with evidence that supports them and with a revision that does not, in turn."""
        sides: dict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
        for row in rows:
            if row.nli >= 0 and not row.context:
                sides[row.hypothesis][row.nli != 0].append(row)
        made: list[Item] = []
        for right, wrong in sides.values():
            for pair in zip(right, wrong, strict=False):
                items = [item for row in pair for item in self.rows([row])]
                made += items if len(items) == 2 else []
        return made

    def rows(self, rows: Iterable[Row]) -> list[Item]:
        """Items of rows: those with one evidence together."""
        sets: OrderedDict[tuple[str, ...], list[Row]] = OrderedDict()
        for row in rows:
            if _allowed(row):
                key = row.statements or tuple(split_sentences(row.premise))
                sets.setdefault(key, []).append(row)
        return [
            item
            for texts, some in sets.items()
            if (
                item := self._item(
                    texts,
                    (),
                    [(row.context, row.hypothesis, _allowed(row)) for row in some],
                    triples=some[0].source.endswith("_triples"),
                    closed=True,
                )
            )
        ]

    def _item(
        self,
        texts: Sequence[str],
        groups: Sequence[int],
        claims: Sequence[tuple[str, str, int]],
        *,
        triples: bool,
        closed: bool,
    ) -> Item | None:
        """An item with the windows that fit; None where nothing is left.

        Where windows are left out, supported claims are too: their support may be gone.
        """
        members: dict[int, list[int]] = {}
        for number in range(len(texts)):
            members.setdefault(groups[number] if groups else 0, []).append(number)
        windows: list[tuple[int, ...]] = []
        whole = bool(texts)
        for group in members.values():
            parts = [self.tokens(texts[number]) for number in group]
            for ids, _ in windows_of(parts, start=self._start, end=self._end, closed=closed):
                if windows and sum(map(len, windows)) + len(ids) > ROOM:
                    whole = False
                else:
                    windows.append(ids)
        blocks = [
            (claim, allowed)
            for context, sentence, allowed in claims
            if whole or allowed != 1
            for claim in claims_of(self.tokens(context), self.tokens(sentence), end=self._end)[:1]
        ]
        if not windows or not blocks:
            return None
        found, labels = zip(*blocks, strict=True)
        return Item(tuple(windows), found, labels, triples)


def _right(statement: Statement) -> int:
    """Labels that are right for a statement; what a change leaves open may also be contradicted."""
    if statement.kind == KIND and statement.verdict is Verdict.UNSUPPORTED:
        return 0b110
    return 1 << LABELS.index(statement.verdict.value)


def _allowed(row: Row) -> int:
    """Labels that are right for a row, one bit each; 0 where it teaches none."""
    if row.nli == NOT_ENTAILMENT:
        return 0b110
    if row.nli == NOT_CONTRADICTION:
        return 0b011
    if row.claim == 1:
        return 0b1000
    if row.nli >= 0:
        return 1 << row.nli
    category = {0: 0b001, 1: 0b010, 2: 0b100, 3: 0b010}
    bits = 0
    for one in row.attribution:
        bits |= category[one]
    return bits
