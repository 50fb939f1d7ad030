"""Causal language models that tell token likelihoods (CONNER eq. 3, 5, 6), by name.

``transformers:<model id or path>`` runs in process on CPU or GPU and also reads GGUF files,
``openai:<model>`` asks a completions endpoint that echoes prompt log-probabilities,
``llama:<url>`` asks a llama.cpp server, which has no such echo, token by token.
"""

from __future__ import annotations

import json
import math
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardrail.errors import ConfigError, JudgeError, MissingExtraError
from judges.base import CausalLM, TokenLikelihoods

if TYPE_CHECKING:
    import torch
    from openai import OpenAI

__all__ = ["LlamaServerCausalLM", "OpenAICausalLM", "TransformersCausalLM", "create_causal_lm"]

LOGITS_BUDGET_BYTES = 512 * 1024 * 1024
"""Most memory that the logits of one batch may take; large vocabularies make it bind."""
TOKEN_BUDGET = 4096
"""Most tokens, padding included, in one batch."""
FORCING_BIAS = 1000.0
"""Added to a token's logit to make llama.cpp sample it; reported likelihoods stay unbiased."""


def create_causal_lm(name: str, *, base_url: str | None = None) -> CausalLM:
    """Make the causal language model that a name stands for; nothing is loaded yet.

    Raises:
        ConfigError: The name has no known scheme.
    """
    scheme, _, rest = name.partition(":")
    if scheme == "transformers" and rest:
        return TransformersCausalLM(rest)
    if scheme == "openai" and rest:
        return OpenAICausalLM(rest, base_url=base_url)
    if scheme == "llama" and rest:
        return LlamaServerCausalLM(rest)
    raise ConfigError(
        f"unknown causal language model {name!r}; use transformers:<model>, openai:<model> "
        "or llama:<server url>"
    )


