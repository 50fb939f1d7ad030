"""The guardrail as a Model Context Protocol server, for agents that check their own answers.

>>> from chains.mcp_server import mcp_server, serve_stdio  # doctest: +SKIP
>>> serve_stdio(mcp_server(Guardrail()))      # doctest: +SKIP
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Annotated, Self, cast

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from chains.evidence.base import request_field
from chains.options import MarkerStyle
from chains.rendering import details, render
from guardrail import ANNOTATE, GuardedAnswer, Guardrail, Verdict
from guardrail.core.errors import GuardrailError
from guardrail.core.incoming import read_clean_json
from guardrail.core.types import Action, Category, Correction, Sentence, SpanKind, Triple, Value


class _Part(Value):
    """A part of a reply, read from the attributes of a result."""

    model_config = ConfigDict(from_attributes=True)


class ReplySpan(_Part):
    """A phrase, and the fact that supports or contradicts it."""

    text: str
    start: int
    end: int
    kind: SpanKind
    triple: Annotated[
        tuple[str, str, str] | None,
        BeforeValidator(lambda fact: fact and (fact.subject, fact.property, fact.value)),
    ]
    instead_of: str | None


class ReplySentence(_Part):
    """A sentence of the text, and its verdict."""

    text: str
    start: int
    end: int
    category: Category | None
    supported: bool
    note: str | None
    spans: tuple[ReplySpan, ...]
    correction: Correction | None

    @model_validator(mode="before")
    @classmethod
    def _of(cls, sentence: object) -> object:
        if not isinstance(sentence, Sentence):
            return sentence
        fields = {name: getattr(sentence, name, None) for name in cls.model_fields}
        return fields | {"supported": sentence.verdict is Verdict.SUPPORTED}


class RemovedSentence(_Part):
    """The place of a removed sentence, and the reason; its text is not repeated."""

    start: int = Field(description="Offset in the original answer, without its markers.")
    end: int
    category: Category | None
    note: str | None
    against: tuple[str, ...]


class ReplyCitation(_Part):
    """A note, and its place in ``text``."""

    title: str
    url: str | None
    start: int
    end: int


class CheckReply(_Part):
    """The verdict on an answer."""

    action: Action
    would: Action | None = Field(description="The action that a dry run would have taken.")
    text: str = Field(description="The answer to give, with its notes.")
    clean: str = Field(description="The same without notes; sentences and spans index it.")
    sentences: tuple[ReplySentence, ...]
    removed: tuple[RemovedSentence, ...]
    citations: tuple[ReplyCitation, ...]
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, answer: GuardedAnswer) -> Self:
        """The reply to a check."""
        rendered = render(answer, MarkerStyle.FOOTNOTES)
        fields = {
            name: getattr(answer, name) for name in ("action", "would", "sentences", "removed")
        }
        return cls.model_validate(
            fields
            | {"text": rendered.text, "clean": answer.text, "citations": rendered.citations}
            | {"reasons": details(answer).get("reasons", ())}
        )


@contextmanager
def _tool_errors() -> Iterator[None]:
    """Report the client's own errors to it; the server would hide the message."""
    try:
        yield
    except GuardrailError as error:
        raise ToolError(str(error)) from error


def serve_stdio(server: MCPServer[object]) -> None:
    """Serve one client over stdin and stdout until it disconnects."""

    async def serve() -> None:
        lines = cast("anyio.AsyncFile[str]", _requests())
        async with stdio_server(stdin=lines) as (received, sent):
            inner = server._lowlevel_server
            await inner.run(received, sent, inner.create_initialization_options())

    anyio.run(serve)


async def _requests() -> AsyncIterator[str]:
    """The lines of stdin without lone surrogates, which the server would not answer."""
    async for line in anyio.wrap_file(TextIOWrapper(sys.stdin.buffer, "utf-8", errors="replace")):
        if "\\ud" in line.lower():  # they can only be written as escapes
            with suppress(ValueError, RecursionError):
                line = json.dumps(read_clean_json(line)) + "\n"
        yield line


def mcp_server(guard: Guardrail) -> MCPServer[object]:
    """Make the server.

    Args:
        guard: Checks answers; its graph holds the facts.
    """
    own = guard.config.policy
    usual = ANNOTATE.changed(deadline_s=own.deadline_s, dry_run=own.dry_run)
    server: MCPServer[object] = MCPServer(
        "kg-guardrail",
        instructions="Check an answer with check_answer before you give it, together with the "
        "passages or facts behind it. Sentences marked [NA] have no support; leave out what is "
        "contradicted.",
    )

    @server.tool()
    async def check_answer(
        question: str,
        answer: str,
        evidence: list[object] | None = None,
        policy: str | None = None,
        strictness: str | None = None,
    ) -> CheckReply:
        """Check an answer sentence by sentence against evidence, or the knowledge graph.

        Args:
            question: The question.
            answer: The answer to check.
            evidence: Evidence for the answer: texts, {"text", "id", "title", "url"},
                {"triple": [subject, property, value]}, {"table": {"rows": [{column: value}, …],
                "name"}} or {"file": {"filename", "file_data": base 64}}; none to use the knowledge
                graph.
            policy: annotate (default) marks, strict removes contradicted sentences, strict-correct
                corrects them if the evidence allows it. In a dry run (``dry_run`` in the settings)
                the text stays as it is and ``would`` names the action.
            strictness: How sure the judge must be: lenient, balanced (default) or strict.
        """
        with _tool_errors():
            field = request_field(
                {"evidence": evidence, "policy": policy, "strictness": strictness}
            )
            checked = await guard.acheck(
                question=question,
                answer=answer,
                evidence=field.evidence,
                policy=field.chosen_policy(usual).checking_only("check_answer"),
            )
        return CheckReply.of(checked)

    if guard.has_model:

        @server.tool()
        async def answer_question(
            question: str, evidence: list[object] | None = None, policy: str | None = None
        ) -> CheckReply:
            """Answer a question from the evidence, or the knowledge graph.

            Answers are sampled, checked sentence by sentence and ranked; the best one is returned.

            Args:
                question: The question.
                evidence: As for check_answer.
                policy: strict, strict-correct, annotate or best-of-n; none for the configured one.
            """
            with _tool_errors():
                field = request_field({"evidence": evidence, "policy": policy})
                answer = await guard.aask(
                    question=question, evidence=field.evidence, policy=field.chosen_policy(own)
                )
            return CheckReply.of(answer)

    @server.tool()
    async def find_facts(question: str) -> dict[str, object]:
        """Find facts for a question in the knowledge graph, or in the files that replace it.

        Args:
            question: The question, or a name.
        """
        with _tool_errors():
            known = await guard.aretrieve(question=question)
        triples = (
            known.relevant(question)
            if known.source == "files"
            else [item for item in known.evidence if isinstance(item, Triple)]
        )
        most = 50
        return {
            "entities": [
                {"id": entity.entity.id, "label": entity.entity.label, "url": entity.entity.url}
                for entity in known.entities
            ],
            "facts": [
                {"triple": [triple.subject, triple.property, triple.value]}
                for triple in triples[:most]
            ],
            "left_out": max(0, len(triples) - most),
        }

    return server
