"""Loss on Adult: the real run on Spark, judged by the neutral judge, beside what others reach."""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from bench import peers
from bench.adult import NUMERIC, QI_SETS, ROW_ID, Adult
from bench.jobs import job, settings
from bench.judge import Judgement, judge
from bench.methods import TARGET, VARIANTS
from bench.places import HIERARCHIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# `local_limit: 0` forces blocks on a table that one process could solve.
_BLOCKS = {"block_size": 2000, "local_limit": 0}
WAYS: dict[str, dict[str, Any]] = {
    "one process": {},
    "blocks": {**_BLOCKS, "stitch": "local"},
    "graphframes": {**_BLOCKS, "stitch": "graphframes"},
}


@dataclass(frozen=True)
class Figure:
    """One judged run; `solve_cpu` and `bound_cpu` only where one process did the work."""

    method: str
    qi_set: str
    k: int
    way: str
    effort: str
    judged: Judgement
    own_gcp: float
    bound: float | None
    bound_kind: str
    blocks: int
    seconds: float
    solve_cpu: float | None
    bound_cpu: float | None
    stitch: dict[str, Any]
    models: dict[str, Any] = field(default_factory=dict)

    @property
    def known(self) -> peers.Known | None:
        """What is known of others, for the QI sets and k that the table has."""
        return peers.known(self.method, self.qi_set, self.k)

    @property
    def loss(self) -> float:
        """The loss that counts: by ranges and sets for methods that run without hierarchies, else by hierarchies."""
        return self.judged.gcp_set if self.method in peers.BY_SETS else self.judged.gcp_hierarchy

    @property
    def target(self) -> float | None:
        """The loss to reach."""
        return self.known.target(self.effort) if self.known else None

    @property
    def reached(self) -> bool | None:
        """Whether the loss is at most the target, on the four digits that targets have."""
        return None if self.target is None else round(self.loss, 4) <= self.target

    def to_json(self) -> dict[str, Any]:
        """Everything, the peers' figures included."""
        known = asdict(self.known) if self.known else None
        return {**asdict(self), "known": known, "loss": self.loss, "target": self.target, "reached": self.reached}


def measure_quality(
    adult: Adult,
    *,
    methods: Sequence[str],
    ks: Sequence[int],
    qi_sets: Sequence[str],
    effort: str,
    ways: Sequence[str],
    memory: str,
    tell: Callable[[str], None],
) -> list[Figure]:
    """Run and judge every combination in one Spark session."""
    from kanon_spark.engine.session import get_spark

    with tempfile.TemporaryDirectory(prefix="kanon_bench_") as name:
        folder = Path(name)
        spark = get_spark("kanon bench", extra=settings(folder, memory=memory), graphs="graphframes" in ways)
        try:
            tell("warm up Spark and the kernels")
            smallest = min(qi_sets, key=lambda qi_set: len(QI_SETS[qi_set]))
            brief = "normal" if effort == "high" else effort  # it compiles the same
            for method in methods:
                for way in ways:
                    measure_one(spark, adult, folder, method=method, qi_set=smallest, k=min(ks), way=way, effort=brief)
            figures = []
            for method, qi_set, k, way in product(methods, qi_sets, ks, ways):
                tell(f"{method}: {qi_set}, k = {k}, {way}")
                figure = measure_one(spark, adult, folder, method=method, qi_set=qi_set, k=k, way=way, effort=effort)
                # Hours may lie between the first cell and the table at the end: say at once what was found.
                cpu = "" if figure.solve_cpu is None else f", {figure.solve_cpu:.1f} CPU s"
                tell(f"  loss {figure.loss:.5f}{cpu}")
                figures.append(figure)
            return figures
        finally:
            spark.stop()


def measure_one(
    spark: "SparkSession",
    adult: Adult,
    folder: Path,
    *,
    qi_set: str,
    k: int,
    way: str,
    effort: str,
    method: str = "lattice",
    sensitive: Sequence[str] = (),
    privacy: Mapping[str, Any] | None = None,
) -> Figure:
    """One run through the engine, judged by what it wrote; sensitive columns are no quasi-identifiers."""
    from kanon_spark.config.loader import load_config
    from kanon_spark.engine.runner import run

    qis = tuple(qi for qi in QI_SETS[qi_set] if qi not in sensitive)
    more = [*([TARGET] if VARIANTS[method].target else []), *sensitive]
    source = folder / f"{'_'.join([qi_set, *more])}.parquet"
    if not source.exists():
        adult.rows[[ROW_ID, *qis, *more]].to_parquet(source, index=False)
    work = folder / "run"
    try:
        wanted = job(
            source,
            work,
            qis=qis,
            k=k,
            method=method,
            effort=effort,
            execution=WAYS[way],
            sensitive=sensitive,
            privacy=privacy,
        )
        manifest = run(load_config(wanted), spark=spark).manifest
        release = pd.read_parquet(work / "release")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    kernels = manifest["seconds"]["kernels_cpu"] or {}
    return Figure(
        method=method,
        qi_set=qi_set,
        k=k,
        way=way,
        effort=effort,
        judged=judge(adult.rows, release, qis=qis, k=k, row_id=ROW_ID, hierarchies=HIERARCHIES, numeric=NUMERIC),
        own_gcp=manifest["metrics"]["gcp"],
        bound=manifest["metrics"]["gcp_bound"],
        bound_kind=manifest["metrics"]["bound_kind"],
        blocks=manifest["blocks"],
        seconds=manifest["seconds"]["total"],
        solve_cpu=kernels.get("solve"),
        bound_cpu=kernels.get("bound"),
        stitch=manifest["stitch"],
        models={name: each for name, each in manifest["privacy"].items() if "(" in name},
    )
