"""What the verifier is told about a recoding: plain facts, so that it needs none of the code that made them."""

from pathlib import Path
from typing import TYPE_CHECKING

from kanon_spark.config.models import Config, FileSpec
from kanon_spark.io.paths import resolve
from kanon_spark.signatures.columns import normalised, quoted
from kanon_spark.signatures.encoding import ROW_HASH
from kanon_spark.verify.asked import Asked
from kanon_spark.verify.counting import value_column
from kanon_spark.verify.facts import Evidence, QiFacts
from kanon_spark.verify.released_models import WISH

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
        csv = Path(resolve(spec.hierarchy.path, base_dir)) if isinstance(spec.hierarchy, FileSpec) else None
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


def carriers_of(source: "DataFrame", encoding: "Encoding", config: Config, asked: Asked) -> "DataFrame | None":
    """Who carries what, where the release itself does not tell: with a unit, and where persons ask for ks of their own.

    Columns: `h`, `unit` (null without one), with a unit the judged sensitive values, `wish` where there are any, and
    `rows`; one row per combination. None where the release tells all that the models ask.
    """
    from pyspark.sql import functions as F

    unit, wishes = config.privacy.unit, config.privacy.personal_k
    judged = list(asked.judged) if unit is not None else []
    if not judged and wishes is None:
        return None
    picked = [
        F.col(ROW_HASH).alias("h"),
        (F.lit(None).cast("string") if unit is None else F.col(quoted(unit))).alias("unit"),
        *[normalised(source, name).alias(value_column(name)) for name in judged],
    ]
    if wishes is not None:
        wish = F.col(quoted(wishes.column)) if wishes.column is not None else F.expr(wishes.rule or "NULL")
        picked.append(wish.cast("long").alias(WISH))
    rows = encoding.with_identity(source).select(*picked)
    return rows.groupBy(*[quoted(name) for name in rows.columns]).agg(F.count(F.lit(1)).alias("rows"))
