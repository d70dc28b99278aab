"""Who stands in which class with which sensitive value: histograms of classes, by Spark aggregates.

Ways to count, after what is known of the persons:

    rows      each row is a person
    groups    the same, where rows of equal tuples and values have been counted already
    persons   the table names its persons: each counts once in a class, and once for each value that he has there
    carriers  the release does not name them any more, and they come from the source through the recoding: a person
              counts once for each raw tuple and combination of sensitive values that he has. Such counts add up when
              classes are put together, which those of distinct persons do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kanon_spark.config.models import SensitiveSpec
from kanon_spark.verify.groups import TUPLE, quoted, tuple_columns, tuple_hashes, tuple_parts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Form = Literal["hash", "text", "value"]


def value_column(name: str) -> str:
    """Name under which a sensitive column travels: the users' own names could clash with ours."""
    return f"of {name}"


def text_hash(value: "Column") -> "Column":
    """One long for a value's text."""
    from pyspark.sql import functions as F

    return F.xxhash64(value.cast("string"))


def form_for(spec: SensitiveSpec) -> Form:
    """What stands for a value: its hash, that of its text where `alpha` names some, itself where its place counts.

    Grouping longs costs half of grouping texts.
    """
    if spec.t_closeness is not None and spec.t_closeness.distance != "equal":
        return "value"
    return "text" if spec.alpha is not None and spec.alpha.values is not None else "hash"


def one_value(value: "Column", kind: str) -> "Column":
    """Values of a type, each in one form: NaN is null, -0.0 is 0.0."""
    from pyspark.sql import functions as F

    if kind not in {"float", "double"}:
        return value
    return F.when(value == 0, F.lit(0.0).cast(kind)).when(~F.isnan(value), value)


def value_form(frame: "DataFrame", name: str, form: Form) -> "Column":
    """A column's values in the given form; NaN is null, and null stays null."""
    from pyspark.sql import functions as F

    value = one_value(F.col(quoted(name)), frame.schema[name].dataType.simpleString())
    if form == "value":
        return value
    return F.when(value.isNotNull(), text_hash(value) if form == "text" else F.xxhash64(value))


@dataclass(frozen=True)
class Held:
    """Rows with the hashes of their tuple (`t1`, `t2`), their sensitive values (`of NAME`) and their persons.

    Attributes:
        frame: The rows; but for `rows`, with `person` (null: each row is a person of its own); of carriers with `rows`,
            how many rows of the source each stands for, and where wishes are known with `wish`.
        counting: How persons are counted.
        whole: Those whose distribution classes are held against, where that is not the sum of what classes hold:
            overlapping classes would count some twice.
        kind: Type of the only column that is judged, where its values are not in the frame any more.
    """

    frame: "DataFrame"
    counting: Literal["rows", "groups", "persons", "carriers"]
    whole: "Held | None" = None
    kind: str = ""

    @classmethod
    def of_groups(cls, finer: "DataFrame", *, kind: str) -> "Held":
        """Rows that have been grouped by tuple and value of the only column that is judged (`group_rows`)."""
        return cls(finer.select(*TUPLE, "value", "rows"), "groups", kind=kind)

    def kind_of(self, name: str) -> str:
        """The type of a sensitive column."""
        own = value_column(name)
        return self.kind if self.counting == "groups" else self.frame.schema[own].dataType.simpleString()

    @classmethod
    def of_table(cls, table: "DataFrame", *, qi: Sequence[str], names: Sequence[str], unit: str | None) -> "Held":
        """The rows of any table; `unit` is the column of its persons."""
        from pyspark.sql import functions as F

        person = [] if unit is None else [F.col(quoted(unit)).alias("person")]
        values = [F.col(quoted(name)).alias(value_column(name)) for name in names]
        frame = table.select(*tuple_hashes(tuple_parts(table, qi)), *person, *values)
        return cls(frame, "rows" if unit is None else "persons")

    @classmethod
    def of_carriers(cls, carriers: "DataFrame", published: "DataFrame", *, star: bool, width: int) -> "Held":
        """The persons of the source behind each published tuple.

        Args:
            carriers: `h`, `unit`, `rows`, and what is asked for of `of NAME` and `wish`; one row per combination.
            published: All entries with their published tuple.
            star: Suppressed rows are published as `*` and count there; otherwise they are left out.
            width: Columns of the tuple.
        """
        from pyspark.sql import functions as F

        kept = published if star else published.where("class_id >= 0")
        tuples = kept.select(F.col("h").alias("entry_h"), *tuple_hashes(tuple_parts(published, tuple_columns(width))))
        joined = carriers.withColumnRenamed("unit", "person").join(tuples, F.col("h") == F.col("entry_h"))
        return cls(joined.drop("h", "entry_h"), "carriers")

    def histogram(self, name: str, spec: SensitiveSpec) -> "DataFrame":
        """`t1`, `t2`, `value` (in the form of `form_for`), `count`, and for alpha distinct persons as `carrying`."""
        from pyspark.sql import functions as F

        if self.counting == "groups":
            return self.frame.select(*TUPLE, "value", F.col("rows").alias("count"), F.col("rows").alias("carrying"))
        own = value_column(name)
        column = value_form(self.frame, own, form_for(spec))
        others = [other for other in ("person", "rows") if other in self.frame.columns]
        each = self.frame.select(*TUPLE, column.alias("value"), *others)
        measures = [self._weight().alias("count")]
        if spec.alpha is not None:
            measures.append(self._persons().alias("carrying"))
        return each.groupBy(*TUPLE, "value").agg(*measures)

    def members(self) -> "DataFrame":
        """`t1`, `t2` and the distinct persons of each class as `members`."""
        return self.frame.groupBy(*TUPLE).agg(self._persons().alias("members"))

    def wishes(self, wish: "Column") -> "DataFrame":
        """`t1`, `t2`, and as `d0` the distinct persons of each class over the largest k that one of them asks for."""
        from pyspark.sql import functions as F

        return self.frame.groupBy(*TUPLE).agg((self._persons() / F.max(wish)).alias("d0"))

    def _weight(self) -> "Column":
        """What a group weighs in a histogram."""
        from pyspark.sql import functions as F

        if self.counting != "carriers":
            return self._persons()
        return F.sum(F.when(F.col("person").isNull(), F.col("rows")).otherwise(F.lit(1)))

    def _persons(self) -> "Column":
        """Distinct persons of a group; a row whose unit is null is a person of its own, and so is any row without."""
        from pyspark.sql import functions as F

        if self.counting == "rows":
            return F.count(F.lit(1))
        nobody = F.col("person").isNull()
        if self.counting == "persons":
            return F.count_distinct("person") + F.count(F.when(nobody, 1))
        return F.count_distinct("person") + F.coalesce(F.sum(F.when(nobody, F.col("rows"))), F.lit(0))
