"""One Iceberg table: its snapshots, branches and properties, in the few statements that publishing needs."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kanon_spark.errors import TargetError
from kanon_spark.io.quiet import condition_of
from kanon_spark.io.table_names import (
    WHERE,
    TableFacts,
    TableName,
    facts_of,
    literal,
    properties_of,
    property_list,
    quoted_column,
    read_facts,
    with_comments,
)
from kanon_spark.logs import logger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUN_ID = "kanon.run_id"
_BRANCH = re.compile(r"kanon_(\d{8}T\d{6}_[0-9a-f]{8})")
_CURRENT = "current-snapshot-id"


def facts_key(run_id: str) -> str:
    """The table property with the facts of one run."""
    return f"kanon.facts.{run_id}"


class IcebergTable:
    """A table by its name, there or not."""

    def __init__(self, spark: "SparkSession", name: TableName) -> None:
        self.name = name
        self._spark = spark
        self._sql = name.quoted

    def exists(self) -> bool:
        """True if the table exists. A catalog may keep tables in memory; what others committed since is asked for."""
        if not self._spark.catalog.tableExists(self._sql):
            return False
        self._spark.catalog.refreshTable(self._sql)
        return True

    def facts(self) -> TableFacts | None:
        """What it says of itself."""
        return facts_of(self._spark, self._sql)

    def properties(self) -> dict[str, str]:
        """Its properties."""
        return properties_of(self._spark, self._sql)

    def snapshot(self) -> int | None:
        """The snapshot that readers see; None if there is none."""
        return current_snapshot(self._spark, self._sql) if self.exists() else None

    def snapshot_of(self, run_id: str) -> int | None:
        """The newest snapshot that a run has committed."""
        rows = self._snapshots(f"summary['{RUN_ID}'] = {literal(run_id)}")
        return int(rows[-1]["snapshot_id"]) if rows else None

    def release(self) -> dict[str, Any] | None:
        """What the release in sight says of itself; None if the snapshot in sight is none of ours."""
        if not self.exists():
            return None
        properties = self.properties()
        current = properties.get(_CURRENT, "none")
        rows = self._snapshots(f"snapshot_id = {current}") if current != "none" else []
        run_id = rows[0]["run_id"] if rows else None
        if run_id is None:
            return None
        found = read_facts(properties.get(facts_key(run_id))) or {}
        return {**found, "run_id": str(run_id)}

    def read(self, snapshot: int | None = None) -> "DataFrame":
        """The rows in sight, or those of a snapshot."""
        if snapshot is None:
            self.exists()  # and fresh
            return self._spark.table(self._sql)
        return self._spark.sql(f"SELECT * FROM {self._sql} VERSION AS OF {snapshot}")

    def replace(
        self,
        table: "DataFrame",
        *,
        partition_by: Sequence[str],
        run_id: str | None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Make the table, or replace it by one commit. Properties stay, comments on columns are carried over."""
        from pyspark.sql import functions as F

        before = self.facts()
        rows = with_comments(table, before.column_comments) if before is not None else table
        writer = rows.writeTo(self._sql).using("iceberg")
        if run_id is not None:
            writer = writer.option(f"snapshot-property.{RUN_ID}", run_id)
        for key, value in (properties or {}).items():
            writer = writer.tableProperty(key, value)
        if partition_by:
            writer = writer.partitionedBy(*(F.col(quoted_column(name)) for name in partition_by))
        writer.createOrReplace()

    def replace_by(self, snapshot: int) -> None:
        """Replace the table by one of its own snapshots, with the columns it had then."""
        rows = self._snapshots(f"snapshot_id = {snapshot}")
        run_id = rows[0]["run_id"] if rows else None
        facts = read_facts(self.properties().get(facts_key(str(run_id)))) or {}
        self.replace(self.read(snapshot), partition_by=tuple(facts.get("partition_by", ())), run_id=run_id)

    def drop(self) -> None:
        """Drop the table with its files."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._sql} PURGE")

    def write_branch(self, table: "DataFrame", run_id: str) -> int:
        """Make the run's branch, write to it instead of what main holds, and say which snapshot that made."""
        from pyspark.sql import functions as F

        self._spark.sql(f"ALTER TABLE {self._sql} CREATE BRANCH `{_branch(run_id)}`")
        writer = table.writeTo(f"{self._sql}.`branch_{_branch(run_id)}`")
        writer.option(f"snapshot-property.{RUN_ID}", run_id).overwrite(F.lit(True))
        head = self.branches().get(run_id)
        if head is None or head != self.snapshot_of(run_id):
            raise TargetError(
                f"the branch of this run on {self.name} does not hold what was written to it",
                where=WHERE,
                fix="let nobody else write to branches named kanon_*, and run again",
            )
        return head

    def fast_forward(self, run_id: str) -> None:
        """Move main to the run's branch."""
        self._call("fast_forward", f"branch => 'main', to => {literal(_branch(run_id))}")

    def roll_back(self, snapshot: int) -> None:
        """Move main back to an earlier snapshot."""
        self._call("rollback_to_snapshot", f"snapshot_id => {snapshot}")

    def branches(self) -> dict[str, int]:
        """The runs that have a branch here, and the snapshot that it leads to."""
        if not self.exists():
            return {}
        # One row per branch or tag.
        rows = self._spark.sql(f"SELECT name, snapshot_id FROM {self._sql}.refs").collect()
        found = [(_BRANCH.fullmatch(str(row["name"])), int(row["snapshot_id"])) for row in rows]
        return {match.group(1): snapshot for match, snapshot in found if match is not None}

    def drop_branch(self, run_id: str) -> None:
        """Remove the run's branch, and its snapshot unless readers see it: what was not verified is not kept."""
        left = self.branches().get(run_id)
        if left is None:
            return
        self._spark.sql(f"ALTER TABLE {self._sql} DROP BRANCH `{_branch(run_id)}`")
        if left == self.snapshot() or left != self.snapshot_of(run_id):
            return  # published, or the branch was never written to
        try:
            # Far back in time: nothing goes but the snapshot that is named.
            old = "older_than => TIMESTAMP '1970-01-02 00:00:00'"
            self._call("expire_snapshots", f"{old}, snapshot_ids => ARRAY({left})")
        except Exception as error:  # a table that forbids it keeps an unnamed snapshot, which nobody is led to
            logger.warning("a snapshot that was not published could not be removed (%s)", condition_of(error))

    def staged_siblings(self) -> list[str]:
        """The runs that have staged a table beside this one, their ids in lower case."""
        # One row per table whose name begins like this one's: a handful.
        pattern = f"{self.name.name}__kanon_*"
        rows = self._spark.sql(f"SHOW TABLES IN {self.name.quoted_database} LIKE '{pattern}'").collect()
        shape = re.compile(re.escape(self.name.name.lower()) + r"__kanon_(.+)_staged")
        matches = (shape.fullmatch(str(row["tableName"]).lower()) for row in rows)
        return [match.group(1) for match in matches if match is not None]

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set some properties."""
        self._spark.sql(f"ALTER TABLE {self._sql} SET TBLPROPERTIES ({property_list(properties)})")

    def unset_properties(self, keys: Sequence[str]) -> None:
        """Remove some properties."""
        if keys:
            listed = ", ".join(map(literal, keys))
            self._spark.sql(f"ALTER TABLE {self._sql} UNSET TBLPROPERTIES IF EXISTS ({listed})")

    def _snapshots(self, condition: str) -> list[Any]:
        # As many as the table keeps; those of one run, or one.
        return self._spark.sql(
            f"SELECT snapshot_id, summary['{RUN_ID}'] AS run_id FROM {self._sql}.snapshots WHERE {condition} "
            "ORDER BY committed_at"
        ).collect()

    def _call(self, procedure: str, arguments: str) -> None:
        table = f"{self.name.database}.{self.name.name}"
        self._spark.sql(
            f"CALL `{self.name.catalog}`.system.{procedure}(table => {literal(table)}, {arguments})"
        ).collect()


def current_snapshot(spark: "SparkSession", quoted: str) -> int | None:
    """The snapshot that readers of a table see; None if it has none."""
    found = properties_of(spark, quoted).get(_CURRENT, "none")
    return None if found == "none" else int(found)


def _branch(run_id: str) -> str:
    return f"kanon_{run_id}"
