"""A PostgreSQL database in the configuration: Spark reaches it over JDBC, the swap of a release by psycopg."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from kanon_spark.config.base import OptionText, Spec, Text, refuse

PREFIX = "jdbc:postgresql:"
_OWN_KEYS = frozenset({"url", "dbtable", "query", "user", "password", "driver"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")


def _postgresql(value: str) -> str:
    if not value.startswith(PREFIX):
        refuse("only PostgreSQL is served: jdbc:postgresql://host:port/database")
    if re.search(r"[?&](user|password)=", value, re.IGNORECASE) or "@" in value.split("?", 1)[0]:
        refuse("user and password have keys of their own: a URL is shown in logs")
    return value


def _table_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        refuse("a table is written as name or schema.name: letters, digits, _")
    return value.lower()  # as PostgreSQL reads a name without quotes


class JdbcSpec(Spec):
    """A table or query of a PostgreSQL database."""

    url: Annotated[Text, AfterValidator(_postgresql)]
    table: Annotated[Text, AfterValidator(_table_name)] | None = None
    query: Text | None = None
    user: str | None = None
    password: Annotated[str | None, Field(repr=False)] = None
    options: dict[str, OptionText] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_relation(self) -> "JdbcSpec":
        if (self.table is None) == (self.query is None):
            refuse("exactly one of table and query must be given")
        if own := sorted(name for name in self.options if name.lower() in _OWN_KEYS):
            refuse(f"not an option, but a key beside it or none: {', '.join(own)}")
        return self
