"""Token likelihoods from any Hugging Face causal language model, in process.

Three things make it fast: only the positions that predict a continuation reach the output layer,
which costs more than all other layers of a small model with a large vocabulary; a start that
several texts share (one passage, many questions) is read once; texts of similar length share a
batch, padded on the right.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

from guardrail.core.errors import JudgeError
from judges.base import TokenLikelihoods
from judges.batching import distinct
from judges.pretrained import libraries

if TYPE_CHECKING:
    import torch
    from transformers import Cache, PreTrainedTokenizerBase

__all__ = ["TransformersCausalLM"]

CONTEXT = 4096
"""Most tokens of one text, if the model allows as many; the middle of a longer one is cut."""
CUT_STEP = 256
"""A prefix is cut by multiples of this, so that texts with one start keep sharing it."""
PADDING_ON_CPU = 64
"""Most padding tokens of a batch on a CPU, where more would cost more than another batch."""
PADDING_SHARE = 0.1
"""Share of a batch that may be padding in any case."""
LOGITS_BUDGET_BYTES = 512 * 1024 * 1024
"""Most memory that the logits of one batch may take; large vocabularies make it bind."""
TOKEN_BUDGET = 4096
"""Most tokens, padding and repeated starts included, in one batch."""
CACHED_ROWS = 4
"""Positions that a CPU normalises at once: few enough for its cache, which saves two thirds."""
MIN_SHARED = 64
"""A shorter shared start is cheaper to read again than to keep."""

Pair = tuple[str, str]
Progress = Callable[[int, int], None]


class _Row(NamedTuple):
    """Tokens of one pair."""

    prefix: tuple[int, ...]
    continuation: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.prefix) + len(self.continuation)


class TransformersCausalLM:
    """Any Hugging Face causal language model, on CPU or GPU.

    Args:
        model: A model id or a folder.
        device: A torch device; by default the GPU if there is one.
        dtype: A torch dtype by name; by default ``bfloat16`` on a GPU and on CPUs with hardware
            support (AVX512_BF16, AMX), else ``float32``.
        progress: Called with (pairs done, pairs in all) after each batch.
    """

    def __init__(
        self,
        model: str,
        *,
        device: str | None = None,
        dtype: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.name = f"transformers:{model}"
        self._model_id = model
        self._device = device
        self._dtype = dtype
        self._progress = progress
        self._model: Any = None  # transformers types its models in part
        self._tokenizer: PreTrainedTokenizerBase
        self._lock = threading.Lock()

    def warm_up(self) -> None:
        """Load model and tokenizer.

        Raises:
            MissingExtraError: torch or transformers is not installed.
            JudgeError: The model cannot be loaded.
        """
        with self._lock:
            if self._model is None:
                self._load()

    def loglikelihoods(self, pairs: Sequence[Pair]) -> list[TokenLikelihoods]:
        """Likelihoods of n continuations, each given its prefix; see ``CausalLM``.

        Equal pairs are scored once. Prefix and continuation are tokenised apart, so that the
        same continuation has the same tokens after every prefix.
        """
        self.warm_up()
        wanted, inverse = distinct(list(pairs))
        rows = self._encode(wanted)
        found = [TokenLikelihoods((), ()) for _ in rows]
        todo = [place for place, row in enumerate(rows) if row.continuation]
        done = len(rows) - len(todo)
        for shared, places in _shared_starts(rows, todo):
            for batch, values in self._group(rows, shared, places):
                for place, logprobs in zip(batch, values, strict=True):
                    tokens = self._tokenizer.convert_ids_to_tokens(list(rows[place].continuation))
                    found[place] = TokenLikelihoods(tuple(tokens), tuple(logprobs))
                done += len(batch)
                if self._progress is not None:
                    self._progress(done, len(rows))
        return [found[place] for place in inverse]

    def _load(self) -> None:
        torch, transformers = libraries()
        device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
        dtype = self._dtype or _fastest(device)
        where = self._model_id
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(where)
            kind = transformers.AutoModelForCausalLM
            model = kind.from_pretrained(where, dtype=getattr(torch, dtype))
        except (OSError, ValueError, ImportError) as error:
            raise JudgeError(
                f"cannot load causal language model {self._model_id}: {error}"
            ) from error
        self._model = model.to(device).eval()

    def _encode(self, pairs: Sequence[Pair]) -> list[_Row]:
        texts, inverse = distinct([text for pair in pairs for text in pair])
        ids = self._tokenizer(texts, add_special_tokens=False).input_ids if texts else []
        own = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        limit = min(CONTEXT, own or CONTEXT)
        start = self._start_token()
        return [
            _fit((start, *ids[inverse[place]]), tuple(ids[inverse[place + 1]]), limit)
            for place in range(0, len(inverse), 2)
        ]

    def _start_token(self) -> int:
        """The token that opens a text, so that even the first word has a likelihood."""
        for token in (self._tokenizer.bos_token_id, self._tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        raise JudgeError(f"{self._model_id} has neither a begin nor an end of text token")

    def _group(
        self, rows: Sequence[_Row], shared: int, places: Sequence[int]
    ) -> Iterator[tuple[list[int], list[list[float]]]]:
        """Score texts that share their first tokens, in batches under the budgets."""
        import torch

        past: Cache | None = None
        if shared:
            start = torch.tensor([rows[places[0]].prefix[:shared]], device=self._model.device)
            with self._lock, torch.inference_mode():  # the model without its output layer
                past = self._model.base_model(input_ids=start, use_cache=True).past_key_values
        item = 2 if self._model.dtype.itemsize == 2 else 4
        vocabulary = int(self._model.config.get_text_config().vocab_size)
        most_kept = max(1, LOGITS_BUDGET_BYTES // (item * vocabulary))
        most_padding = PADDING_ON_CPU if self._model.device.type == "cpu" else TOKEN_BUDGET
        for batch in _batches(rows, places, most_kept, most_padding):
            rests = [_Row(rows[p].prefix[shared:], rows[p].continuation) for p in batch]
            yield batch, self._score(rests, past)

    def _score(self, rows: Sequence[_Row], past: Cache | None) -> list[list[float]]:
        """Log-likelihoods of the continuations of one batch, after a start they all share."""
        import torch

        device = self._model.device
        width = max(row.length for row in rows)
        ids = torch.zeros((len(rows), width), dtype=torch.long)
        kept = []
        for index, row in enumerate(rows):
            ids[index, : row.length] = torch.tensor(row.prefix + row.continuation)
            begin = index * width + len(row.prefix) - 1
            kept.append(torch.arange(begin, begin + len(row.continuation)))
        places = torch.cat(kept)
        targets = ids.flatten()[places + 1].to(device)
        options: dict[str, object] = {"use_cache": False}
        if past is not None:
            own = deepcopy(past)
            own.batch_repeat_interleave(len(rows))
            options = {"use_cache": True, "past_key_values": own}
        with self._lock, torch.inference_mode(), self._output_at(places.to(device)):
            logits: torch.Tensor = self._model(input_ids=ids.to(device), **options).logits[0]
            chosen = _chosen_likelihoods(logits, targets)
        if not bool(torch.isfinite(chosen).all()):
            raise JudgeError(f"{self._model_id} gave a likelihood that is not a finite number")
        values = iter(chosen.tolist())
        return [[next(values) for _ in row.continuation] for row in rows]

    @contextmanager
    def _output_at(self, places: torch.Tensor) -> Iterator[None]:
        """Let the output layer compute some positions of the flattened batch, [1, k, v]."""

        def select(_: object, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            states = inputs[0]
            return (states.flatten(0, 1)[places.to(states.device)][None], *inputs[1:])

        handle = self._model.get_output_embeddings().register_forward_pre_hook(select)
        try:
            yield
        finally:
            handle.remove()


def _chosen_likelihoods(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Natural-log likelihoods of k targets under k rows of logits, in 32 bits, [k]."""
    import torch

    chosen = logits.gather(1, targets[:, None])[:, 0].float()
    step = CACHED_ROWS if logits.device.type == "cpu" else max(1, len(logits))
    for at in range(0, len(logits), step):
        part = logits[at : at + step]
        highest = part.amax(-1, keepdim=True).float()
        total = part.float().sub_(highest).exp_().sum(-1)
        chosen[at : at + step] -= highest[:, 0] + torch.log(total)
    return chosen


