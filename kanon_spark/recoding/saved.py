"""The recoding of a release, to be looked at, kept, applied to other rows, or exported."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kanon_spark.errors import TargetError
from kanon_spark.io.files import store_for
from kanon_spark.io.paths import is_pattern, resolve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.engine.applied import Applied
    from kanon_spark.engine.stages import Listener
    from kanon_spark.recoding.kept import Kept


@dataclass(frozen=True)
class Recoding:
    """Signature → published tuple. Confidential: it holds every raw tuple of quasi-identifiers.

    Attributes:
        entries: One row per signature.
        path: The folder that holds them, and all that is needed to apply them.
    """

    entries: "DataFrame"
    path: str

    @classmethod
    def load(cls, path: str | Path, *, spark: "SparkSession | None" = None) -> "Recoding":
        """Open a recoding that a run has left in its work directory, or that `save` has written.

        Raises:
            MissingInputError: There is none that can be applied.
        """
        from kanon_spark.engine.session import get_spark
        from kanon_spark.recoding.kept import Kept

        session = spark or get_spark()
        folder = resolve(str(path), Path.cwd())
        Kept.read(store_for(session, folder), folder)  # says what is wrong before Spark does
        return cls(session.read.parquet(folder), folder)

    @cached_property
    def kept(self) -> "Kept":
        """How it was made, and what was asked of the release. Read from its folder."""
        from kanon_spark.recoding.kept import Kept

        return Kept.read(store_for(self.entries.sparkSession, self.path), self.path)

    def save(self, path: str | Path) -> "Recoding":
        """Copy it to a folder of its own, which only its owner can read: a later run removes it where it is.

        Raises:
            TargetError: There is something already, or it cannot be written.
        """
        spark = self.entries.sparkSession
        folder = resolve(str(path), Path.cwd())
        store = store_for(spark, folder)
        kept = self.kept
        if is_pattern(folder) or store.exists(folder):
            raise TargetError("something is there already", where=folder, fix="name a folder that does not exist")
        try:
            store.mkdirs(folder, mode=0o700)
            self.entries.write.mode("append").parquet(folder)
            kept.write(store, folder)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise TargetError(f"the recoding cannot be written ({reason})", where=folder, fix="name another") from None
        return Recoding(spark.read.parquet(folder), folder)

    def apply(
        self,
        df: "DataFrame",
        *,
        to: str | None = None,
        to_format: str | None = None,
        work_dir: str | None = None,
        keep_held_back: bool = False,
        max_held_back: float = 1.0,
        listeners: "Sequence[Listener]" = (),
    ) -> "Applied":
        """Publish other rows as this recoding says; rows that it does not cover, or that are too few, are held back.

        Args:
            df: The rows, with the columns of the table that the recoding was made from.
            to: Where the release goes: a path or the name of a catalog table. It stays in the work directory by
                default, as long as this process lives.
            to_format: Its format; by the ending of a path otherwise.
            work_dir: Where raw data is kept on the way; by default the work directory that holds the recoding.
            keep_held_back: Keep the rows that are not published, raw, in the work directory.
            max_held_back: Largest share of rows that may be held back.
            listeners: Called with each `StageEvent`, for progress.

        Raises:
            KanonError: Nothing was published; the message says why and what to do.
        """
        from kanon_spark.config.places import sink_of
        from kanon_spark.engine.applying import Request, apply_recoding

        sink = None if to is None else sink_of(to, format=to_format, origin="to")
        request = Request(sink=sink, work_dir=work_dir, keep_held_back=keep_held_back, max_held_back=max_held_back)
        return apply_recoding(self, request, spark=df.sparkSession, table=df, listeners=listeners)

    def export(self, folder: str | Path) -> list[Path]:
        """Write value → label of each quasi-identifier as a CSV file (full-domain methods only).

        Values that fewer than k persons carry under a label are left out.
        """
        from kanon_spark.recoding.export import export_mapping

        return export_mapping(self, Path(folder))
