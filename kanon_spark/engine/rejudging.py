"""Judge the classes once more, as a whole table: what kernels could not know while they formed them.

- Suppressed rows change the distribution of the release, which t-closeness, beta-likeness and delta-disclosure are
  held against. Where one process has solved everything it has seen to that itself (`good_classes.py`), but for what is
  suppressed here; blocks cannot.
- With a unit, alpha is the share of the distinct persons of a published class. Kernels add up what signatures hold, and
  such counts do not add up where a person stands in several signatures: here persons are counted as they are, and one
  partner after another is tried for a class that fails (`uniting.py`).
- k-map asks how many persons of a population fit what a class publishes (`fitting.py`).
- What blocks have left open looked for a class among a few that were near (`reopen.py`). Where more of it is left than
  may be suppressed, each signature becomes a class of its own here, which breaks a demand like any other.

Classes that break a demand are united with the class with which they lose least, and with more of them from round to
round. All models but alpha by distinct persons are union safe, so that this comes to an end: at the latest with one
class of everything. A class that may not be published together with any other is suppressed. Where uniting ends with
more suppressed than may be (distinct persons, again), the classes that failed before are suppressed instead, if they
may be.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.config.models import Config
from kanon_spark.engine.binned import apply_to_bins
from kanon_spark.engine.fitting import population_judge
from kanon_spark.engine.guarding import merged_histograms, with_goodness
from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.stages import RunContext
from kanon_spark.engine.uniting import TURN, try_partners, unite, united_with_neighbours
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.signatures.histograms import HISTOGRAM
from kanon_spark.signatures.sensitive import Sensitive

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kanon_spark.signatures.encoding import Encoding

# From entries to the ids of the classes that fail; they are few, and collected.
Judge = Callable[["DataFrame"], NDArray[np.int64]]

MOST_ROUNDS = 16  # a class that fails takes in 1, 1, 2, 2, 4, 4 … others; in the last round everything is one class


def rejudge(
    ctx: RunContext,
    solver: Solver,
    entries: "DataFrame",
    judges: Sequence[Judge],
    *,
    block_size: int,
    folder: Callable[[str], str],
    over_blocks: bool,
) -> "tuple[DataFrame, int]":
    """Entries whose classes pass every judge; where anything had to be united, `folder("recoding")` is written anew.

    Where nothing that may be published together is left to unite, classes still break a demand: how many comes second,
    and the verifier ends the run.
    """
    first = entries
    left = _lost(entries) if over_blocks and solver.demands is not None and solver.method.leftover == "join" else 0
    if left > solver.suppressible:
        path = folder("opened")
        _each_alone(solver, entries, bins=-(-left // block_size)).write.mode("overwrite").parquet(path)
        entries = ctx.spark.read.schema(solver.schema).parquet(path)
        judges = [demands_judge(solver), *judges]
    failing = _all_failing(entries, judges)
    if len(failing) and solver.judged is not None and solver.judged.overlapping:
        entries, failing = try_partners(
            solver, entries, failing, lambda found: _all_failing(found, judges), block_size=block_size, folder=folder
        )
    affordable: tuple[int, DataFrame, NDArray[np.int64]] | None = None
    for number in range(MOST_ROUNDS):
        if not len(failing):
            break
        lost = _lost(entries, failing)
        if lost <= solver.suppressible and (affordable is None or lost < affordable[0]):
            affordable = (lost, entries, failing)
        steps = 1 << (number // 2) if number < MOST_ROUNDS - 1 else None
        united = united_with_neighbours(solver, entries, failing, steps=steps)
        if not len(united):
            break
        ctx.note(f"{len(failing)} classes break a demand of the whole release and are united with others")
        path = folder(f"united_{number}")
        unite(solver, entries, united, number, block_size).write.mode("overwrite").parquet(path)
        entries = ctx.spark.read.schema(solver.schema).parquet(path)
        failing = _all_failing(entries, judges)
    if affordable is not None and _lost(entries, failing) > solver.suppressible:
        _, entries, gone = affordable
        ctx.note(f"{len(gone)} classes break a demand whatever they are united with, and are suppressed")
        alone = pd.DataFrame({"class_id": gone, "united": -1})
        entries, failing = unite(solver, entries, alone, MOST_ROUNDS, block_size), np.zeros(0, np.int64)
    if entries is first:
        return entries, len(failing)
    path = folder("recoding")
    entries.write.mode("overwrite").parquet(path)
    return ctx.spark.read.schema(solver.schema).parquet(path), len(failing)


def _lost(entries: "DataFrame", failing: NDArray[np.int64] | None = None) -> int:
    """Rows that have no class, or one of those that fail."""
    from pyspark.sql import functions as F

    lost = F.col("class_id") < 0
    rows = entries.select("class_id", "rows")
    if failing is not None and len(failing):
        names = entries.sparkSession.createDataFrame(pd.DataFrame({"failing": failing}), "failing long")
        rows = rows.join(F.broadcast(names), F.col("class_id") == F.col("failing"), "left")
        lost |= F.col("failing").isNotNull()
    return int(rows.where(lost).agg(F.coalesce(F.sum("rows"), F.lit(0))).collect()[0][0])  # one row


def _each_alone(solver: Solver, entries: "DataFrame", *, bins: int) -> "DataFrame":
    """The entries with every open signature in a class of its own."""
    from pyspark.sql import functions as F

    def part(frame: pd.DataFrame) -> pd.DataFrame:
        alone = frame.assign(united=np.arange(len(frame)))
        return solver.unite(alone, turn=TURN - 1, block=int(frame["bin"].iloc[0]))

    binned = entries.where("class_id < 0").withColumn("bin", F.pmod(F.col("h"), F.lit(bins)).cast("int"))
    alone = apply_to_bins(binned, part, solver.schema)
    return entries.where("class_id >= 0").unionByName(alone.select(*entries.columns))


def _all_failing(entries: "DataFrame", judges: Sequence[Judge]) -> NDArray[np.int64]:
    return np.unique(np.concatenate([np.zeros(0, np.int64), *[judge(entries) for judge in judges]]))


def judges_of(
    config: Config,
    source: "DataFrame",
    encoding: "Encoding",
    sensitive: Sensitive | None,
    *,
    population: "DataFrame | None",
    one_process: bool,
) -> list[Judge]:
    """Who has to look at the classes again; nobody, where kernels knew everything.

    Args:
        config: The configuration.
        source: The rows, with the wishes as a column where there are any.
        encoding: How their quasi-identifiers are encoded.
        sensitive: What is asked of the values that classes hold.
        population: That of `privacy.k_map`, where it is asked for.
        one_process: Whether one process has formed all classes.
    """
    privacy = config.privacy
    judges: list[Judge] = []
    if sensitive is not None and sensitive.limited and privacy.unit is not None:
        judges.append(person_judge(sensitive, source, encoding, privacy.unit))
    if population is not None and privacy.k_map is not None:
        judges.append(population_judge(encoding, population, k=privacy.k_map.k, unit=privacy.unit))
    # One process has seen to what it suppressed itself, but not to what these judges may have to.
    if sensitive is not None and sensitive.relative and (judges or not one_process):
        judges.append(histogram_judge(sensitive, k=privacy.k))
    return judges


def demands_judge(solver: Solver) -> Judge:
    """Judge classes by k and what is asked beyond it, as kernels do."""

    def judge(entries: "DataFrame") -> NDArray[np.int64]:
        held = merged_histograms(entries.where("class_id >= 0"), ["class_id"])
        return _failing(with_goodness(held, k=solver.k, demands=solver.demands))

    return judge


def histogram_judge(sensitive: Sensitive, *, k: int) -> Judge:
    """Judge classes by what they hold of the sensitive values, against the distribution of what is released."""

    def judge(entries: "DataFrame") -> NDArray[np.int64]:
        from pyspark.sql import functions as F

        if not entries.where(F.col("class_id") < 0).limit(1).count():
            return np.zeros(0, np.int64)  # nothing is suppressed: the distribution is the one that kernels knew
        held = merged_histograms(entries.where(F.col("class_id") >= 0), ["class_id"])
        return _failing(with_goodness(held, k=k, demands=sensitive.judged(held).demands))

    return judge


def person_judge(sensitive: Sensitive, source: "DataFrame", encoding: "Encoding", unit: str) -> Judge:
    """Judge by alpha, in persons: who carries a value counts once for it in a published class, and once in the class.

    Classes that publish the same tuple are judged as the one class that a reader sees, under the least of their ids.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    rows = sensitive.carried(source, encoding, unit)
    published = _published(encoding.codebook)

    def judge(entries: "DataFrame") -> NDArray[np.int64]:
        name = F.min("class_id").over(Window.partitionBy(*published))
        classes = entries.where(F.col("class_id") >= 0).select("h", name.alias("class_id"))
        placed = rows.join(classes, "h")
        persons = placed.groupBy("class_id").agg(F.count_distinct("who").alias("persons"))
        each = placed.select("class_id", "who", F.explode("keys").alias("key"))
        pairs = each.groupBy("class_id", "key").agg(F.count_distinct("who").alias("number"))
        histogram = F.flatten(F.array_sort(F.collect_list(F.array("key", "number")))).alias(HISTOGRAM)
        held = pairs.groupBy("class_id").agg(histogram).join(persons, "class_id")
        # What is counted here is counted exactly; k is for others to judge.
        demands = sensitive.judged(held).limits.demands._replace(repeated=False)
        return _failing(with_goodness(held, k=0, demands=demands))

    return judge


def _published(codebook: Codebook) -> "list[Column]":
    """What tells published classes apart: nodes, labels of ranges and sets, numbers beside them."""
    from pyspark.sql import functions as F

    labels = [
        codebook.node_layout.unpack_column(index, "out") if column.publish == "node" else F.col(f"label_{index}")
        for index, column in enumerate(codebook.columns)
    ]
    return [*labels, *map(F.col, codebook.numbers)]


def _failing(judged: "DataFrame") -> NDArray[np.int64]:
    from pyspark.sql import functions as F

    found = judged.where(~F.col("good")).select("class_id").toPandas()
    return found["class_id"].to_numpy(np.int64)
