"""PostgreSQL: how Spark reaches it over JDBC and the driver process by psycopg, and how types are kept.

Passwords go to Spark as a reader's or writer's option, which it redacts in plans, and to psycopg as an argument. They
stand in no message, log or manifest, and neither does what the server says, which may quote values.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from kanon_spark.config.jdbc import PREFIX
from kanon_spark.errors import MissingInputError, TargetError
from kanon_spark.io.backends import require_psycopg

if TYPE_CHECKING:
    from psycopg import Connection
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from kanon_spark.config.jdbc import JdbcSpec

DRIVER = "org.postgresql.Driver"
DEFAULT_SCHEMA = "public"
_SHAPE = re.compile(
    r"jdbc:postgresql:(?://(?P<host>[^:/?]*)(?::(?P<port>\d+))?/)?(?P<database>[^?/]*)(?:\?(?P<more>.*))?"
)
_PASSED_ON = ("sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs")
_TYPES = {
    "string": "text",
    "short": "smallint",
    "integer": "integer",
    "long": "bigint",
    "float": "real",
    "double": "double precision",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
    "binary": "bytea",
}


def address(jdbc: "JdbcSpec") -> dict[str, str]:
    """Host, port and database of a JDBC URL, and the settings that psycopg understands too.

    >>> from kanon_spark.config.jdbc import JdbcSpec
    >>> address(JdbcSpec(url="jdbc:postgresql://db.example:5433/house?sslmode=require&x=1", table="t"))
    {'host': 'db.example', 'port': '5433', 'dbname': 'house', 'sslmode': 'require'}
    """
    match = _SHAPE.fullmatch(jdbc.url)
    if match is None:
        raise TargetError(
            "this URL cannot be read", where="jdbc.url", fix=f"write {PREFIX}//host:port/database?sslmode=require"
        )
    found = {
        "host": match["host"] or "localhost",
        "port": match["port"] or "5432",
        "dbname": unquote(match["database"] or jdbc.user or "postgres"),
    }
    more = dict(parse_qsl(match["more"] or ""))
    return {**found, **{key: more[key] for key in _PASSED_ON if key in more}}


def shown_address(jdbc: "JdbcSpec") -> str:
    """Where the database is, without anything secret."""
    found = address(jdbc)
    return f"postgresql://{found['host']}:{found['port']}/{found['dbname']}"


def relation(jdbc: "JdbcSpec") -> tuple[str, str]:
    """Schema and name of the table."""
    schema, _, name = (jdbc.table or "").rpartition(".")
    return schema or DEFAULT_SCHEMA, name


def jdbc_options(jdbc: "JdbcSpec") -> dict[str, str]:
    """What Spark needs to reach the database."""
    secret = {key: value for key, value in (("user", jdbc.user), ("password", jdbc.password)) if value is not None}
    # Times without a zone stay without one.
    return {"preferTimestampNTZ": "true", **jdbc.options, **secret, "url": jdbc.url, "driver": DRIVER}


def read_table(spark: "SparkSession", jdbc: "JdbcSpec", table: str) -> "DataFrame":
    """A table of the database, as Spark reads it."""
    return spark.read.format("jdbc").options(**jdbc_options(jdbc), dbtable=table).load()


@contextmanager
def connected(jdbc: "JdbcSpec", *, where: str) -> "Iterator[Connection[Any]]":
    """A connection for statements that Spark cannot send; what they do is one transaction."""
    require_psycopg(where=where)
    import psycopg

    arguments: dict[str, Any] = {**address(jdbc), "connect_timeout": 30, "application_name": "kanon_spark"}
    try:
        connection = psycopg.connect(**arguments, user=jdbc.user, password=jdbc.password)
    except psycopg.Error as error:
        raise MissingInputError(
            f"{shown_address(jdbc)} cannot be reached, or refuses this user ({type(error).__name__})",
            where=where,
            fix="check url, user and password, and that the server runs",
        ) from None
    try:
        with connection:
            yield connection
    except psycopg.errors.InsufficientPrivilege:
        raise TargetError(
            f"the user may not do this in {shown_address(jdbc)}",
            where=where,
            fix="grant CREATE on the schema and own the table, or name another one",
        ) from None
    except psycopg.errors.DependentObjectsStillExist:
        raise TargetError(
            "columns have changed, and a view needs them as they were; nothing was published",
            where=where,
            fix="drop the view and make it again after the run, or publish to another table",
        ) from None


def column_type(data_type: "DataType") -> str:
    """The type in which PostgreSQL keeps a column."""
    from pyspark.sql import types as T

    if isinstance(data_type, T.DecimalType):
        return f"numeric({data_type.precision},{data_type.scale})"
    if isinstance(data_type, T.ArrayType):
        return f"{column_type(data_type.elementType)}[]"
    return _TYPES[data_type.typeName()] if not isinstance(data_type, T.StringType) else "text"