def _fastest(device: str) -> str:
    """The dtype by name that a device computes fastest without losing range."""
    import torch

    if not device.startswith("cpu"):
        return "bfloat16"
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    found = any(getattr(torch.cpu, check, bool)() for check in checks)
    return "bfloat16" if found else "float32"


def _shared_starts(rows: Sequence[_Row], places: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Group texts by a long start that they share.

    Returns:
        Tokens shared and places of the texts, for each group; texts that share none come in one
        group with 0. At least one token of every prefix is left, to predict the continuation.
    """
    groups: list[tuple[int, list[int]]] = []
    for place in sorted(places, key=lambda item: rows[item].prefix):
        own = rows[place].prefix[:-1]
        if groups:
            shared, members = groups[-1]
            common = _common(rows[members[0]].prefix[:shared], own)
            if common >= max(MIN_SHARED, shared / 2):
                groups[-1] = (common, [*members, place])
                continue
        groups.append((len(own), [place]))
    alone = [members[0] for _, members in groups if len(members) == 1]
    return [(0, alone)] + [group for group in groups if len(group[1]) > 1]


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """Leading tokens that two texts share."""
    most = min(len(left), len(right))
    return next((at for at in range(most) if left[at] != right[at]), most)


def _batches(
    rows: Sequence[_Row], places: Sequence[int], most_kept: int, most_padding: int
) -> Iterator[list[int]]:
    """Cut into batches of similar length within the budgets of tokens and of kept positions."""
    batch: list[int] = []
    kept = filled = 0
    for place in sorted(places, key=lambda item: rows[item].length):
        length, own = rows[place].length, len(rows[place].continuation)
        tokens = (len(batch) + 1) * length
        padding = tokens - length - filled
        full = tokens > TOKEN_BUDGET or kept + own > most_kept
        if batch and (full or padding > max(most_padding, PADDING_SHARE * tokens)):
            yield batch
            batch, kept, filled = [], 0, 0
        batch.append(place)
        kept += own
        filled += length
    if batch:
        yield batch


def _fit(prefix: tuple[int, ...], continuation: tuple[int, ...], limit: int) -> _Row:
    """Cut what does not fit the context: the continuation's end, then the prefix before its end.

    The first token (begin of text) and the words nearest to the continuation matter most.
    """
    continuation = continuation[: limit - 1]
    over = len(prefix) + len(continuation) - limit
    if over > 0:
        step = min(CUT_STEP, max(1, limit // 4))
        cut = min(len(prefix) - 1, -(-over // step) * step)
        prefix = (prefix[0], *prefix[1 + cut :])
    return _Row(prefix, continuation)
