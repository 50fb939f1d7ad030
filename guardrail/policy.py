"""Policies: what to do with an answer once it is attributed and scored.

A policy is a small frozen object. Take one of ``ANNOTATE``, ``STRICT``, ``STRICT_CORRECT`` and
``BEST_OF_N`` and change what differs: ``STRICT.changed(deadline_s=5.0)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, FiniteFloat, ValidationError
from pydantic_core import PydanticCustomError

from guardrail.core.errors import ConfigError
from guardrail.core.fields import did_you_mean
from guardrail.core.types.answers import Action, Sentence
from guardrail.core.types.judging import OwnStrictness, Verdict
from guardrail.core.types.value import Seconds, Value

CLAIM_SCORES = (
    "overall",
    "supported_share",
    "na_share",
    "contradicted_share",
    "entailment",
    "grounded",
)
"""Scores of the attribution that an answer without a claim lacks."""


class Unavailable(StrEnum):
    """What to do when the graph, the judge or the model cannot be used."""

    RETURN_UNVERIFIED = "return_unverified"
    REFUSE = "refuse"
    RAISE = "raise"


def _one_of(*actions: Action, but: str = "") -> AfterValidator:
    def check(action: Action) -> Action:
        if action not in actions:
            names = f"{', '.join(actions[:-1])} or {actions[-1]}"
            raise PydanticCustomError("action", f"choose {names}{but}")
        return action

    return AfterValidator(check)


_SENTENCE = (Action.ANNOTATE, Action.FILTER, Action.REGENERATE, Action.REFUSE)
OnContradiction = Annotated[Action, _one_of(Action.ANNOTATE, Action.CORRECT, *_SENTENCE[1:])]
OnSentence = Annotated[Action, _one_of(*_SENTENCE, but="; only contradictions are corrected")]
OnAnswer = Annotated[
    Action,
    _one_of(
        Action.ANNOTATE,
        Action.REGENERATE,
        Action.REFUSE,
        but="; filter and correct are for sentences",
    ),
]


class Policy(Value):
    """Thresholds and what follows from them.

    Attributes:
        name: Name in the score log.
        contradicted: Action for contradicted sentences: ``annotate``, ``correct``, ``filter``
            (remove), ``regenerate`` (ask again) or ``refuse``.
        uncorrected: Action for certain contradictions that ``correct`` could not correct:
            ``annotate``, ``filter``, ``regenerate`` or ``refuse``.
        correct_with: ``edit`` replaces conflicting words by the evidence's; ``model`` also asks the
            language model for what cannot be edited.
        unsupported: Action for unsupported sentences.
        thresholds: Minimum value by score name.
        below: Action for an answer below a threshold: ``annotate``, ``regenerate`` or ``refuse``; a
            missing score is not below.
        irrelevant: The same for the score ``relevance``.
        needs_support: Refuse if no supported sentence is left.
        exhausted: Action once no attempts or time are left.
        candidates: Answers sampled by ``ask`` in each attempt.
        attempts: Most rounds of generation in ``ask``.
        deadline_s: Seconds per answer (all attempts) or ranking; None for no limit. A batch of n
            gets n times this, up to ``limits.batch_s``.
        rank_by: Score that ranks candidates.
        unavailable: Action if a part fails; always reported in ``errors``.
        refusal: Text of a refusal.
        strictness: Overrides the configuration's ``strictness``.
        structured: Judge requested JSON and tool arguments, with keys as labels; a document is
            withheld as a whole.
        dry_run: Return answers as the model wrote them; judge and record them, with the suppressed
            action in ``would``. No sampling, no model corrections.
    """

    name: str
    contradicted: OnContradiction = Action.ANNOTATE
    uncorrected: OnSentence = Action.FILTER
    correct_with: Literal["edit", "model"] = "edit"
    unsupported: OnSentence = Action.ANNOTATE
    thresholds: Mapping[str, FiniteFloat] = Field(default_factory=dict)
    below: OnAnswer = Action.ANNOTATE
    irrelevant: OnAnswer = Action.ANNOTATE
    needs_support: bool = False
    exhausted: OnSentence = Action.ANNOTATE
    candidates: int = Field(default=1, ge=1, le=64)
    attempts: int = Field(default=1, ge=1, le=16)
    deadline_s: Seconds | None = 60.0
    rank_by: str = "overall"
    unavailable: Unavailable = Unavailable.RETURN_UNVERIFIED
    refusal: str = "I could not find an answer that the available evidence supports."
    strictness: OwnStrictness = None
    structured: bool = False
    dry_run: bool = False

    def changed(self, **fields: object) -> Self:
        """A copy with other values, each checked; ``model_copy`` checks nothing.

        Args:
            fields: New values by field; a score that is misspelled in ``thresholds`` or
                ``rank_by`` is noticed, the name of a scorer of your own is not.

        Raises:
            ConfigError: There is no such field, or its value cannot be used.
        """
        for name in fields:
            if name not in type(self).model_fields:
                raise ConfigError(
                    f"a policy has no {name!r}; {did_you_mean(name, type(self).model_fields)}"
                )
        try:
            policy = type(self).model_validate({**self.model_dump(), **fields})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ConfigError(f"policy {self.name!r}: {place}: {first['msg']}") from error
        # Those of ``sck``, ``conner`` and custom scorers are added (``guardrail.scorers``).
        scores = (*CLAIM_SCORES, "citations", "sck", "conner", "relevance")
        for score in (*policy.thresholds, policy.rank_by):
            near = get_close_matches(score, scores, n=1, cutoff=0.85)
            if near and score not in scores:
                raise ConfigError(f"there is no score {score!r}; did you mean {near[0]!r}?")
        return policy

    def asks_for(self, sentence: Sentence) -> Action | None:
        """What the policy asks for, for the sake of one judged sentence; None where it passes.

        A contradiction that is not sure enough to act on is marked. ``decide`` takes it for whole
        answers, a stream for each sentence before it leaves.
        """
        if sentence.correction is not None:
            return Action.CORRECT
        if sentence.verdict is Verdict.CONTRADICTED:
            if not sentence.sure:
                return Action.ANNOTATE
            # What could be corrected was, before: this one stands.
            return self.uncorrected if self.contradicted is Action.CORRECT else self.contradicted
        return self.unsupported if sentence.na else None

    @property
    def samples(self) -> int:
        """Answers to sample in each attempt: one in a dry run."""
        return 1 if self.dry_run else self.candidates

    @property
    def rounds(self) -> int:
        """Most rounds of generation: one in a dry run."""
        return 1 if self.dry_run else self.attempts

    @property
    def resamples(self) -> bool:
        """Whether it takes more than one generation, so that nothing can leave before the last."""
        return self.samples > 1 or self.rounds > 1

    @property
    def waits(self) -> bool:
        """Whether a score of the whole answer may refuse it, so that no sentence leaves before."""
        refusing = Action.REFUSE in (self.settled().below, self.settled().irrelevant)
        return bool(self.thresholds) and refusing and not self.dry_run

    def checking_only(self, where: str) -> Self:
        """The policy itself, for a place that judges answers and cannot call a model for others.

        Args:
            where: The place, for the message.

        Raises:
            ConfigError: The policy samples several answers, or asks for better ones.
        """
        if self.resamples:
            raise ConfigError(
                f"policy {self.name!r} samples {self.samples} times {self.rounds} answers, but "
                f"{where} cannot call a model; take annotate, strict or strict-correct, or set "
                "candidates=1 and attempts=1"
            )
        return self

    def settled(self) -> Self:
        """The policy for an answer that cannot be asked for again.

        Wherever it would regenerate, it does what it names for exhausted attempts; so its action
        is never ``regenerate``, whose text is the unfiltered answer. A dry run only tells what
        would have been done, and that is to ask again where there are attempts for it.
        """
        if self.dry_run and self.attempts > 1:
            return self
        sentence = Action.ANNOTATE if self.exhausted is Action.REGENERATE else self.exhausted
        # A whole answer cannot be taken out.
        answer = Action.ANNOTATE if sentence is Action.FILTER else sentence
        final = dict.fromkeys(("contradicted", "uncorrected", "unsupported"), sentence)
        final |= dict.fromkeys(("below", "irrelevant"), answer)
        changes = {
            field: action
            for field, action in final.items()
            if getattr(self, field) is Action.REGENERATE
        }
        return self.model_copy(update=changes)


ANNOTATE = Policy(name="annotate")
"""Removes nothing and marks everything."""

STRICT = Policy(
    name="strict",
    contradicted=Action.FILTER,
    needs_support=True,
    unavailable=Unavailable.REFUSE,
)
"""Removes contradicted sentences, marks unsupported ones, refuses where nothing is supported.

