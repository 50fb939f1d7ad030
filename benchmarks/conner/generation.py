"""Knowledge and answers from a language model, scored by CONNER (4.2, appendices F and G).

Settings of a run: ``reference`` takes the knowledge of the data set (in the place of the paper's
DPR), ``zero-shot`` and ``few-shot`` generate it, ``selected-prompt`` shows the n demonstrations of
best Q_know among m (Table 7), and ``selected-knowledge`` keeps the text of best Q_know among r
samples (Table 8). Answers are generated few-shot, as in the paper.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from benchmarks.conner.trials import TURN, Text, pieces
from benchmarks.kept import kept_lines
from guardrail.core.text.sentences import split_sentences
from guardrail.core.types import Value
from guardrail.models import LanguageModel, Message, Prompt, SampleRequest
from judges.conner import (
    ConnerInput,
    ConnerReport,
    ConnerScorer,
    rank,
)
from judges.encoder import OnnxEncoder

__all__ = ["Generator", "Plan", "Scored", "Setting", "read_scored", "retrieved"]

ZERO_SHOT = (
    "Topic: {topic}\nGenerate a Wikipedia to answer the given question.\nQuestion: {query}\n"
    "Wikipedia:"
)
"""The best zero-shot prompt of Table 11."""
FEW_SHOT = "Topic: {topic}\nQuery: {query}\nRelated Wikipedia knowledge:"
"""The best few-shot template of Table 12."""
ANSWER = {
    "span": "Topic: {topic}\nPassage: {knowledge}\nQuery: {query}\nAnswer:",
    "open": "Topic: {topic}\nPassage: {knowledge}\nSpeaker 1: {query}\nSpeaker 2:",
}
"""The best answer templates of Table 13, by kind of answer."""
DEMONSTRATION_WORDS = 60
"""Words of a demonstration's knowledge; whole passages would fill a small model's context."""
ANSWER_DEMONSTRATIONS = 3
KNOWLEDGE_TOKENS, ANSWER_TOKENS = 128, 48
TOP_P = 0.9
EVIDENCE_PIECES = 5
"""Pieces of the pool retrieved for each sentence."""


class Setting(StrEnum):
    """Where the knowledge comes from."""

    REFERENCE = "reference"
    ZERO_SHOT = "zero-shot"
    FEW_SHOT = "few-shot"
    SELECTED_PROMPT = "selected-prompt"
    SELECTED_KNOWLEDGE = "selected-knowledge"


class Plan(Value):
    """What to generate.

    Attributes:
        data: ``nq`` or ``wow``.
        rows: Questions, chosen by the seed.
        seed: Seed of questions, demonstrations and samples.
        model: Name of the language model.
        samples: Samples a question, r; the paper takes 5.
        pool: Demonstrations to choose from, m.
        shown: Demonstrations shown, n.
    """

    data: str
    rows: int
    seed: int
    model: str
    samples: int = 10
    pool: int = 30
    shown: int = 8


class Scored(Value):
    """A generated text with its answer and its report."""

    data: str
    model: str
    setting: Setting
    seed: int
    query: str
    topic: str
    knowledge: str
    answer: str
    reference: str
    report: ConnerReport


class Generator:
    """Generates, scores and keeps rows, so that a stopped run goes on.

    Args:
        plan: What to generate.
        texts: All rows of the data; questions are drawn from them, demonstrations from the rest.
        model: The language model.
        scorer: Scores knowledge and answers.
        encoder: Retrieves evidence from the passages of ``texts``.
        file: JSON lines of ``Scored``, to which rows are added.
    """

    def __init__(
        self,
        plan: Plan,
        texts: Sequence[Text],
        model: LanguageModel | None,
        scorer: ConnerScorer,
        encoder: OnnxEncoder,
        file: Path,
    ) -> None:
        self._plan, self._model, self._scorer, self._file = plan, model, scorer, file
        order = random.Random(plan.seed).sample(list(texts), len(texts))
        self.questions = order[: plan.rows]
        self._others = order[plan.rows :]
        self._retrieve = retrieved(encoder, [p for text in texts for p in pieces(text.knowledge)])

    def run(self, setting: Setting, tell: Callable[[int, int], None]) -> list[Scored]:
        """The rows of a setting, from the file or new.

        Raises:
            ConfigError: The setting needs a language model and none is given.
        """
        known = {
            row.query: row
            for row in read_scored(self._file)
            if (row.data, row.model, row.setting, row.seed)
            == (self._plan.data, self._plan.model, setting, self._plan.seed)
        }
        with self._file.open("a", encoding="utf-8") as file:
            for place, text in enumerate(self.questions):
                if text.query not in known:
                    known[text.query] = row = self._one(setting, text)
                    file.write(row.model_dump_json() + "\n")
                    file.flush()
                tell(place + 1, len(self.questions))
        return [known[text.query] for text in self.questions]

    def _one(self, setting: Setting, text: Text) -> Scored:
        knowledge = self._knowledge(setting, text)
        answer = self._answer(text, knowledge) if self._model is not None else text.answer
        row = self._input(text, knowledge).model_copy(
            update={"answer": answer, "answer_kind": text.answer_kind}
        )
        (report,) = self._scorer.score([row])
        return Scored(
            data=self._plan.data,
            model=self._plan.model,
            setting=setting,
            seed=self._plan.seed,
            query=text.query,
            topic=text.topic,
            knowledge=knowledge,
            answer=answer,
            reference=text.answer,
            report=report,
        )

    def _knowledge(self, setting: Setting, text: Text) -> str:
        if setting is Setting.REFERENCE:
            return text.knowledge
        if setting is Setting.ZERO_SHOT:
            return self._sample(ZERO_SHOT.format(topic=text.topic, query=_last(text)))[0]
        if setting is Setting.SELECTED_KNOWLEDGE:
            prompt = ZERO_SHOT.format(topic=text.topic, query=_last(text))
            found = self._sample(prompt, n=self._plan.samples, seed=self._plan.seed)
            rows = [self._input(text, sample) for sample in found]
            return found[rank(self._scorer.score(rows))[0]]
        shown = self._demonstrations(selected=setting is Setting.SELECTED_PROMPT)
        blocks = [f"{FEW_SHOT.format(topic=t.topic, query=_last(t))} {_short(t)}" for t in shown]
        blocks.append(FEW_SHOT.format(topic=text.topic, query=_last(text)))
        return self._sample("\n\n".join(blocks))[0]

    def _demonstrations(self, *, selected: bool) -> list[Text]:
        pool = self._others[: self._plan.pool]
        if not selected:
            return pool[: self._plan.shown]
        if not hasattr(self, "_best"):
            rows = [self._input(text, _short(text)) for text in pool]
            chosen = rank(self._scorer.score(rows))[: self._plan.shown]
            self._best = [pool[place] for place in chosen]
        return self._best

    def _answer(self, text: Text, knowledge: str) -> str:
        template = ANSWER[text.answer_kind]
        blocks = [
            template.format(topic=t.topic, query=_last(t), knowledge=_short(t)) + f" {t.answer}"
            for t in self._others[:ANSWER_DEMONSTRATIONS]
        ]
        blocks.append(template.format(topic=text.topic, query=_last(text), knowledge=knowledge))
        return self._sample("\n\n".join(blocks), tokens=ANSWER_TOKENS)[0]

    def _sample(
        self, prompt: str, *, n: int = 1, seed: int | None = None, tokens: int = KNOWLEDGE_TOKENS
    ) -> list[str]:
        """Greedy text, or n samples of nucleus sampling; the paper decodes greedily (4.2)."""
        assert self._model is not None, "a setting that generates needs a language model"
        request = SampleRequest(
            prompt=Prompt(messages=(Message(role="user", content=prompt),), text=prompt),
            n=n,
            temperature=1.0 if n > 1 else 0.0,
            top_p=TOP_P if n > 1 else 1.0,
            max_tokens=tokens,
            seed=seed,
        )
        found = asyncio.run(self._model.sample(request))
        return [completion.text.split("\n\n")[0].strip() for completion in found]

    def _input(self, text: Text, knowledge: str) -> ConnerInput:
        sentences = tuple(each.text for each in split_sentences(knowledge))
        return ConnerInput(
            query=_last(text),
            knowledge=knowledge,
            sentences=sentences,
            evidence=self._retrieve(sentences, EVIDENCE_PIECES),
            reference=text.answer,
        )


def retrieved(
    encoder: OnnxEncoder, pool: Sequence[str]
) -> Callable[[Sequence[str], int], tuple[str, ...]]:
    """A function from sentences and a number k to the k nearest pieces of each in a pool (3.3)."""
    unique = list(dict.fromkeys(pool))
    vectors = encoder.embed(unique)

    def nearest(sentences: Sequence[str], count: int) -> tuple[str, ...]:
        if not sentences:
            return ()
        order = (-(encoder.embed(sentences) @ vectors.T)).argsort(axis=1, kind="stable")
        return tuple(dict.fromkeys(unique[place] for row in order for place in row[:count]))

    return nearest


def read_scored(path: Path) -> Iterator[Scored]:
    """Read the rows of earlier runs; none where there is no file."""
    if path.exists():
        yield from map(Scored.model_validate_json, kept_lines(path))


def _last(text: Text) -> str:
    """The question, or the last turn of a dialogue."""
    return text.query.split(TURN)[-1]


def _short(text: Text) -> str:
    return " ".join(text.knowledge.split()[:DEMONSTRATION_WORDS])
