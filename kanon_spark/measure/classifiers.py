"""Two classifiers over features with missing cells: naive Bayes and a decision tree. scikit-learn does the learning.

*Naive Bayes* has one small model per column: shares of values are the counts of a multinomial one, with Laplace's
correction; positions are Gaussian. A missing cell says nothing, neither in training nor when asked.

The *tree* is grown by Gini impurity down to leaves of `LEAF_ROWS` rows, on rows as they may have been: every coarse
cell is replaced by one of the values that it covers, drawn at random, `COPIES` times over. A tree that sees coarse and
missing cells as such splits by how coarse they are. Where a method chooses by the label what it keeps (`kactus` does)
that tells the label of released rows, and nothing about raw rows, of which nothing is coarse.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kanon_spark.errors import PlatformError
from kanon_spark.measure.features import Features

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
COPIES = 3
LEAF_ROWS = 20  # a tree that may isolate single rows learns noise, of the original more than of any release


class Classifier(Protocol):
    """Learns labels 0 … classes-1 from columns."""

    def fit(self, columns: Sequence[Features], labels: Ints, *, classes: int) -> None:
        """Learn."""
        ...

    def predict(self, columns: Sequence[Features]) -> Ints:
        """The most likely label of each row."""
        ...


def need_sklearn() -> None:
    """Refuse with the fix where scikit-learn is missing.

    Raises:
        PlatformError: It is.
    """
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise PlatformError(
            "classifier utility needs scikit-learn, which is not installed",
            where="measure.utility",
            fix="install the extra `utility`: pip install 'kanon-spark[utility]'",
        ) from None


class NaiveBayes:
    """Columns are independent of each other, given the label."""

    def __init__(self) -> None:
        self._models: list[Any] = []
        self._prior: Floats = np.zeros(0)

    def fit(self, columns: Sequence[Features], labels: Ints, *, classes: int) -> None:
        """Learn each column from the rows that tell it, unless it is constant or some label never tells it."""
        from sklearn.naive_bayes import GaussianNB, MultinomialNB

        rows = np.bincount(labels, minlength=classes)
        self._prior = np.log((rows + 1) / (len(labels) + classes))
        self._models = []
        for column in columns:
            known = column.known
            told = np.unique(labels[known])
            constant = column.ordered and known.any() and np.ptp(column.values[known]) == 0  # no Gaussian has no width
            if len(told) < classes or constant:
                self._models.append(None)
                continue
            even = np.full(classes, 1 / classes)  # the labels' own frequencies count once, not once per column
            model = GaussianNB(priors=even) if column.ordered else MultinomialNB(class_prior=even)
            self._models.append(model.fit(column.values[known], labels[known]))

    def predict(self, columns: Sequence[Features]) -> Ints:
        """The most likely label of each row; a missing cell adds nothing."""
        likely = np.tile(self._prior, (len(columns[0].values), 1))
        for model, column in zip(self._models, columns, strict=True):
            known = column.known
            if model is not None and known.any():
                likely[known] += model.predict_joint_log_proba(column.values[known])
        return np.asarray(likely.argmax(axis=1), dtype=np.int64)


class DecisionTree:
    """One tree over all features."""

    def __init__(self, *, seed: int) -> None:
        self._seed = seed
        self._tree: Any = None

    def fit(self, columns: Sequence[Features], labels: Ints, *, classes: int) -> None:
        """Grow the tree; where no cell is coarse one copy gives the tree that all would give."""
        from sklearn.tree import DecisionTreeClassifier

        rng = np.random.default_rng(self._seed)
        copies = 1 if all(column.exact for column in columns) else COPIES
        drawn = np.vstack([_side_by_side([column.drawn(rng) for column in columns]) for _ in range(copies)])
        self._tree = DecisionTreeClassifier(min_samples_leaf=LEAF_ROWS * copies, random_state=self._seed)
        self._tree.fit(drawn, np.tile(labels, copies))

    def predict(self, columns: Sequence[Features]) -> Ints:
        """The majority of the leaf that each row falls into."""
        return np.asarray(self._tree.predict(_side_by_side(columns)), dtype=np.int64)


def _side_by_side(columns: Sequence[Features]) -> NDArray[np.float32]:
    return np.hstack([column.values for column in columns]).astype(np.float32)


def scores(truth: Ints, predicted: Ints) -> dict[str, float]:
    """How often it is right, and what that is worth where one label is rare.

    Returns:
        `accuracy`; `balanced_accuracy`, the mean over the labels of how many of their rows are found; `f1`, the mean
        over the labels of the harmonic mean of precision and recall.
    """
    from sklearn.metrics import f1_score

    present = np.unique(truth)
    return {
        "accuracy": float((truth == predicted).mean()),
        "balanced_accuracy": float(np.mean([(predicted[truth == label] == label).mean() for label in present])),
        "f1": float(f1_score(truth, predicted, labels=present, average="macro", zero_division=0.0)),
    }
