"""What a release is still good for: classifiers trained on it, tested on original rows that it does not hold.

The same classifiers trained on the original are the measure, the most frequent label is the floor. See
`measure/README.md` for how published cells are read.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.errors import DataError, MissingInputError
from kanon_spark.hierarchy.tree import Kind
from kanon_spark.measure.attributes import Attribute, attribute_of
from kanon_spark.measure.classifiers import Classifier, DecisionTree, NaiveBayes, need_sklearn, scores
from kanon_spark.measure.features import Features, Reader

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kanon_spark.config.loader import LoadedConfig

Ints = NDArray[np.int64]

TRAIN_ROWS, TEST_ROWS = 50_000, 20_000  # of big tables a sample: trees of more rows take minutes and say the same
_PARTS = 1_000_000  # a table is cut by a hash of its rows into so many parts, as finely as shares need it


def classifier_utility(
    original: pd.DataFrame,
    released: pd.DataFrame,
    test: pd.DataFrame,
    *,
    attributes: Sequence[Attribute],
    target: str,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare classifiers trained on a release with the same trained on the rows it was made from.

    Args:
        original: The rows that were anonymized, as texts.
        released: What was published of them, as texts.
        test: Original rows that were not anonymized, as texts.
        attributes: The columns to learn from: quasi-identifiers, and any that were published as they are.
        target: The column to predict; it must have been published as it is.
        seed: Seed of the tree's draws and ties.

    Returns:
        Per classifier (`naive_bayes`, `decision_tree`) the `scores` of `original` and `release`; `majority`, the share
        of the test rows that the most frequent label of the original gets right; `rows` of the three tables.

    Raises:
        PlatformError: scikit-learn is not installed.
        DataError: A table has no rows, or the target only one value.
    """
    labels = np.unique(np.concatenate([_texts(table, target) for table in (original, released, test)]))
    yardstick = Yardstick(original, test, attributes=attributes, target=target, labels=labels, seed=seed)
    release = yardstick.scores_of(released)
    return {
        "target": target,
        "rows": {"original": len(original), "release": len(released), "test": len(test)},
        "majority": yardstick.majority,
        **{name: {"original": found, "release": release[name]} for name, found in yardstick.original.items()},
    }


class Yardstick:
    """What classifiers learn from the original, and from any number of releases of it.

    Attributes:
        original: Scores of each classifier (`naive_bayes`, `decision_tree`) trained on the original.
        majority: The share of the test rows that the most frequent label of the original gets right.
    """

    def __init__(
        self,
        original: pd.DataFrame,
        test: pd.DataFrame,
        *,
        attributes: Sequence[Attribute],
        target: str,
        labels: NDArray[np.str_] | None = None,
        seed: int = 0,
    ) -> None:
        """Train on the original; the arguments are those of `classifier_utility`.

        Args:
            original: The rows that were anonymized, as texts.
            test: Original rows to test on, as texts.
            attributes: The columns to learn from.
            target: The column to predict.
            labels: The target's values in ascending order; those of original and test by default.
            seed: Seed of the tree's draws and ties.
        """
        need_sklearn()
        self._target, self._seed = target, seed
        self._names = [attribute.name for attribute in attributes]
        if labels is None:
            labels = np.unique(np.concatenate([_texts(table, target) for table in (original, test)]))
        self._labels = labels
        self._readers = [Reader(attribute, original[attribute.name]) for attribute in attributes]
        self._test, self._truth = self._read(test, "test", raw=True)
        columns, known = self._read(original, "original", raw=True)
        if len(labels) < 2:
            raise DataError("the target has one value only: there is nothing to predict", where=target)
        self.majority = float((self._truth == np.bincount(known).argmax()).mean())
        self.original = self._learnt(columns, known)

    def scores_of(self, released: pd.DataFrame) -> dict[str, dict[str, float]]:
        """Scores of each classifier trained on a release of the original."""
        return self._learnt(*self._read(released, "release", raw=False))

    def _read(self, table: pd.DataFrame, name: str, *, raw: bool) -> tuple[list[Features], Ints]:
        """Features and labels of a table."""
        if not len(table):
            raise DataError("there is no row to learn from or to test on", where=name)
        # Draws go row by row: in the order of their content they do not depend on how the rows arrived.
        table = table.sort_values([*self._names, self._target], key=_sortable, kind="stable")
        both = zip(self._readers, self._names, strict=True)
        labels = np.searchsorted(self._labels, _texts(table, self._target))
        return [reader.read(table[column], raw=raw) for reader, column in both], labels

    def _learnt(self, columns: Sequence[Features], labels: Ints) -> dict[str, dict[str, float]]:
        made: dict[str, Classifier] = {"naive_bayes": NaiveBayes(), "decision_tree": DecisionTree(seed=self._seed)}
        found = {}
        for name, classifier in made.items():
            classifier.fit(columns, labels, classes=len(self._labels))
            found[name] = scores(self._truth, classifier.predict(self._test))
        return found


