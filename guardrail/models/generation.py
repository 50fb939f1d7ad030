"""Answers from a language model, with citations limited to retrieved triples."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guardrail.core.text.sentences import split_sentences
from guardrail.core.types import Citation, FailedSentence, Subgraph, Triple, Value
from guardrail.markers.grammar import ParsedText, keep, parse
from guardrail.models.base import Completion, LanguageModel, SampleRequest
from guardrail.models.calls import sampled
from guardrail.models.constraints import CitationConstraint, constraint_for
from guardrail.models.facts import relevant_triples
from guardrail.models.prompts import answer_prompt
from guardrail.models.settings import TOP_P, GenerationSettings

__all__ = ["GeneratedAnswer", "generate"]


class GeneratedAnswer(Value):
    """One sampled answer.

    Attributes:
        text: The clean answer.
        marked: The answer with markers.
        shown: The triples that the prompt showed.
        dropped: Citations that were removed because no such triple was shown; always empty for a
            plain prompt.
        constrained: True if decoding itself was constrained.
        truncated: True if the answer reached the token limit; its unfinished last sentence is
            removed.
    """

    text: str
    marked: str
    shown: tuple[Triple, ...] = ()
    dropped: tuple[Citation, ...] = ()
    constrained: bool = False
    truncated: bool = False


async def generate(
    question: str,
    subgraphs: Sequence[Subgraph],
    model: LanguageModel,
    n: int = 1,
    *,
    settings: GenerationSettings | None = None,
    failed: Sequence[FailedSentence] = (),
) -> list[GeneratedAnswer]:
    """Sample n answers with citations (KaLMA 3.3).

    Args:
        question: The user's question.
        subgraphs: The retrieved knowledge, best first.
        model: Any language model.
        n: Number of answers.
        settings: How to sample.
        failed: Failed sentences of an earlier answer, for regeneration.

    Returns:
        n answers in the order of sampling, including duplicates.

    Raises:
        ModelError: The model was unreachable, refused, or timed out.
    """
    settings = settings or GenerationSettings()
    shown = relevant_triples(question, subgraphs, settings.facts)
    constraint = constraint_for(shown)
    request = SampleRequest(
        prompt=answer_prompt(question, shown, failed=failed),
        n=n,
        temperature=settings.temperature,
        top_p=TOP_P,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
        constraint=constraint if settings.constrained else None,
    )
    completions = await sampled(model, request)
    return [_answer(completion, constraint, settings) for completion in completions]


def _answer(
    completion: Completion, constraint: CitationConstraint, settings: GenerationSettings
) -> GeneratedAnswer:
    truncated = completion.finish_reason in ("length", "max_tokens")
    text = _OPEN_MARKER.sub("", completion.text) if truncated else completion.text
    marked = _tidied(parse(text, constraint.known), truncated=truncated).marked
    dropped: tuple[Citation, ...] = ()
    if settings.constrained:
        enforced = constraint.enforce(marked)
        marked, dropped = enforced.marked, enforced.dropped
    return GeneratedAnswer(
        text=parse(marked, constraint.known).clean,
        marked=marked,
        shown=constraint.triples,
        dropped=dropped,
        constrained=completion.constrained,
        truncated=truncated,
    )


_OPEN_MARKER = re.compile(r"(?<!\s)\s*+\[[^\[\]\n]*+$")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*$")


def _tidied(parsed: ParsedText, *, truncated: bool) -> ParsedText:
    """Remove repeated sentences and an unfinished last one, which small models add."""
    sentences = split_sentences(parsed.clean)
    if truncated and len(sentences) > 1 and not _SENTENCE_END.search(sentences[-1].text):
        sentences = sentences[:-1]
    firsts = {" ".join(s.text.casefold().split()): s for s in reversed(sentences)}
    kept = sorted((s.start, s.end) for s in firsts.values())
    if len(kept) == len(sentences) and not truncated:
        return parsed
    return keep(parsed, kept)
