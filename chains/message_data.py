"""Calls of tools and data in what LangChain's Runnables return: judged, or named as unjudged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel

from chains.evidence.base import Case
from chains.messages import judged_metadata
from chains.structured import Document, Verdicts, call_name, judge_documents
from guardrail import Guardrail, Policy
from guardrail.core.errors import GuardrailError

__all__ = [
    "WithheldError",
    "documents_in",
    "has_data",
    "message_with",
    "with_judged_data",
]

SERVER_BLOCKS = frozenset({"server_tool_call", "server_tool_result"})
"""Content blocks of tools that the provider runs itself."""
REPEATED = frozenset({"tool_calls", "function_call", "parsed"})
"""Keys of ``additional_kwargs`` in which providers repeat calls and data."""


class WithheldError(GuardrailError):
    """A Runnable returned data that the policy does not let out, or that cannot be judged."""


async def with_judged_data(
    guard: Guardrail, policy: Policy, case: Case | None, output: object
) -> object:
    """Judge the calls of a message, or data, where the policy says ``structured``.

    Args:
        guard: The guardrail.
        policy: What decides, unless the case names another.
        case: What they are judged against; None where they are not judged.
        output: A message whose text is judged, a text, or data.

    Returns:
        The output. The metadata of a message tell the verdicts, and the names of what has none;
        it has no calls where one of them is withheld.

    Raises:
        WithheldError: The output is data of which the policy would take something out.
    """
    policy = policy if case is None else case.policy or policy
    verdicts = await judge_documents(guard, policy, case, documents_in(output, policy))
    if isinstance(output, AIMessage):
        return message_with(output, verdicts, policy)
    if verdicts.withheld:
        raise WithheldError(policy.refusal)
    return output


def has_data(output: object, policy: Policy) -> bool:
    """Whether the policy has something of an output judged beside its text."""
    if not policy.structured or output is None or isinstance(output, str | Exception):
        return False
    return bool(_calls(output)) if isinstance(output, AIMessage) else True


def documents_in(output: object, policy: Policy, name: str = "output") -> list[Document]:
    """What an output hands to tools, or holds in place of an answer.

    Args:
        output: What a Runnable returned.
        policy: Data are read where it says ``structured``.
        name: What data are called.

    Raises:
        WithheldError: It is to be judged, and cannot be read.
    """
    if isinstance(output, AIMessage):
        return _calls(output)
    if output is None or isinstance(output, str | BaseMessage | Exception):
        return []
    return [Document(name, "answer", _plain(output) if policy.structured else None)]


def message_with(
    message: AIMessage, verdicts: Verdicts, policy: Policy, *, text: str | None = None
) -> AIMessage:
    """The message with the verdicts on its calls, or without its calls where one is withheld.

    Args:
        message: Its text is judged.
        verdicts: On its documents.
        policy: Whose refusal stands where nothing is left.
        text: What stays of a message of which something is withheld; its text unless told.
    """
    if not (told := verdicts.told()):
        return message
    verdict = {**message.response_metadata.get("guardrail", {}), **told}
    if verdicts.withheld:
        left = message.text if text is None else text
        # A call may be told in several places, so all of them go.
        return AIMessage(
            content=left if left.strip() else policy.refusal,
            id=message.id,
            name=message.name,
            usage_metadata=message.usage_metadata,
            response_metadata={**judged_metadata(message), "guardrail": verdict},
        )
    changed: dict[str, object] = {
        "response_metadata": {**message.response_metadata, "guardrail": verdict}
    }
    if policy.structured:
        changed["additional_kwargs"] = {
            key: held for key, held in message.additional_kwargs.items() if key not in REPEATED
        }
    return message.model_copy(update=changed)


def _calls(message: AIMessage) -> list[Document]:
    """What the calls of a message hand over, those that its provider answers itself as well."""
    called: list[tuple[object, object, object]] = [
        (call["id"], call["name"], call["args"])
        for call in (*message.tool_calls, *message.invalid_tool_calls)
    ]
    blocks = [] if isinstance(message.content, str) else message.content_blocks
    for block in blocks:
        if block["type"] in SERVER_BLOCKS:
            told = dict(block)
            held = told.get("args", told.get("output"))
            called.append((told.get("id"), told.get("name") or told["type"], held))
    return [
        Document.read(str(id or name), str(name), args, call_name(name or id))
        for id, name, args in called
    ]


def _plain(value: object) -> object:
    """Data as JSON has them.

    Raises:
        WithheldError: They hold what JSON has not.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, AIMessage):
        return {"text": value.text, "calls": [call.value for call in _calls(value)]}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(held) for held in value]
    raise WithheldError(
        f"the policy has data judged, and a {type(value).__name__} is none that can be"
    )
