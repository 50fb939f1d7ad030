"""Causal language models for token likelihoods (CONNER eq. 3, 5, 6), by name.

``transformers:<model id or folder>`` runs in process on CPU or GPU, ``openai:<model>`` calls a
completions endpoint that echoes prompt log-probabilities, and ``llama:<url>`` calls a llama.cpp
server, which has no such echo, token by token.
"""

from __future__ import annotations

import json
import math
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple

from guardrail.core.errors import ConfigError, JudgeError
from guardrail.core.http_clients import open_client, openai_errors
from guardrail.core.incoming import finite_json
from guardrail.core.workers import time_left
from judges.base import CausalLM, TokenLikelihoods
from judges.batching import distinct
from judges.pretrained import libraries, load_pretrained

if TYPE_CHECKING:
    import torch
    from openai import OpenAI
    from transformers import Cache, PreTrainedTokenizerBase

CONTEXT = 4_096
"""Most tokens of one text, if the model allows as many; the middle of a longer one is cut."""
STEP_S = 600.0
"""Longest wait for one token of a llama.cpp server; the first one waits for the whole prompt."""
TOKEN_BUDGET = 4_096
"""Most tokens, padding and repeated starts included, in one batch."""

Progress = Callable[[int, int], None]


def create_causal_lm(
    name: str,
    *,
    base_url: str | None = None,
    dtype: str | None = None,
    progress: Progress | None = None,
) -> CausalLM:
    """Create a causal language model by name; it is loaded at the first use.

    Args:
        name: ``transformers:…``, ``openai:…`` or ``llama:…``.
        base_url: Where an ``openai:`` model is served.
        dtype: A torch dtype by name, for models that run in process; the device's fastest
            without loss of range by default.
        progress: Called with (pairs done, pairs in all) by models that run in process.

    Raises:
        ConfigError: The name has no known scheme.
    """
    scheme, _, rest = name.partition(":")
    match scheme if rest else "":
        case "transformers":
            return TransformersCausalLM(rest, dtype=dtype, progress=progress)
        case "openai":
            return OpenAICausalLM(rest, base_url=base_url)
        case "llama":
            return LlamaServerCausalLM(rest)
    raise ConfigError(
        f"unknown causal language model {name!r}; use transformers:<model>, openai:<model> "
        "or llama:<server url>"
    )


class OpenAICausalLM:
    """A completions endpoint that returns the log-probabilities of the prompt (vLLM and others).

    Args:
        model: The model's name at the endpoint.
        base_url: The endpoint; None takes ``OPENAI_BASE_URL`` or OpenAI's own.
    """

    def __init__(self, model: str, *, base_url: str | None = None) -> None:
        self.name = f"openai:{model}"
        self._model = model
        self._base_url = base_url

    def loglikelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[TokenLikelihoods]:
        """Likelihoods of n continuations, each given its prefix; see ``CausalLM``."""
        with openai_errors(self.name, JudgeError), open_client(self._base_url) as client:
            found = {pair: self._one(client, *pair) for pair in dict.fromkeys(pairs)}
        return [found[pair] for pair in pairs]

    def _one(self, client: OpenAI, prefix: str, continuation: str) -> TokenLikelihoods:
        reply = client.completions.create(
            model=self._model,
            prompt=prefix + continuation,
            max_tokens=0,
            echo=True,
            logprobs=0,
            temperature=0,
        )
        if not reply.choices:
            raise JudgeError(f"{self.name} returned no completion")
        found = reply.choices[0].logprobs
        missing = JudgeError(f"{self.name} returned no log-probabilities of the prompt")
        if found is None or not (found.tokens and found.token_logprobs and found.text_offset):
            raise missing
        try:
            # The very first token of a text has no likelihood at such endpoints.
            kept = [
                (str(token), value)
                for token, value, offset in zip(
                    found.tokens, found.token_logprobs, found.text_offset, strict=True
                )
                if offset >= len(prefix) and value is not None
            ]
        except (TypeError, ValueError) as error:
            raise missing from error
        values = tuple(_likelihood(self.name, value) for _, value in kept)
        return TokenLikelihoods(tuple(token for token, _ in kept), values)


