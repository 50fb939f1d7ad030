"""What generation asks of a language model: one asynchronous protocol, n samples a call."""

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
    """One prompt in both forms; the back end takes the one its model understands.

    Attributes:
        messages: For chat models.
        text: For base models, which continue it; the answer ends at the first line break.
    """

    messages: tuple[Message, ...]
    text: str

    @classmethod
    def from_text(cls, text: str) -> Prompt:
        """A prompt without turns, the same for both kinds of model."""
        return cls(messages=(Message(role="user", content=text),), text=text)


class SampleRequest(Value):
    """What to sample.

    Attributes:
        prompt: What the model reads.
        n: Number of samples.
        temperature: 0 takes the likeliest token; KaLMA's main runs use 0.5.
        top_p: Nucleus of the token distribution to sample from.
        max_tokens: Limit per sample.
        seed: Makes samples reproducible where the server supports it.
        stop: Strings that end a sample, besides those of the back end.
        constraint: Allow only citations of these triples; None samples freely.
        timeout_s: Seconds after which the call fails; None leaves it to the back end.
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
        text: The answer, with markers where the prompt asked for them.
        finish_reason: ``stop`` or ``length`` where the server tells.
        constrained: True when decoding itself was held to the constraint.
    """

    text: str
    finish_reason: str | None = None
    constrained: bool = False


@runtime_checkable
class LanguageModel(Protocol):
    """A model that answers.

    ``sample`` may be called from any event loop; it does not block the loop.
    """

    @property
    def name(self) -> str:
        """Name of the model, for the score log."""
        ...

    def warm_up(self) -> None:
        """Load what the first call would load."""
        ...

    async def sample(self, request: SampleRequest) -> list[Completion]:
        """Draw ``request.n`` samples.

        Raises:
            ModelError: The model could not be reached, refused, or its time ran out.
        """
        ...

    def close(self) -> None:
        """Release connections and memory; a later call may open them again."""
        ...


def model_workers() -> Workers:
    """Threads for the blocking calls of one model.

    They are its own: calls that hang must not take those of the event loop's other work. Beyond
    64 that hang and are no longer waited for, further ones are refused.
    """
    return Workers(concurrency=32, stuck=64)
