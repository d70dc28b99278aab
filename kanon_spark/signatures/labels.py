"""How many rows of each signature carry each class label, for methods that guard labels.

One more pass over the source, as one Catalyst plan. Labels are told apart by a hash, so that no value of theirs stands
in a plan; their numbers follow the order of the hashes.
"""

from typing import TYPE_CHECKING

from kanon_spark.errors import RequestError
from kanon_spark.signatures.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.signatures.encoding import Encoding

MOST_LABELS = 64  # a class label has few values; each is a column of counts


def label_name(number: int) -> str:
    """Column of the rows that carry one label."""
    return f"label_rows_{number}"


def with_labels(
    signatures: "DataFrame",
    source: "DataFrame",
    encoding: "Encoding",
    label: str,
    *,
    path: str,
    where: str = "method.label",
) -> "tuple[DataFrame, int]":
    """The signatures with a column of rows per label (null is a label, too), and how many labels there are.

    Raises:
        RequestError: The column has more values than a class label can have.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    hashed = F.xxhash64(F.col(quoted(label)), F.col(quoted(label)).isNull()).alias("label")
    rows = encoding.with_identity(source, name="_kanon_h").select(F.col("_kanon_h").alias("h"), hashed)
    counted = rows.groupBy("h", "label").agg(F.count(F.lit(1)).alias("n"))
    values = counted.select("label").distinct()
    count = values.limit(MOST_LABELS + 1).count()
    if count > MOST_LABELS:
        raise RequestError(
            f"the label column '{label}' has more than {MOST_LABELS} different values",
            where=where,
            fix="name a column with few values, such as a class to be predicted",
        )
    number = (F.row_number().over(Window.orderBy("label")) - 1).alias("number")
    numbered = counted.join(F.broadcast(values.select("label", number)), "label")
    sums = [F.sum(F.when(F.col("number") == each, F.col("n")).otherwise(0)) for each in range(count)]
    tallies = numbered.groupBy("h").agg(*[sums[each].alias(label_name(each)) for each in range(count)])
    joined = signatures.join(tallies, "h").select(*signatures.columns, *map(label_name, range(count)))
    joined.write.mode("overwrite").parquet(path)
    return signatures.sparkSession.read.schema(joined.schema).parquet(path), count
