"""Judge the classes once more, as a whole table: what kernels could not know while they formed them.

- Suppressed rows change the distribution of the release, which t-closeness, beta-likeness and delta-disclosure are
  held against. Where one process has solved everything it has seen to that itself (`good_classes.py`); blocks cannot.
- With a unit, a person may stand in several signatures of a class. Kernels add up what signatures hold; here persons
  are counted as they are, each once per class and value.
- k-map asks how many persons of a population fit what a class publishes (`fitting.py`).

Classes that break a demand are united with the class with which they lose least, round after round. All models are
union safe, so that this comes to an end: at the latest with one class of everything.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.engine.fitting import population_judge
from kanon_spark.engine.guarding import merged_histograms, with_goodness
from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.population import open_population
from kanon_spark.engine.stages import RunContext
from kanon_spark.kernels.partners import cheapest_partners
from kanon_spark.kernels.spanning import components
from kanon_spark.signatures.columns import quoted
from kanon_spark.signatures.histograms import CODE_BITS, HISTOGRAM
from kanon_spark.signatures.sensitive import Sensitive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.signatures.encoding import Encoding

# From entries to the ids of the classes that fail; they are few, and collected.
Judge = Callable[["DataFrame"], NDArray[np.int64]]

MOST_ROUNDS = 12  # each unites every failing class with another: they at least halve


def rejudge(
    ctx: RunContext,
    solver: Solver,
    entries: "DataFrame",
    judges: Sequence[Judge],
    *,
    block_size: int,
    folder: Callable[[str], str],
) -> "DataFrame":
    """Entries whose classes pass every judge; where anything had to be united, `folder("recoding")` is written anew.

    Where nothing that may be published together is left to unite, classes still break a demand; the verifier then ends
    the run.
    """
    first = entries
    for number in range(MOST_ROUNDS):
        failing = np.unique(np.concatenate([judge(entries) for judge in judges]))
        united = _united(solver, entries, failing) if len(failing) else pd.DataFrame()
        if not len(united):
            break
        ctx.note(f"{len(failing)} classes break a demand of the whole release and are united with others")
        path = folder(f"united_{number}")
        _unite(solver, entries, united, number, block_size).write.mode("overwrite").parquet(path)
        entries = ctx.spark.read.schema(solver.schema).parquet(path)
    if entries is first:
        return entries
    path = folder("recoding")
    entries.write.mode("overwrite").parquet(path)
    return ctx.spark.read.schema(solver.schema).parquet(path)


def judges_of(
    loaded: LoadedConfig,
    source: "DataFrame",
    encoding: "Encoding",
    sensitive: Sensitive | None,
    *,
    one_process: bool,
) -> list[Judge]:
    """Who has to look at the classes again; nobody, where kernels knew everything.

    Args:
        loaded: The configuration.
        source: The rows, with the wishes as a column where there are any.
        encoding: How their quasi-identifiers are encoded.
        sensitive: What is asked of the values that classes hold.
        one_process: Whether one process has formed all classes.
    """
    privacy = loaded.config.privacy
    judges: list[Judge] = []
    if sensitive is not None and privacy.unit is not None:
        judges.append(histogram_judge(sensitive, counted_pairs(source, encoding, sensitive, privacy.unit), k=privacy.k))
    elif sensitive is not None and sensitive.relative and not one_process:
        judges.append(histogram_judge(sensitive, None, k=privacy.k))
    population = open_population(source.sparkSession, loaded)
    if population is not None and privacy.k_map is not None:
        judges.append(population_judge(encoding, population, k=privacy.k_map.k, unit=privacy.unit))
    return judges


def histogram_judge(sensitive: Sensitive, pairs: "Callable[[DataFrame], DataFrame] | None", *, k: int) -> Judge:
    """Judge classes by what they hold of the sensitive values, against the distribution of what is released.

    Args:
        sensitive: The columns and what is asked of them.
        k: Least persons of a class.
        pairs: With a unit: from entries to (`class_id`, `key`, `persons` of the class, `number` of persons that carry
            the value), counted from the source. Without: the entries' own histograms add up.
    """

    def judge(entries: "DataFrame") -> NDArray[np.int64]:
        from pyspark.sql import functions as F

        if pairs is None and not entries.where(F.col("class_id") < 0).limit(1).count():
            return np.zeros(0, np.int64)  # nothing is suppressed: the distribution is the one that kernels knew
        released = entries.where(F.col("class_id") >= 0)
        if pairs is None:
            held = merged_histograms(released, ["class_id"])
        else:
            each = F.flatten(F.array_sort(F.collect_list(F.array("key", "number")))).alias(HISTOGRAM)
            held = pairs(released).groupBy("class_id").agg(F.max("persons").alias("persons"), each)
        # What is counted here is counted exactly.
        demands = sensitive.judged(held).demands._replace(repeated=False)
        judged = with_goodness(held, k=k, demands=demands)
        found = judged.where(~F.col("good")).select("class_id").toPandas()
        return found["class_id"].to_numpy(np.int64)

    return judge


def counted_pairs(
    source: "DataFrame", encoding: "Encoding", sensitive: Sensitive, unit: str
) -> "Callable[[DataFrame], DataFrame]":
    """What `histogram_judge` needs with a unit: persons as they stand in the source's rows."""
    from pyspark.sql import functions as F

    tokens = sensitive.encoding.row_tokens(source, prefix="s_")
    rows = encoding.with_identity(source.withColumns({**tokens, "_kanon_unit": F.col(quoted(unit))}), name="h")
    rows = sensitive.encoding.with_codes(rows.select("h", "_kanon_unit", *tokens), prefix="s_")
    keys = [F.lit(i << CODE_BITS) + F.col(f"s_c{i}").cast("long") for i in range(len(tokens))]
    # A row without a person is a person of its own.
    nobody = F.xxhash64(F.lit("nobody"), F.monotonically_increasing_id())
    who = F.when(F.col("_kanon_unit").isNull(), nobody).otherwise(F.xxhash64("_kanon_unit")).alias("who")
    rows = rows.select("h", who, F.array(*keys).alias("keys"))

    def pairs(entries: "DataFrame") -> "DataFrame":
        placed = rows.join(entries.select("h", "class_id"), "h")
        persons = placed.groupBy("class_id").agg(F.count_distinct("who").alias("persons"))
        each = placed.select("class_id", "who", F.explode("keys").alias("key"))
        return each.groupBy("class_id", "key").agg(F.count_distinct("who").alias("number")).join(persons, "class_id")

    return pairs