class LlamaServerCausalLM:
    """A llama.cpp server that is made to sample given tokens one by one.

    The server caches the shared prefix, so each token costs one decoding step. A rare character is
    several tokens, of which the first one is left out.

    Args:
        base_url: Where the server listens, without ``/v1``.
    """

    def __init__(self, base_url: str) -> None:
        self.name = f"llama:{base_url}"
        self._base_url = base_url.rstrip("/").removesuffix("/v1")

    def loglikelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[TokenLikelihoods]:
        """Likelihoods of n continuations, each given its prefix; see ``CausalLM``."""
        found = {pair: self._one(*pair) for pair in dict.fromkeys(pairs)}
        return [found[pair] for pair in pairs]

    def _one(self, prefix: str, continuation: str) -> TokenLikelihoods:
        prompt = self._tokenize(prefix, special=True)
        wanted = self._tokenize(continuation, special=False)
        tokens, logprobs = [], []
        for token in wanted:
            reply = self._post(
                "/completion",
                {
                    "prompt": prompt,
                    "n_predict": 1,
                    "temperature": 0.0,
                    "n_probs": 1,
                    "cache_prompt": True,
                    # Makes it sample the token; reported likelihoods stay unbiased.
                    "logit_bias": [[token, 1_000.0]],
                },
            )
            prompt = [*prompt, token]
            try:
                # The server reports no likelihood of a token that ends inside a character.
                if not reply.get("completion_probabilities") and reply["content"].endswith(
                    "\ufffd"
                ):
                    continue
                step = reply["completion_probabilities"][0]
                text, value = str(step["token"]), step["logprob"]
            except (KeyError, IndexError, TypeError, AttributeError) as error:
                raise JudgeError(f"{self.name} returned no token probabilities") from error
            tokens.append(text)
            logprobs.append(_likelihood(self.name, value))
        return TokenLikelihoods(tuple(tokens), tuple(logprobs))

    def _tokenize(self, text: str, *, special: bool) -> list[int]:
        reply = self._post("/tokenize", {"content": text, "add_special": special})
        try:
            return [int(token) for token in reply["tokens"]]
        except (KeyError, TypeError, ValueError) as error:
            raise JudgeError(f"{self.name} returned no tokens") from error

    def _post(self, path: str, body: dict[str, object]) -> Any:
        request = urllib.request.Request(
            self._base_url + path,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=min(STEP_S, time_left())) as reply:
                return finite_json(reply.read())
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            raise JudgeError(f"{self.name}: {error}") from error


def _likelihood(name: str, value: object) -> float:
    """A log-probability of a server's reply.

    Raises:
        JudgeError: It is not a finite number.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        pass
    raise JudgeError(f"{name} gave a likelihood that is not a finite number")


# --- In process ---------------------------------------------------------------------------------


class _Row(NamedTuple):
    """Tokens of one pair."""

    prefix: tuple[int, ...]
    continuation: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.prefix) + len(self.continuation)


class TransformersCausalLM:
    """Any Hugging Face causal language model, on CPU or GPU.

    Three things make it fast: only the positions that predict a continuation reach the output
    layer, which costs more than all other layers of a small model with a large vocabulary; a start
    that several texts share (one passage, many questions) is read once; texts of similar length
    share a batch, padded on the right.

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
            if self._model is not None:
                return
            torch, _ = libraries()
            device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
            self._model, self._tokenizer = load_pretrained(
                self._model_id,
                kind="AutoModelForCausalLM",
                device=device,
                dtype=self._dtype or _fastest(device),
            )

    def loglikelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[TokenLikelihoods]:
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

    def _encode(self, pairs: Sequence[tuple[str, str]]) -> list[_Row]:
        texts, inverse = distinct([text for pair in pairs for text in pair])
        ids = self._tokenizer(texts, add_special_tokens=False).input_ids if texts else []
        own = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        limit = min(CONTEXT, own or CONTEXT)
        # The token that opens a text gives even the first word a likelihood.
        begin, end = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        start = end if begin is None else begin
        if start is None:
            raise JudgeError(f"{self._model_id} has neither a begin nor an end of text token")
        return [
            _fit((int(start), *ids[inverse[place]]), tuple(ids[inverse[place + 1]]), limit)
            for place in range(0, len(inverse), 2)
        ]

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
        # The logits of a batch take at most 512 MiB; large vocabularies make that bind.
        most_kept = max(1, 512 * 2**20 // (item * vocabulary))
        # On a CPU more padding would cost more than another batch.
        most_padding = 64 if self._model.device.type == "cpu" else TOKEN_BUDGET
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
    # Few positions fit into the cache of a CPU, which saves two thirds of the time.
    step = 4 if logits.device.type == "cpu" else max(1, len(logits))
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
            if common >= max(64, shared / 2):  # shorter starts are cheaper to read again
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
        if batch and (full or padding > max(most_padding, 0.1 * tokens)):
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
        # Cut by multiples of a step, so that texts with one start keep sharing it.
        step = min(256, max(1, limit // 4))
        cut = min(len(prefix) - 1, -(-over // step) * step)
        prefix = (prefix[0], *prefix[1 + cut :])
    return _Row(prefix, continuation)
