"""Controls that must fail: predictions of the category without reading answer and evidence.

Three simple classifiers are trained on the built training rows. One reads the evidence alone, one
question and answer alone, one only how many words the two share. Where any of them does well on
the test rows, the construction gives its labels away, and a judge trained on it may have learnt
the construction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from itertools import pairwise
from typing import TYPE_CHECKING

from pydantic import FiniteFloat

from benchmarks.caqa.metrics import micro_f1
from benchmarks.caqa.rows import CAQARow
from guardrail.core.errors import InputError, MissingExtraError
from guardrail.core.types import Category, Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LIMIT", "Controls", "overlap_features", "run_controls"]

LIMIT = 0.45
"""Micro-F1 below which every control must stay on the built test rows."""


class Controls(Value):
    """Micro-F1 of each control on the test rows.

    Attributes:
        evidence_only: TF-IDF of words and word pairs of the evidence, logistic regression.
        answer_only: The same of question and answer.
        lexical_overlap: Shares of words and word pairs that question, answer and evidence have in
            common, and lengths; logistic regression.
        majority: Always the commonest category.
        train: Number of training rows.
        test: Number of test rows.
    """

    evidence_only: FiniteFloat
    answer_only: FiniteFloat
    lexical_overlap: FiniteFloat
    majority: FiniteFloat
    train: int
    test: int

    @property
    def passed(self) -> bool:
        """Whether all three stay below ``LIMIT``."""
        return max(self.evidence_only, self.answer_only, self.lexical_overlap) < LIMIT


def run_controls(train: Sequence[CAQARow], test: Sequence[CAQARow]) -> Controls:
    """Train the three controls and measure them.

    Raises:
        MissingExtraError: scikit-learn is not installed.
        InputError: Either set is empty.
    """
    if not train or not test:
        raise InputError("the controls need training rows and test rows; build both splits first")
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("sklearn", "train") from error
    gold = [row.category for row in test]
    counts = [sum(label is category for label in gold) for category in Category]
    return Controls(
        evidence_only=_from_words(
            [" ".join(row.evidence) for row in train],
            train,
            [" ".join(row.evidence) for row in test],
            gold,
        ),
        answer_only=_from_words(
            [f"{row.question} {row.answer}" for row in train],
            train,
            [f"{row.question} {row.answer}" for row in test],
            gold,
        ),
        lexical_overlap=_from_overlap(train, test, gold),
        majority=max(counts) / len(gold),
        train=len(train),
        test=len(test),
    )


def overlap_features(row: CAQARow) -> list[float]:
    """Nine numbers on what question, answer and evidence have in common.

    Share of the answer's words, of the question's, of the answer's own, and of the answer's word
    pairs that occur in the evidence; Jaccard index; share of the answer's capitalised words in
    the evidence; the three lengths in words.
    """
    evidence = " ".join(row.evidence)
    words, answer, question = _words(evidence), _words(row.answer), _words(row.question)
    have, own = set(words), set(answer) - set(question)
    pairs = set(pairwise(answer))
    names = re.findall(r"\b[A-Z]\w+", row.answer)
    return [
        _share(set(answer), have),
        _share(set(question), have),
        _share(own, have),
        _share(pairs, set(pairwise(words))),
        len(set(answer) & have) / max(1, len(set(answer) | have)),
        sum(name in evidence for name in names) / max(1, len(names)),
        float(len(words)),
        float(len(answer)),
        float(len(question)),
    ]


def _from_words(
    texts: list[str], train: Sequence[CAQARow], unseen: list[str], gold: list[Category]
) -> float:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    vectors = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    model = LogisticRegression(max_iter=200)
    model.fit(vectors.fit_transform(texts), [str(row.category) for row in train])
    return micro_f1(gold, [Category(label) for label in model.predict(vectors.transform(unseen))])


def _from_overlap(train: Sequence[CAQARow], test: Sequence[CAQARow], gold: list[Category]) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    model.fit(_matrix(train), [str(row.category) for row in train])
    return micro_f1(gold, [Category(label) for label in model.predict(_matrix(test))])


def _matrix(rows: Sequence[CAQARow]) -> NDArray[np.float64]:
    import numpy as np

    return np.array([overlap_features(row) for row in rows])


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _share(part: Set[object], whole: Set[object]) -> float:
    return len(part & whole) / max(1, len(part))
