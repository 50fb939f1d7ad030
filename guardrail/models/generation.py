"""Answers from a language model, with citations limited to retrieved triples."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guardrail.config import GenerationSettings
from guardrail.core.text.sentences import split_sentences
from guardrail.core.types import FailedSentence, Subgraph
from guardrail.markers.grammar import ParsedText, keep, parse
from guardrail.models.base import (
    CitationConstraint,
    Completion,
    LanguageModel,
    SampleRequest,
    sampled,
)
from guardrail.models.facts import relevant_triples
from guardrail.models.prompts import answer_prompt


async def generate(
    question: str,
    subgraphs: Sequence[Subgraph],
    model: LanguageModel,
    n: int = 1,
    *,
    settings: GenerationSettings | None = None,
    failed: Sequence[FailedSentence] = (),
    constrained: bool = True,
) -> list[str]:
    """Sample n answers with citations (KaLMA 3.3).

    Args:
        question: The user's question.
        subgraphs: The retrieved knowledge, best first.
        model: Any language model.
        n: Number of answers.
        settings: How to sample.
        failed: Failed sentences of an earlier answer, for regeneration.
        constrained: Restrict citations to the triples shown; False only prompts.

    Returns:
        n answers with markers in the order of sampling, including duplicates. Of an answer that
        reached the token limit, the unfinished last sentence is removed.

    Raises:
        ModelError: The model was unreachable, refused, or timed out.
    """
    settings = settings or GenerationSettings()
    shown = relevant_triples(question, subgraphs, settings.facts)
    constraint = CitationConstraint(triples=tuple(dict.fromkeys(shown)))
    request = SampleRequest(
        prompt=answer_prompt(question, shown, failed=failed),
        n=n,
        temperature=settings.temperature,
        top_p=0.95,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
        constraint=constraint if constrained else None,
    )
    texts = [_tidied(one, constraint) for one in await sampled(model, request)]
    return [constraint.enforce(text) for text in texts] if constrained else texts


def _tidied(completion: Completion, constraint: CitationConstraint) -> str:
    """Remove repeated sentences and an unfinished last one, which small models add."""
    truncated = completion.finish_reason in ("length", "max_tokens")
    text = completion.text
    if truncated:
        text = re.sub(r"(?<!\s)\s*+\[[^\[\]\n]*+$", "", text)
    parsed: ParsedText = parse(text, constraint.known)
    sentences = split_sentences(parsed.clean)
    ended = r"[.!?…][\"'”’)\]]*$"
    if truncated and len(sentences) > 1 and not re.search(ended, sentences[-1].text):
        sentences = sentences[:-1]
    firsts = {" ".join(s.text.casefold().split()): s for s in reversed(sentences)}
    kept = sorted((s.start, s.end) for s in firsts.values())
    if len(kept) == len(sentences) and not truncated:
        return parsed.marked
    return keep(parsed, kept).marked
