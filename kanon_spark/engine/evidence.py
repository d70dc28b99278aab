"""What the verifier is told about a recoding: plain facts, so that it needs none of the code that made them."""

from pathlib import Path
from typing import TYPE_CHECKING

from kanon_spark.config.models import Config, CsvSpec
from kanon_spark.io.paths import resolve
from kanon_spark.verify.facts import Evidence, QiFacts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.signatures.encoding import Encoding


def make_evidence(
    source: "DataFrame", encoding: "Encoding", entries: "DataFrame", config: Config, *, base_dir: Path
) -> Evidence:
    """The entries with everything that is needed to check them against source and hierarchies."""
    qis = []
    for index, column in enumerate(encoding.codebook.columns):
        spec = config.columns.quasi_identifiers[column.name]
        csv = Path(resolve(spec.hierarchy.path, base_dir)) if isinstance(spec.hierarchy, CsvSpec) else None
        derived = column.by_code or spec.min_level > 0
        qis.append(
            QiFacts(
                name=column.name,
                kind=column.kind,
                spec=spec,
                csv_path=csv,
                leaf_labels=column.tree.labels[: column.tree.leaves],
                node_labels=column.tree.labels,
                publish=column.publish,
                by_code=column.by_code,
                values=encoding.spelt(index) if column.static and not column.by_code else None,
                dictionary=None if column.static or column.by_code else encoding.idents(index),
                early=encoding.early(source, index) if derived else None,
                static=column.static,
                value_type=encoding.types[index].simpleString(),
                form=column.form,
            )
        )
    return Evidence(
        entries=entries,
        layout=encoding.codebook.layout,
        node_layout=encoding.codebook.node_layout,
        qis=tuple(qis),
        seed=encoding.seed,
    )