class TransformersCausalLM:
    """Any Hugging Face causal language model, in batches of similar length.

    Args:
        model: A model id, a folder, or the path of a GGUF file.
        device: A torch device; the GPU where there is one, unless told.
        dtype: A torch dtype by name; ``bfloat16`` on GPU and ``float32`` on CPU unless told.
    """

    def __init__(self, model: str, *, device: str | None = None, dtype: str | None = None) -> None:
        self.name = f"transformers:{model}"
        self._model_id = model
        self._device = device
        self._dtype = dtype
        self._model: Any = None
        self._tokenizer: Any = None

    def warm_up(self) -> None:
        """Load model and tokenizer.

        Raises:
            MissingExtraError: torch or transformers is not installed.
            JudgeError: The model cannot be loaded.
        """
        if self._model is not None:
            return
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise MissingExtraError("transformers", "gpu") from error
        device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
        dtype = self._dtype or ("bfloat16" if device.startswith("cuda") else "float32")
        where, options = self._model_id, {}
        if where.endswith(".gguf"):
            where, options = str(Path(where).parent), {"gguf_file": Path(where).name}
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(where, **options)
            model: Any = AutoModelForCausalLM.from_pretrained(
                where, dtype=getattr(torch, dtype), **options
            )
        except (OSError, ValueError, ImportError) as error:
            raise JudgeError(
                f"cannot load causal language model {self._model_id}: {error}"
            ) from error
        self._model = model.to(device).eval()

    def loglikelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[TokenLikelihoods]:
        """Likelihoods of n continuations, each given its prefix; see ``CausalLM``.

        Equal pairs are scored once. Prefix and continuation are tokenised apart, so that the
        same continuation has the same tokens after every prefix.
        """
        self.warm_up()
        start = self._start_tokens()
        encoded = {
            pair: (
                start + self._tokenizer(pair[0], add_special_tokens=False).input_ids,
                self._tokenizer(pair[1], add_special_tokens=False).input_ids,
            )
            for pair in dict.fromkeys(pairs)
        }
        limit = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        if limit:
            encoded = {pair: _fit(*ids, limit) for pair, ids in encoded.items()}
        found = {pair: TokenLikelihoods((), ()) for pair, ids in encoded.items() if not ids[1]}
        todo = sorted(
            (pair for pair in encoded if pair not in found),
            key=lambda pair: sum(map(len, encoded[pair])),
        )
        for batch in self._batches(todo, encoded):
            for pair, logprobs in zip(batch, self._score([encoded[p] for p in batch]), strict=True):
                tokens = self._tokenizer.convert_ids_to_tokens(encoded[pair][1])
                found[pair] = TokenLikelihoods(tuple(tokens), tuple(logprobs))
        return [found[pair] for pair in pairs]

    def _start_tokens(self) -> list[int]:
        """The token that opens a text, so that even the first word has a likelihood."""
        for token in (self._tokenizer.bos_token_id, self._tokenizer.eos_token_id):
            if token is not None:
                return [int(token)]
        raise JudgeError(f"{self._model_id} has neither a begin nor an end of text token")

    def _batches(
        self,
        pairs: Sequence[tuple[str, str]],
        encoded: dict[tuple[str, str], tuple[list[int], list[int]]],
    ) -> list[list[tuple[str, str]]]:
        vocabulary = int(self._model.config.get_text_config().vocab_size)
        kept_budget = max(1, LOGITS_BUDGET_BYTES // (4 * vocabulary))
        batches: list[list[tuple[str, str]]] = [[]]
        longest = kept = 0
        for pair in pairs:
            prefix, continuation = encoded[pair]
            longest = max(longest, len(prefix) + len(continuation))
            kept = max(kept, len(continuation) + 1)
            size = len(batches[-1]) + 1
            if size > 1 and (size * longest > TOKEN_BUDGET or size * kept > kept_budget):
                batches.append([])
                longest, kept = len(prefix) + len(continuation), len(continuation) + 1
            batches[-1].append(pair)
        return [batch for batch in batches if batch]

    def _score(self, rows: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """Log-likelihoods of the continuations of one batch, padded on the left."""
        import torch

        width = max(len(prefix) + len(continuation) for prefix, continuation in rows)
        kept = max(len(continuation) for _, continuation in rows) + 1
        ids = torch.zeros((len(rows), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for index, (prefix, continuation) in enumerate(rows):
            whole = torch.tensor(prefix + continuation)
            ids[index, width - len(whole) :] = whole
            mask[index, width - len(whole) :] = 1
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        ids, mask = ids.to(self._model.device), mask.to(self._model.device)
        with torch.inference_mode():
            logits: torch.Tensor = self._model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions.to(self._model.device),
                logits_to_keep=kept,
            ).logits
        result = []
        for index, (_, continuation) in enumerate(rows):
            length = len(continuation)
            own = logits[index, -length - 1 : -1].float()
            chosen = own.gather(1, ids[index, -length:, None])[:, 0] - own.logsumexp(-1)
            if not bool(torch.isfinite(chosen).all()):
                raise JudgeError(f"{self._model_id} gave a likelihood that is not a finite number")
            result.append([float(value) for value in chosen])
        return result


class OpenAICausalLM:
    """A completions endpoint that returns the log-probabilities of the prompt (vLLM and others).

    Args:
        model: The model's name at the endpoint.
        base_url: The endpoint; from the environment unless told.
    """

    def __init__(self, model: str, *, base_url: str | None = None) -> None:
        self.name = f"openai:{model}"
        self._model = model
        self._base_url = base_url

    def loglikelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[TokenLikelihoods]:
        """Likelihoods of n continuations, each given its prefix; see ``CausalLM``."""
        import openai

        try:
            with openai.OpenAI(base_url=self._base_url) as client:
                found = {pair: self._one(client, *pair) for pair in dict.fromkeys(pairs)}
        except openai.OpenAIError as error:  # a missing key is told when the client is made
            raise JudgeError(f"{self.name}: {error}") from error
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
        return self._continuation(reply.choices[0].logprobs, len(prefix))

    def _continuation(self, logprobs: Any, prefix_length: int) -> TokenLikelihoods:
        offsets = getattr(logprobs, "text_offset", None)
        if not offsets or not logprobs.tokens or not logprobs.token_logprobs:
            raise JudgeError(f"{self.name} returned no log-probabilities of the prompt")
        # The very first token of a text has no likelihood at such endpoints.
        kept = [
            (token, value)
            for token, value, offset in zip(
                logprobs.tokens, logprobs.token_logprobs, offsets, strict=True
            )
            if offset >= prefix_length and value is not None
        ]
        if not all(math.isfinite(value) for _, value in kept):
            raise JudgeError(f"{self.name} gave a likelihood that is not a finite number")
        return TokenLikelihoods(tuple(t for t, _ in kept), tuple(float(v) for _, v in kept))


class LlamaServerCausalLM:
    """A llama.cpp server, asked to sample one given token after the other.

    The server caches the shared prefix, so each token costs one decoding step.

    Args:
        base_url: Where the server listens, without ``/v1``.
        timeout: Seconds allowed for one request.
    """

    def __init__(self, base_url: str, *, timeout: float = 60.0) -> None:
        self.name = f"llama:{base_url}"
        self._base_url = base_url.rstrip("/").removesuffix("/v1")
        self._timeout = timeout

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
                    "logit_bias": [[token, FORCING_BIAS]],
                },
            )
            try:
                step = reply["completion_probabilities"][0]
                text, value = str(step["token"]), float(step["logprob"])
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise JudgeError(f"{self.name} returned no token probabilities") from error
            tokens.append(text)
            logprobs.append(value)
            prompt = [*prompt, token]
        return TokenLikelihoods(tuple(tokens), tuple(logprobs))

    def _tokenize(self, text: str, *, special: bool) -> list[int]:
        reply = self._post("/tokenize", {"content": text, "add_special": special})
        try:
            return [int(token) for token in reply["tokens"]]
        except (KeyError, TypeError, ValueError) as error:
            raise JudgeError(f"{self.name} returned no tokens") from error

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            self._base_url + path,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as reply:
                return json.load(reply)
        except (OSError, HTTPException, ValueError) as error:
            raise JudgeError(f"{self.name}: {error}") from error


def _fit(prefix: list[int], continuation: list[int], limit: int) -> tuple[list[int], list[int]]:
    """Cut what does not fit the model's context: the prefix's middle goes first.

    The first token (begin of text) and the words nearest to the continuation matter most.
    """
    continuation = continuation[: limit - 1]
    room = limit - len(continuation)
    return (
        prefix if len(prefix) <= room else [prefix[0], *prefix[len(prefix) - room + 1 :]]
    ), continuation