def _united(solver: Solver, entries: "DataFrame", failing: NDArray[np.int64]) -> pd.DataFrame:
    """(class_id, united): the classes that change, and the name of what they become."""
    from pyspark.sql import functions as F

    outs = solver.codebook.node_layout.names("out")
    # One short row per class, of k persons at least.
    classes = (
        entries.where(F.col("class_id") >= 0)
        .groupBy("class_id")
        .agg(F.sum("rows").alias("rows"), *[F.first(name).alias(name) for name in outs])
        .toPandas()
        .sort_values("class_id")
    )
    ids = classes["class_id"].to_numpy(np.int64)
    nodes = solver.forest_nodes(classes[outs].to_numpy(np.int64))
    asking = np.searchsorted(ids, failing).astype(np.int32)
    partner, _ = cheapest_partners(solver.forest, nodes, classes["rows"].to_numpy(np.int64), asking)
    found = partner >= 0
    name = components(asking[found], partner[found], len(ids))
    changed = np.isin(name, name[asking[found]])
    return pd.DataFrame({"class_id": ids[changed], "united": ids[name[changed]]})


def _unite(solver: Solver, entries: "DataFrame", united: pd.DataFrame, number: int, block_size: int) -> "DataFrame":
    """The entries with the classes' new names, and what they now publish."""
    from pyspark.sql import functions as F

    spark = entries.sparkSession
    names = F.broadcast(spark.createDataFrame(united, "class_id long, united long"))
    same = entries.join(names, "class_id", "left_anti").select(*entries.columns)
    bins = max(1, len(united) * solver.k // block_size)
    turn = _TURN + number

    def unite_bin(frame: pd.DataFrame) -> pd.DataFrame:
        return solver.unite(frame, turn=turn, block=int(frame["bin"].iloc[0]))

    changed = entries.join(names, "class_id").withColumn("bin", F.pmod(F.xxhash64("united"), F.lit(bins)).cast("int"))
    return same.unionByName(changed.groupBy("bin").applyInPandas(unite_bin, solver.schema).select(*entries.columns))


_TURN = 64  # rounds of blocks, regions and refinement come before: class ids must not meet
