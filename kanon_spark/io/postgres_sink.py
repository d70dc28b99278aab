"""Releases as PostgreSQL tables: staged as a table of their own, moved in by one transaction.

The transaction deletes the old rows, inserts those of the staged table, and compares both before it commits: readers
see one whole release or the other, and what differs from the verified table is never committed. The table itself stays,
and with it views on it, grants, comments and indexes. What a release says of itself stands in the table
`_kanon_releases` of the same schema, written by the same transaction.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kanon_spark.engine.stages import failpoint
from kanon_spark.errors import GuaranteeError, TargetError
from kanon_spark.io.backends import require_backend, require_psycopg
from kanon_spark.io.files import store_for
from kanon_spark.io.formats import refuse_unwritable_types
from kanon_spark.io.paths import join
from kanon_spark.io.postgres import column_type, connected, jdbc_options, read_table, relation, shown_address
from kanon_spark.io.table_names import quoted_column

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composable, Composed, Identifier
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kanon_spark.config.models import SinkSpec, SourceSpec

_WHERE = "sink.jdbc"
RELEASES = "_kanon_releases"


class PostgresPublisher:
    """Write-audit-publish for one PostgreSQL table."""

    def __init__(self, spark: "SparkSession", sink: "SinkSpec", *, run_id: str, work_root: str) -> None:
        if sink.jdbc is None:
            raise TargetError("no database is given", where=_WHERE, fix="name url and table")
        require_backend(spark, "postgresql", where=_WHERE)
        require_psycopg(where=_WHERE)
        self._spark = spark
        self._jdbc = sink.jdbc
        self._run_id = run_id
        self._schema, self._name = relation(sink.jdbc)
        self.target = f"{shown_address(sink.jdbc)}/{self._schema}.{self._name}"
        digest = hashlib.sha256(self.target.encode()).hexdigest()
        # A name has 63 bytes at most, so that the target's own does not fit into those of its siblings.
        self._prefix = f"_kanon_{digest[:8]}_"
        self._staged = self._sibling(run_id, "staged")
        self._previous = self._sibling(run_id, "previous")
        self.staged_path = f"{self._schema}.{self._staged}"
        self.lock_path = join(work_root, f"kanon_lock_{digest[:16]}")
        self.lock_store = store_for(spark, work_root)

    def check(self, source: "SourceSpec | None" = None) -> None:
        """Refuse a missing schema, what is no table or holds rows that are no release, and the source itself."""
        if source is not None and source.jdbc is not None and source.jdbc.table is not None:
            place = f"{shown_address(source.jdbc)}/{'.'.join(relation(source.jdbc))}"
            if place == self.target:
                raise TargetError("the release must not replace its source", where=_WHERE, fix="choose another table")
        with self._connected() as connection:
            schema = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self._schema]).fetchone()
            if schema is None:
                raise TargetError(
                    f"there is no schema {self._schema}", where=_WHERE, fix="create it, or name another one"
                )
            kind = self._kind(connection)
            if kind not in {None, "r", "p"}:
                raise TargetError(
                    f"{self._schema}.{self._name} is no table; it is not replaced", where=_WHERE, fix="name a table"
                )
            if kind is not None and self._facts(connection) is None:
                found = connection.execute(_sql("SELECT 1 FROM {} LIMIT 1", self._id(self._name))).fetchone()
                if found is not None:
                    raise TargetError(
                        f"{self._schema}.{self._name} holds rows that are no release; they are not deleted",
                        where=_WHERE,
                        fix="name a table that does not exist yet, or empty this one",
                    )

    def check_schema(self, schema: "StructType") -> None:
        """Refuse columns that would not survive, or whose names are too long."""
        refuse_unwritable_types(schema, "postgresql")
        long = [name for name in schema.names if len(name.encode()) > 63]
        if long:
            raise TargetError(
                f"PostgreSQL cuts names at 63 bytes: {', '.join(long)}", where=_WHERE, fix="rename the columns"
            )

    def exists(self) -> bool:
        """True if the table exists."""
        with self._connected() as connection:
            return self._kind(connection) is not None

    def published(self) -> dict[str, Any] | None:
        """What the release says of itself."""
        with self._connected() as connection:
            return self._facts(connection)

    def earlier_stays(self) -> str | None:
        """Nothing: the previous rows are deleted."""
        return None

    def write(self, table: "DataFrame") -> None:
        """Write the table beside the target, where only its owner may read it."""
        self.check_schema(table.schema)
        with self._connected() as connection:
            columns = [
                _sql("{} " + column_type(field.dataType), _identifier(field.name)) for field in table.schema.fields
            ]
            connection.execute(_sql("CREATE TABLE {} ({})", self._id(self._staged), _list(columns)))
            self._close(connection, self._staged)
        writer = table.write.format("jdbc").options(**jdbc_options(self._jdbc), dbtable=self._quoted(self._staged))
        try:
            writer.mode("append").save()
        except Exception as error:
            if "org.postgresql" not in str(error):
                raise
            raise TargetError(
                "the database refused the rows; nothing was published",
                where=_WHERE,
                fix="the server's log tells why; it holds no text with the character NUL, for one",
            ) from None

    def read_staged(self, schema: "StructType") -> "DataFrame":
        """Read back what was written."""
        return self._read(self._staged, schema)

    def read_published(self, schema: "StructType") -> "DataFrame":
        """Read the release."""
        return self._read(self._name, schema)

    def publish(self, facts: Mapping[str, object] | None = None) -> None:
        """Move the staged release in and drop it."""
        self.swap(facts)
        self.finish()

    def swap(self, facts: Mapping[str, object] | None = None) -> None:
        """One transaction: the old rows go aside, the verified ones come in and are compared, and it is noted."""
        own = {**(facts or {}), "run_id": self._run_id, "format": "postgresql"}
        with self._connected() as connection:
            before = self._facts(connection) or {}
            there = self._kind(connection) is not None
            if there:
                connection.execute(_sql("LOCK TABLE {} IN EXCLUSIVE MODE", self._id(self._name)))
                connection.execute(_sql("CREATE TABLE {} AS TABLE {}", self._id(self._previous), self._id(self._name)))
                self._close(connection, self._previous)
            self._move_in(connection, self._staged)
            self._write_facts(
                connection, {**own, "replaces": {key: before[key] for key in before if key != "replaces"}}
            )
            failpoint("publish:between")
        failpoint("publish:committed")

    def undo(self) -> None:
        """Put the previous release back, by one transaction."""
        with self._connected() as connection:
            facts = self._facts(connection)
            if facts is None or facts["run_id"] != self._run_id:
                return
            if self._kind(connection, self._previous) is None:
                connection.execute(_sql("DROP TABLE {}", self._id(self._name)))
                self._write_facts(connection, None)
                return
            self._move_in(connection, self._previous)
            self._write_facts(connection, facts.get("replaces") or None)
            self._drop(connection, self._previous)

    def finish(self) -> None:
        """Drop the staged table and the previous release."""
        failpoint("publish:after")
        with self._connected() as connection:
            self._drop(connection, self._staged)
            self._drop(connection, self._previous)

    def recover(self) -> list[str]:
        """Drop what dead runs left; the target itself is always one whole release."""
        with self._connected() as connection:
            names = self._siblings(connection)
            for name in names:
                self._drop(connection, name)
        return [f"{self._schema}.{name}" for name in names]

    def has_leftovers(self) -> bool:
        """True if a run left tables beside the target."""
        with self._connected() as connection:
            return bool(self._siblings(connection))

    def discard(self) -> None:
        """Drop what this run staged."""
        with self._connected() as connection:
            self._drop(connection, self._staged)

    def description(self) -> dict[str, object]:
        """What the manifest tells of the sink."""
        return {"table": self.target, "format": "postgresql", "partition_by": [], "read_options": {}}

    def _move_in(self, connection: "Connection[Any]", origin: str) -> None:
        """Put the rows of another table in place of the target's, whose columns become those of the other."""
        wanted = self._columns_of(connection, origin)
        if self._kind(connection) is None:
            connection.execute(_sql("CREATE TABLE {} (LIKE {})", self._id(self._name), self._id(origin)))
        connection.execute(_sql("DELETE FROM {}", self._id(self._name)))
        for statement in self._changes(self._columns_of(connection, self._name), wanted):
            connection.execute(statement)
        names = _list([_identifier(name) for name in wanted])
        moved = _sql("INSERT INTO {} ({}) SELECT {} FROM {}", self._id(self._name), names, names, self._id(origin))
        connection.execute(moved)
        if self._print(connection, self._name, names) != self._print(connection, origin, names):
            raise GuaranteeError(
                "the table would not hold the rows that were verified; nothing was published",
                where=_WHERE,
                fix="look for triggers, rules or row security on the table",
            )

    def _changes(self, there: Mapping[str, str], wanted: Mapping[str, str]) -> "list[Composed]":
        """What makes the columns of the empty target those of the release. A view that needs an old one forbids it."""
        target = self._id(self._name)
        gone = [name for name in there if name not in wanted]
        found = [_sql("ALTER TABLE {} DROP COLUMN {}", target, _identifier(name)) for name in gone]
        for name, kind in wanted.items():
            if name not in there:
                found.append(_sql("ALTER TABLE {} ADD COLUMN {} " + kind, target, _identifier(name)))
            elif there[name] != kind:
                text = "ALTER TABLE {} ALTER COLUMN {} TYPE " + kind + " USING NULL"
                found.append(_sql(text, target, _identifier(name)))
        return found

    def _print(self, connection: "Connection[Any]", name: str, names: "Composable") -> Any:
        """Rows, and the sum of their hashes."""
        return connection.execute(
            _sql(
                "SELECT count(*), coalesce(sum(hashtextextended(ROW({})::text, 0)::numeric), 0) FROM {}",
                names,
                self._id(name),
            )
        ).fetchone()

    def _facts(self, connection: "Connection[Any]") -> dict[str, Any] | None:
        if self._kind(connection, RELEASES) is None or self._kind(connection) is None:
            return None
        found = connection.execute(
            _sql("SELECT facts FROM {} WHERE name = %s", self._id(RELEASES)), [self._name]
        ).fetchone()
        return None if found is None else dict(json.loads(found[0]))

    def _write_facts(self, connection: "Connection[Any]", facts: Mapping[str, Any] | None) -> None:
        table = self._id(RELEASES)
        text = "CREATE TABLE IF NOT EXISTS {} (name text PRIMARY KEY, run_id text, k integer, method text, facts text)"
        connection.execute(_sql(text, table))
        connection.execute(_sql("DELETE FROM {} WHERE name = %s", table), [self._name])
        if facts is not None:
            own = [self._name, facts["run_id"], facts.get("k"), facts.get("method")]
            row = _sql("INSERT INTO {} (name, run_id, k, method, facts) VALUES (%s, %s, %s, %s, %s)", table)
            connection.execute(row, [*own, json.dumps(facts, default=str)])

    def _kind(self, connection: "Connection[Any]", name: str | None = None) -> str | None:
        """What stands under a name of the schema: `r` a table, `p` a partitioned one, `v` a view."""
        found = connection.execute(
            "SELECT c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relname = %s",
            [self._schema, name or self._name],
        ).fetchone()
        return None if found is None else str(found[0])

    def _columns_of(self, connection: "Connection[Any]", name: str) -> dict[str, str]:
        found = connection.execute(
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a "
            "JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
            [self._schema, name],
        ).fetchall()
        return {str(column): str(kind) for column, kind in found}

    def _close(self, connection: "Connection[Any]", name: str) -> None:
        """Take from everybody else what the schema's default privileges may have granted."""
        table = self._id(name)
        connection.execute(_sql("REVOKE ALL ON {} FROM PUBLIC", table))
        others = connection.execute(
            "SELECT DISTINCT pg_get_userbyid(acl.grantee) "
            "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) acl "
            "WHERE n.nspname = %s AND c.relname = %s AND acl.grantee NOT IN (0, c.relowner)",
            [self._schema, name],
        ).fetchall()
        for (role,) in others:
            connection.execute(_sql("REVOKE ALL ON {} FROM {}", table, _identifier(str(role))))

    def _siblings(self, connection: "Connection[Any]") -> list[str]:
        """Tables that runs other than this one left."""
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [self._schema]).fetchall()
        shape = re.compile(re.escape(self._prefix) + r"(.+)_(staged|previous)")
        matches = (shape.fullmatch(str(name)) for (name,) in rows)
        return sorted(m.group() for m in matches if m is not None and m.group(1) != self._run_id.lower())

    def _sibling(self, run_id: str, what: str) -> str:
        return f"{self._prefix}{run_id.lower()}_{what}"

    def _drop(self, connection: "Connection[Any]", name: str) -> None:
        connection.execute(_sql("DROP TABLE IF EXISTS {}", self._id(name)))

    def _read(self, name: str, schema: "StructType") -> "DataFrame":
        from pyspark.sql import functions as F

        table = read_table(self._spark, self._jdbc, self._quoted(name))
        return table.select(*(F.col(quoted_column(each.name)).cast(each.dataType) for each in schema.fields))

    def _connected(self) -> Any:
        return connected(self._jdbc, where=_WHERE)

    def _id(self, name: str) -> "Identifier":
        return _identifier(self._schema, name)

    def _quoted(self, name: str) -> str:
        return f'"{self._schema}"."{name}"'


def _identifier(*names: str) -> "Identifier":
    from psycopg.sql import Identifier

    return Identifier(*names)


def _sql(text: str, *parts: "Composable") -> "Composed":
    """A statement; the text is ours, and names are put in as quoted identifiers."""
    from psycopg.sql import SQL

    return SQL(text).format(*parts)


def _list(parts: "list[Any]") -> "Composed":
    from psycopg.sql import SQL

    joined: Composed = SQL(", ").join(parts)
    return joined
