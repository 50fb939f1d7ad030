"""The protocol of language models: asynchronous, with n samples per call."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from pydantic import Field, FiniteFloat

from guardrail.core.types import Value
from guardrail.core.workers import Workers
from guardrail.models.constraints import CitationConstraint

__all__ = ["Completion", "LanguageModel", "Message", "Prompt", "SampleRequest", "model_workers"]


class Message(Value):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class Prompt(Value):
    """One prompt in both forms; the back end uses the one for its model.

    Attributes:
        messages: For chat models.
        text: For base models, which continue it; the answer ends at the first line break.
    """

    messages: tuple[Message, ...]
    text: str

    @classmethod
    def from_text(cls, text: str) -> Prompt:
        """A prompt of one turn, the same for both kinds of model."""
        return cls(messages=(Message(role="user", content=text),), text=text)


class SampleRequest(Value):
    """A request for samples.

    Attributes:
        prompt: The prompt.
        n: Number of samples.
        temperature: 0 selects the likeliest token; KaLMA's main runs use 0.5.
        top_p: Nucleus of the token distribution to sample from.
        max_tokens: Limit per sample.
        seed: Makes samples reproducible if the server supports it.
        stop: Additional strings that end a sample.
        constraint: Allow only citations of these triples; None for free text.
        timeout_s: Seconds after which the call fails; None for the limit of the back end.
    """

    prompt: Prompt
    n: int = Field(default=1, ge=1)
    temperature: FiniteFloat = Field(default=0.5, ge=0.0)
    top_p: FiniteFloat = Field(default=1.0, gt=0.0, le=1.0)
    max_tokens: int = Field(default=256, ge=1)
    seed: int | None = None
    stop: tuple[str, ...] = ()
    constraint: CitationConstraint | None = None
    timeout_s: FiniteFloat | None = Field(default=None, gt=0.0)


class Completion(Value):
    """One sample.

    Attributes:
        text: The answer, with markers if the prompt requested them.
        finish_reason: ``stop`` or ``length``, if the server reports it.
        constrained: True if decoding itself was constrained.
    """

    text: str
    finish_reason: str | None = None
    constrained: bool = False


@runtime_checkable
class LanguageModel(Protocol):
    """A language model.

    ``sample`` may be called from any event loop, which it does not block.
    """

    @property
    def name(self) -> str:
        """Name of the model, for the score log."""
        ...

    def warm_up(self) -> None:
        """Load everything that the first call needs."""
        ...

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """Draw ``request.n`` samples.

        Raises:
            ModelError: The model was unreachable, refused, or timed out.
        """
        ...

    def close(self) -> None:
        """Release connections and memory; a later call may open them again."""
        ...


def model_workers() -> Workers:
    """Threads for the blocking calls of one model.

    They are separate, so that hanging calls do not block other work of the event loop. Further
    calls are refused if 64 abandoned ones still hang.
    """
    return Workers(concurrency=32, stuck=64)
