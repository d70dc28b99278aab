"""The columns of a release: which there are, in which order, and of which type."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from kanon_spark.signatures.forms import AS_LABELS, Form

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def with_added(columns: Sequence[str], forms: Mapping[str, Form]) -> list[str]:
    """Columns with the numbers that `output.numeric` adds, each behind its quasi-identifier.

    >>> with_added(["age", "ill"], {"age": Form(numbers=("lo", "hi"))})
    ['age', 'age_lo', 'age_hi', 'ill']
    """
    return [each for name in columns for each in (name, *forms.get(name, AS_LABELS).added(name))]


def published_schema(
    source: "StructType", columns: Sequence[str], forms: Mapping[str, Form], *, texts: Collection[str]
) -> "StructType":
    """The release's schema: quasi-identifiers and pseudonyms are texts, everything else is as it was.

    Args:
        source: The source's schema.
        columns: The published columns of the source, in order.
        forms: How each quasi-identifier is published: sets may be arrays of texts, and numbers beside it are doubles.
        texts: Names of the quasi-identifiers and pseudonyms.
    """
    from pyspark.sql import types as T

    fields = {field.name: field for field in source.fields}
    found = []
    for name in columns:
        form = forms.get(name, AS_LABELS)
        text = T.ArrayType(T.StringType()) if form.members else T.StringType()
        found.append(T.StructField(name, text) if name in texts else fields[name])
        found += [T.StructField(added, T.DoubleType()) for added in form.added(name)]
    return T.StructType(found)