def _sortable(column: "pd.Series[Any]") -> "pd.Series[str]":
    """Cells as texts that sort, whatever they hold (sets may be lists)."""
    return column.map(str)


def _texts(table: pd.DataFrame, target: str) -> NDArray[np.str_]:
    """The target's values as texts, null as one of them."""
    return table[target].astype("string").fillna("").to_numpy(str)


def utility(
    released: "DataFrame",
    original: "DataFrame",
    test: "DataFrame",
    *,
    config: "LoadedConfig",
    target: str,
    others: Sequence[str] = (),
    train_rows: int = TRAIN_ROWS,
    test_rows: int = TEST_ROWS,
    seed: int = 0,
) -> dict[str, Any]:
    """`classifier_utility` of Spark tables, on samples that depend on the rows and the seed alone.

    Args:
        released: The release.
        original: The rows it was made from.
        test: Original rows that it does not hold (see `hold_out`).
        config: The configuration of the run: which columns are quasi-identifiers, and their hierarchies.
        target: The column to predict, published as it is.
        others: More columns to learn from, published as they are.
        train_rows: Most rows of the release and of the original to learn from.
        test_rows: Most rows to test on.
        seed: Seed of the samples, and of the tree's draws and ties.

    Raises:
        MissingInputError: A table lacks a column.
    """
    from kanon_spark.signatures.columns import kind_of, type_of

    need_sklearn()
    specs = config.config.columns.quasi_identifiers
    names = [*specs, *(name for name in others if name not in specs), target]
    for table, what in ((released, "release"), (original, "original"), (test, "test rows")):
        missing = [name for name in names if name not in table.columns]
        if missing:
            raise MissingInputError(f"there is no column {', '.join(missing)}", where=what)
    frames = [
        sample_texts(table, names, rows=rows, seed=seed)
        for table, rows in ((original, train_rows), (released, train_rows), (test, test_rows))
    ]
    kinds: dict[str, Kind] = {name: kind_of(type_of(original, name), qi=name) for name in names[:-1]}
    attributes = [
        attribute_of(name, frames[0][name], kinds[name], specs.get(name), base_dir=config.base_dir)
        for name in names[:-1]
    ]
    return classifier_utility(frames[0], frames[1], frames[2], attributes=attributes, target=target, seed=seed)


def hold_out(table: "DataFrame", *, share: float = 0.3, seed: int = 0) -> "tuple[DataFrame, DataFrame]":
    """Cut a table into rows to anonymize and rows to test on, by a hash of each row: the same cut every time.

    Equal rows stay together, so that no test row was seen in training.
    """
    from pyspark.sql import functions as F

    part = F.pmod(_row_hash(table, table.columns, seed), F.lit(_PARTS))
    border = F.lit(round(share * _PARTS))
    return table.where(part >= border), table.where(part < border)


def _row_hash(table: "DataFrame", columns: Sequence[str], seed: int) -> "Column":
    from pyspark.sql import functions as F

    from kanon_spark.io.content import content_hash

    return F.xxhash64(content_hash(table, columns), F.lit(seed))


def sample_texts(table: "DataFrame", columns: Sequence[str], *, rows: int, seed: int) -> pd.DataFrame:
    """At most so many rows, as texts: those whose hashes come first, whatever their order and partitions."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    from kanon_spark.signatures.columns import quoted, type_of

    texts = [
        (F.to_json(quoted(name)) if isinstance(type_of(table, name), T.ArrayType) else F.col(quoted(name)))
        .cast("string")
        .alias(name)
        for name in columns
    ]
    names = [quoted(name) for name in columns]
    order = _row_hash(table, columns, seed)
    # Bounded by `rows`; equal hashes are equal rows, so ties change nothing.
    return table.select(*names).orderBy(order).limit(rows).select(*texts).toPandas()
