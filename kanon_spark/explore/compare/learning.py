"""What classifiers learn from each cell's release: rows drawn once, published anew for each cell.

Classes are formed of all rows, and the rows that classifiers are tested on are left out of what they learn from. So
the QIs of test rows have had a say in the classes, as they would in any release that holds them; a method that looks
at labels (`kactus`, `kmember` with a label) has seen those of test rows too.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.engine.encoded import EncodedTable
from kanon_spark.explore.compare.result import Learnt
from kanon_spark.measure.attributes import attribute_of
from kanon_spark.measure.tally import Entries
from kanon_spark.measure.utility import TEST_ROWS, TRAIN_ROWS, Yardstick, hold_out, sample_texts
from kanon_spark.recoding.texts import published_texts
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.signatures.columns import kind_of, quoted, type_of
from kanon_spark.signatures.encoding import ROW_HASH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Learning:
    """Rows to learn from with the signature of each, and what the original teaches."""

    rows: pd.DataFrame
    signatures: "DataFrame"
    yardstick: Yardstick
    label: str

    @classmethod
    def of(cls, table: EncodedTable, loaded: LoadedConfig, label: str) -> "Learning":
        """Draw the rows, and train on the original.

        Raises:
            PlatformError: scikit-learn is not installed.
            DataError: There are too few rows, or the label has one value only.
        """
        qis = list(loaded.config.columns.quasi_identifiers)
        names = [ROW_HASH, *qis, label]
        seed = loaded.config.execution.seed
        source = table.encoding.with_identity(table.source).select(*[quoted(name) for name in names])
        train, test = hold_out(source, seed=seed)
        # At most TRAIN_ROWS and TEST_ROWS rows.
        rows = sample_texts(train, names, rows=TRAIN_ROWS, seed=seed)
        tested = sample_texts(test, names, rows=TEST_ROWS, seed=seed)
        specs = loaded.config.columns.quasi_identifiers
        attributes = [
            attribute_of(
                name, rows[name], kind_of(type_of(table.source, name), qi=name), specs[name], base_dir=loaded.base_dir
            )
            for name in qis
        ]
        yardstick = Yardstick(rows, tested, attributes=attributes, target=label, seed=seed)
        rows[ROW_HASH] = rows[ROW_HASH].astype(np.int64)
        known = pd.DataFrame({"h": rows[ROW_HASH].unique()})
        return cls(rows, table.ctx.spark.createDataFrame(known, "h long"), yardstick, label)

    @property
    def learnt(self) -> Learnt:
        """What the original teaches."""
        found = self.yardstick.original
        tree, bayes = (found[name]["accuracy"] for name in ("decision_tree", "naive_bayes"))
        return Learnt(self.label, tree, bayes, self.yardstick.majority)

    def accuracies(self, entries: Entries, codebook: Codebook) -> tuple[float, float]:
        """Accuracy of the tree and of naive Bayes, trained on what these entries publish of the rows.

        Raises:
            DataError: None of the rows would be released.
        """
        if not isinstance(entries, pd.DataFrame):
            own = [f"label_{index}" for index, column in enumerate(codebook.columns) if column.publish != "node"]
            picked = entries.select("h", "class_id", *codebook.node_layout.names("out"), *own)
            # At most one entry for each row that is learnt from.
            entries = picked.join(self.signatures.hint("broadcast"), "h", "left_semi").toPandas()
        place = pd.Series(np.arange(len(entries)), index=entries["h"].to_numpy(np.int64))
        mine = entries.iloc[place[self.rows[ROW_HASH]].to_numpy()].reset_index(drop=True)
        released = published_texts(mine, codebook).assign(**{self.label: self.rows[self.label].to_numpy()})
        found = self.yardstick.scores_of(released[mine["class_id"].to_numpy() >= 0])
        return found["decision_tree"]["accuracy"], found["naive_bayes"]["accuracy"]
