"""Models of keys whose features come later; they are checked in form, so that a configuration can be written today.

`not_yet.py` lists which of them are still refused.
"""

from pydantic import Field

from kanon_spark.config.base import ColumnName, OptionText, Spec, Text


class JdbcSpec(Spec):
    """A database reached over JDBC."""

    url: Text
    table: Text | None = None
    query: Text | None = None
    user: str | None = None
    password: str | None = None
    options: dict[str, OptionText] = Field(default_factory=dict)


class PartitionSpec(Spec):
    """One partition of the source."""

    column: ColumnName
    value: Text
