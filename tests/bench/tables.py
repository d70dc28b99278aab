"""Tables of any size with Adult's joint distribution, made by Spark and kept in the cache.

Each row is drawn from Adult by hashing its number, so a table depends on its size and seed alone, not on partitions.
Age moves by -2..+2 years. A five-digit zip is added whose frequencies fall like 1/rank: with thousands of zips the
signatures grow almost with the rows (sparse), with one zip they stay few (dense).
"""

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.adult import QI8
from bench.jobs import ZIP

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

COPIED = (*QI8, "hours-per-week", "income")
ZIP_LIMIT = 89_988
ROWS_PER_FILE = 1_000_000
_ZIP_PRIME, _ZIP_STEP = 89_989, 48_271  # rank * step mod prime: every rank below the prime gets a number of its own
_STEPS = 1 << 40  # of a uniform number


def table_path(folder: Path, base: pd.DataFrame, *, rows: int, zips: int, seed: int) -> Path:
    """Where the table lies: its name tells tables of other rows, zips, seeds or base rows apart."""
    print_of_base = pd.util.hash_pandas_object(base[list(COPIED)], index=False).to_numpy().tobytes()
    mark = hashlib.sha256(print_of_base).hexdigest()[:8]
    return folder / f"adult_{mark}_{rows}_rows_{zips}_zips_seed_{seed}.parquet"


def zip_codes(uniform: NDArray[np.float64], zips: int) -> NDArray[np.str_]:
    """Zips by uniform numbers in [0, 1), as `make_table` draws them: frequencies fall like 1/rank.

    >>> zip_codes(np.array([0.0, 0.99]), 3).tolist()
    ['58271', '64824']
    """
    rank = np.minimum(np.floor((zips + 1.0) ** uniform).astype(np.int64), zips)
    return (10_000 + rank * _ZIP_STEP % _ZIP_PRIME).astype(str)


def make_table(spark: "SparkSession", base: pd.DataFrame, path: Path, *, rows: int, zips: int, seed: int) -> None:
    """Write the table; a half-written one never stands under its name."""
    from pyspark.sql import functions as F

    if not 1 <= zips <= ZIP_LIMIT:
        raise ValueError(f"zips must be between 1 and {ZIP_LIMIT}")
    drawn = base[list(COPIED)].reset_index(drop=True)
    drawn.insert(0, "drawn", range(len(drawn)))

    def number(salt: str, below: int) -> "Column":
        return F.pmod(F.xxhash64("rid", F.lit(seed), F.lit(salt)), F.lit(below))

    # Whole ranks of a log-uniform number: P(rank) = log((rank + 1) / rank) / log(zips + 1), about 1/rank.
    uniform = number("zip", _STEPS) / F.lit(float(_STEPS))
    rank = F.least(F.floor(F.pow(F.lit(float(zips + 1)), uniform)), F.lit(zips)).cast("long")
    zip_code = F.lit(10_000) + F.pmod(rank * F.lit(_ZIP_STEP), F.lit(_ZIP_PRIME))
    age = F.col("age") + number("age", 5) - F.lit(2)
    table = (
        spark.range(0, rows, 1, max(2, -(-rows // ROWS_PER_FILE)))
        .withColumnRenamed("id", "rid")
        .withColumn("drawn", number("row", len(drawn)))
        .join(F.broadcast(spark.createDataFrame(drawn)), "drawn")
        .withColumn("age", F.greatest(F.lit(17), F.least(F.lit(90), age)).cast("int"))
        .withColumn(ZIP, zip_code.cast("string"))
        .select("rid", ZIP, *[F.col(f"`{name}`") for name in COPIED])
    )
    half = path.with_name(f"{path.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    table.write.mode("overwrite").parquet(str(half))
    half.rename(path)


def count_rows(path: Path) -> int:
    """Rows of a parquet file or folder, from the files' footers."""
    import pyarrow.parquet as pq

    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise SystemExit(f"{path}: there is no parquet file")
    return sum(int(pq.read_metadata(file).num_rows) for file in files)