It also refuses where nothing could be judged, so that no unjudged text leaves a chain.
"""

STRICT_CORRECT = STRICT.model_copy(
    update={"name": "strict-correct", "contradicted": Action.CORRECT}
)
"""As ``STRICT``, but mends contradicted sentences where the evidence tells how, and removes the
others."""

BEST_OF_N = Policy(
    name="best-of-n",
    contradicted=Action.FILTER,
    thresholds={"overall": 0.6},
    below=Action.REGENERATE,
    candidates=5,
    attempts=2,
    rank_by="grounded",
)
"""Samples, ranks, and regenerates below the threshold."""

POLICIES = {policy.name: policy for policy in (ANNOTATE, STRICT, STRICT_CORRECT, BEST_OF_N)}


def policy_named(name: str) -> Policy:
    """Look a policy up by name.

    Raises:
        ConfigError: There is none of that name; the message names the nearest.
    """
    found = POLICIES.get(name.strip().lower().replace("_", "-"))
    if found is None:
        raise ConfigError(f"there is no policy {name!r}; {did_you_mean(name, POLICIES)}")
    return found


def chosen_policy(policy: Policy | str | None, configured: Policy) -> Policy:
    """The policy of a call: the one given, by itself or by name, else the configured one.

    Raises:
        ConfigError: There is none of that name, or it is something else.
    """
    if policy is None or isinstance(policy, Policy):
        return policy or configured
    if isinstance(policy, str):
        return policy_named(policy)
    raise ConfigError(
        f"a policy is a Policy or its name, not a {type(policy).__name__}; change one, as in "
        "STRICT.changed(deadline_s=5.0)"
    )
