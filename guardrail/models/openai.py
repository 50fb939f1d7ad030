"""Any OpenAI-compatible endpoint, through the ``openai`` client."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Literal

from guardrail.core.errors import ConfigError, ModelError
from guardrail.core.http_clients import open_client, openai_errors
from guardrail.core.incoming import without_reasoning
from guardrail.models.base import Completion, SampleRequest, model_workers

if TYPE_CHECKING:
    import openai


class OpenAIModel:
    """A model behind an OpenAI-compatible endpoint.

    The synchronous client runs in threads, so that its connections outlive any event loop.

    Args:
        model: The model's name at the endpoint.
        base_url: The endpoint; None takes ``OPENAI_BASE_URL`` or OpenAI's own.
        api_key: The key; None takes ``OPENAI_API_KEY``.
        api: ``chat`` for chat completions, ``completion`` for base models.
        structured: Constrain citations to the retrieved triples with OpenAI's structured
            outputs; otherwise plain prompting.
        timeout_s: Seconds per call unless the request sets them.
        max_retries: Retries after a failed attempt, with back-off.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api: Literal["chat", "completion"] = "chat",
        structured: bool = False,
        timeout_s: float = 60.0,
        max_retries: int = 2,
    ) -> None:
        if structured and api == "completion":
            raise ConfigError("structured outputs need the chat API; set api to 'chat'")
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._api = api
        self._structured = structured
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._client: openai.OpenAI | None = None
        self._lock = threading.Lock()
        self._workers = model_workers()

    @property
    def name(self) -> str:
        """The model's name at its endpoint."""
        return self._model

    def warm_up(self) -> None:
        """Open the client."""
        self._open()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            client, self._client = self._client, None
            workers, self._workers = self._workers, model_workers()
        workers.close()
        if client is not None:
            client.close()

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """Draw ``request.n`` samples, with further calls if the server returns fewer at once.

        Raises:
            ModelError: The endpoint failed, refused, or did not send a completion.
        """
        samples = await self._workers.run(self._call, request)
        if len(samples) < request.n and request.n > 1:
            seeds = (
                None if request.seed is None else request.seed + number
                for number in range(len(samples), request.n)
            )
            singles = (request.model_copy(update={"n": 1, "seed": seed}) for seed in seeds)
            calls = [self._workers.run(self._call, single) for single in singles]
            further = await asyncio.gather(*calls)
            samples += [sample for batch in further for sample in batch[:1]]
        if not samples:
            raise ModelError(f"model {self._model!r} returned no choices; check the endpoint")
        return samples[: request.n]

    def _open(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None:
                self._client = open_client(
                    self._base_url, self._api_key, max_retries=self._max_retries
                )
            return self._client

    def _call(self, request: SampleRequest) -> list[Completion]:
        import openai

        client = self._open()
        options = self._options(request)
        reply: object
        with openai_errors(f"model {self._model!r}", ModelError):
            try:
                if self._api == "chat":
                    messages: Any = [message.model_dump() for message in request.prompt.messages]
                    reply = client.chat.completions.create(messages=messages, **options)
                else:
                    reply = client.completions.create(prompt=request.prompt.text, **options)
            except openai.BadRequestError:
                if request.n == 1:
                    raise
                reply = None
        if reply is None:  # llama.cpp refuses more choices than it has slots
            return self._call(request.model_copy(update={"n": 1}))
        choices = getattr(reply, "choices", None)
        if not isinstance(choices, list):
            raise ModelError(f"the endpoint of model {self._model!r} sent no completion")
        completions, errors = [], []
        for choice in choices:
            try:
                completions.append(self._completion(choice, request))
            except ModelError as error:  # truncated or not of the schema; others may be usable
                errors.append(error)
        if errors and not completions:
            raise errors[-1]
        return completions

    def _options(self, request: SampleRequest) -> dict[str, Any]:
        options: dict[str, Any] = {
            "model": self._model,
            "n": request.n,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_tokens": request.max_tokens,
            "timeout": request.timeout_s or self._timeout_s,
        }
        if request.seed is not None:
            options["seed"] = request.seed
        chat = self._api == "chat"
        stop = list(request.stop) if chat else ["\n", *request.stop]
        if stop:
            options["stop"] = stop[:4]  # the API's limit
        if self._structured and request.constraint is not None:
            schema = request.constraint.json_schema()
            named = {"name": "cited_answer", "strict": True, "schema": schema}
            options["response_format"] = {"type": "json_schema", "json_schema": named}
        return options

    def _completion(self, choice: Any, request: SampleRequest) -> Completion:
        try:
            said = choice.message.content if self._api == "chat" else choice.text
            text = without_reasoning(said or "")
        except AttributeError as error:
            raise ModelError(f"the endpoint of model {self._model!r} sent no completion") from error
        if self._structured and request.constraint is not None:
            text = request.constraint.from_json(text)
        return Completion(text=text.strip(), finish_reason=choice.finish_reason)
