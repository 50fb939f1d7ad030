"""Causal language models for token likelihoods (CONNER eq. 3, 5, 6), by name.

``transformers:<model id or folder>`` runs in process on CPU or GPU, ``openai:<model>`` calls a
completions endpoint that echoes prompt log-probabilities, and ``llama:<url>`` calls a llama.cpp
server, which has no such echo, token by token.
"""

from __future__ import annotations

import json
import math
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from guardrail.core.errors import ConfigError, JudgeError
from guardrail.core.http_clients import open_client, openai_errors
from guardrail.core.incoming import finite_json
from judges.base import CausalLM, TokenLikelihoods
from judges.causal_transformers import Progress, TransformersCausalLM

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.completion_choice import Logprobs

__all__ = ["LlamaServerCausalLM", "OpenAICausalLM", "TransformersCausalLM", "create_causal_lm"]

FORCING_BIAS = 1000.0
"""Logit bias that makes llama.cpp sample a token; reported likelihoods stay unbiased."""

TIMEOUT_S = 60.0
"""Seconds allowed for one request to a llama.cpp server."""


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
    if scheme == "transformers" and rest:
        return TransformersCausalLM(rest, dtype=dtype, progress=progress)
    if scheme == "openai" and rest:
        return OpenAICausalLM(rest, base_url=base_url)
    if scheme == "llama" and rest:
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
        return self._continuation(reply.choices[0].logprobs, len(prefix))

    def _continuation(self, logprobs: Logprobs | None, prefix_length: int) -> TokenLikelihoods:
        offsets = logprobs.text_offset if logprobs else None
        if not logprobs or not offsets or not logprobs.tokens or not logprobs.token_logprobs:
            raise JudgeError(f"{self.name} returned no log-probabilities of the prompt")
        try:
            # The very first token of a text has no likelihood at such endpoints.
            kept = [
                (str(token), value)
                for token, value, offset in zip(
                    logprobs.tokens, logprobs.token_logprobs, offsets, strict=True
                )
                if offset >= prefix_length and value is not None
            ]
        except (TypeError, ValueError) as error:
            raise JudgeError(f"{self.name} returned no log-probabilities of the prompt") from error
        values = tuple(_likelihood(self.name, value) for _, value in kept)
        return TokenLikelihoods(tuple(token for token, _ in kept), values)


class LlamaServerCausalLM:
    """A llama.cpp server that is made to sample given tokens one by one.

    The server caches the shared prefix, so each token costs one decoding step.

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
                    "logit_bias": [[token, FORCING_BIAS]],
                },
            )
            try:
                step = reply["completion_probabilities"][0]
                text, value = str(step["token"]), step["logprob"]
            except (KeyError, IndexError, TypeError) as error:
                raise JudgeError(f"{self.name} returned no token probabilities") from error
            tokens.append(text)
            logprobs.append(_likelihood(self.name, value))
            prompt = [*prompt, token]
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
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
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
