"""Evidence that a caller hands over: items of a list, and the ``guardrail`` field of a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from guardrail import Policy, policy_named
from guardrail.errors import InputError
from guardrail.types import Evidence, OwnStrictness, Passage, Triple, Value

__all__ = ["FIELD", "RequestField", "evidence_item", "evidence_items", "request_field"]

FIELD = "guardrail"
"""Name of the field in a request's body, and of the key in a LangChain config's metadata."""

ITEM_KEYS = ("text", "id", "title", "url", "triple")


class RequestField(Value):
    """What a request says of its own guarding.

    Attributes:
        evidence: What its answer is judged against; None where it hands nothing over.
        policy: A policy by name.
        strictness: How sure the judge must be, a preset or thresholds.
    """

    evidence: tuple[Evidence, ...] | None = None
    policy: str | None = None
    strictness: OwnStrictness = None

    @property
    def changes_policy(self) -> bool:
        """Whether it asks for another policy, or for a strictness of its own."""
        return self.policy is not None or self.strictness is not None

    def chosen_policy(self, configured: Policy) -> Policy:
        """The policy named, else the configured one, with the strictness told.

        Raises:
            ConfigError: There is none of that name.
        """
        policy = policy_named(self.policy) if self.policy else configured
        return policy.changed(strictness=self.strictness) if self.strictness else policy


def request_field(value: object) -> RequestField:
    """Read the ``guardrail`` field of a request.

    Args:
        value: ``{"evidence": [...], "policy": "strict", "strictness": "lenient"}``; None for a
            request without it.

    Raises:
        InputError: It holds a key that is not known, or an item that is no evidence.
        ConfigError: There is no such policy or strictness.
    """
    if value is None:
        return RequestField()
    if not isinstance(value, Mapping):
        raise InputError(f"{FIELD!r} must be an object, not {_kind(value)}")
    _known_keys(value, tuple(RequestField.model_fields), FIELD)
    evidence, policy = value.get("evidence"), value.get("policy")
    if policy is not None:
        if not isinstance(policy, str):
            raise InputError(f"{FIELD}.policy must be a policy's name, not {_kind(policy)}")
        policy_named(policy)
    items = None if evidence is None else evidence_items(evidence, f"{FIELD}.evidence")
    return RequestField(evidence=items, policy=policy, strictness=value.get("strictness"))


def evidence_items(items: object, where: str = "evidence") -> tuple[Evidence, ...]:
    """Read a list of items as evidence.

    Args:
        items: Strings, ``{"text", "id", "title", "url"}``, ``{"triple": [s, p, o]}``, triples,
            passages, or LangChain documents.
        where: Its name, for errors.

    Raises:
        InputError: It is no list, or an item is none of these.
    """
    if isinstance(items, str | bytes | Mapping | Value) or not isinstance(items, Iterable):
        raise InputError(f"{where} must be a list of items, not {_kind(items)}")
    return tuple(evidence_item(one, f"{where}[{place}]") for place, one in enumerate(items))


def evidence_item(item: object, where: str = "item") -> Evidence:
    """Read one item as evidence; see ``evidence_items``.

    Raises:
        InputError: It is no evidence.
    """
    if isinstance(item, Triple | Passage):
        return item
    if isinstance(item, str):
        return Passage(text=item)
    if isinstance(item, Mapping):
        return _object(item, where)
    text = getattr(item, "page_content", None)
    if isinstance(text, str):
        return _document(text, getattr(item, "metadata", None) or {}, getattr(item, "id", None))
    if isinstance(item, list | tuple):
        return _triple(item, where)
    raise InputError(
        f"{where} must be a text, an object with 'text' or 'triple', a Triple, a Passage or a "
        f"LangChain document, not {_kind(item)}"
    )


def _object(item: Mapping[str, Any], where: str) -> Evidence:
    if isinstance(item.get("page_content"), str):
        return _document(item["page_content"], item.get("metadata") or {}, item.get("id"))
    _known_keys(item, ITEM_KEYS, where)
    if "triple" in item:
        return _triple(item["triple"], f"{where}.triple")
    try:
        return Passage.model_validate(
            {key: _written(value) for key, value in item.items() if value is not None}
        )
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{where}.{place}: {first['msg']}") from None


def _triple(parts: object, where: str) -> Triple:
    if (
        not isinstance(parts, list | tuple)
        or len(parts) != 3
        or not all(isinstance(part, str | int | float) for part in parts)
    ):
        raise InputError(f"{where} must be [subject, property, value]")
    subject, name, value = (str(part) for part in parts)
    return Triple(subject=subject, property=name, value=value)


def _document(text: str, metadata: Mapping[str, Any], name: object) -> Passage:
    """A LangChain document: its ``source`` is the page that a reader can open."""
    found = name if name is not None else metadata.get("id")
    url = metadata.get("url") or metadata.get("source")
    title = metadata.get("title")
    return Passage(
        text=text,
        id=None if found is None else str(found),
        title=None if title is None else str(title),
        url=None if url is None else str(url),
    )


def _known_keys(value: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in value:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise InputError(f"{where} has no field {key!r}; {hint}")


def _written(value: object) -> object:
    """Ids and the like may be numbers."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
