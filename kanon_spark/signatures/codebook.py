"""What every stage needs to know of the QIs: their trees, their values, and how they are packed.

A codebook is small, picklable and travels to the workers; it holds raw values, so it is confidential like the recoding.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kanon_spark.hierarchy.tree import Domain, Kind, Tree
from kanon_spark.signatures.forms import AS_LABELS, Form
from kanon_spark.signatures.layout import Layout

Publish = Literal["node", "range", "set"]


@dataclass(frozen=True)
class QiColumn:
    """One quasi-identifier, encoded.

    Attributes:
        name: Column name in the table.
        kind: What its values are.
        weight: Weight of its loss.
        tree: Its hierarchy, or the search tree that stands in where none was given.
        publish: "node" publishes the label of the lowest common ancestor; "range" and "set" (no hierarchy) publish the
            tight range or set of the class's own values, and the tree only guides the search.
        texts: Text of each leaf, None for the null leaf.
        positions: Position of each leaf (see `Domain`), NaN where it has none.
        static: True where the leaves come from a hierarchy file, so that they may stand as literals in a plan.
        by_code: True where rows are told apart by the leaf code, not by the raw value (`min_level`, `unknown: root`).
        form: In which form it is published, as `output` asks.
        bounds: Least and largest value of each node's label (nodes by 2), where they are published; NaN for none.
    """

    name: str
    kind: Kind
    weight: float
    tree: Tree
    publish: Publish
    texts: tuple[str | None, ...]
    positions: NDArray[np.float64]
    static: bool
    by_code: bool = False
    form: Form = AS_LABELS
    bounds: NDArray[np.float64] | None = None

    @property
    def miss(self) -> int:
        """Code of a value that has no leaf: the unknown leaf where there is one, else the number behind the last leaf.

        No signature that is solved ever holds the latter: the aggregation detects it and refuses the run.
        """
        return self.tree.unknown_leaf if self.tree.unknown_leaf >= 0 else self.tree.leaves

    @property
    def span(self) -> float:
        """Range of the leaves' positions."""
        return Domain(self.kind, (), self.positions, np.zeros(0, dtype=np.int64)).span


@dataclass(frozen=True)
class Codebook:
    """All quasi-identifiers of a run, in the order of the configuration."""

    columns: tuple[QiColumn, ...]

    @property
    def layout(self) -> Layout:
        """How leaf codes are packed into key words, with room for the code of a missing leaf."""
        return Layout.of([max(column.tree.leaves, column.miss + 1) for column in self.columns])

    @property
    def node_layout(self) -> Layout:
        """How the node ids of a class are packed into out words (range and set QIs publish their own label instead)."""
        return Layout.of([column.tree.nodes for column in self.columns])

    @property
    def numbers(self) -> dict[str, str]:
        """The entries' columns of numbers, and the name that each has in the release."""
        return {
            f"{part}_{index}": name
            for index, column in enumerate(self.columns)
            for part, name in zip(column.form.numbers, column.form.added(column.name), strict=True)
        }

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights of the QIs."""
        return np.array([column.weight for column in self.columns])
