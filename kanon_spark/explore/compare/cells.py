"""One cell after the other, all on the same signatures: solved as a run would solve it, measured, and forgotten.

Where one process can form the classes nothing is written: entries stay in memory. The bound depends on k alone, and is
found once for each; where one process does it, beside the cells.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.models import Config, MethodSpec
from kanon_spark.config.rules import rule_problems
from kanon_spark.engine.bounding import block_bound_kind, with_block_bounds
from kanon_spark.engine.encoded import EncodedTable
from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.refuse import count_suppressed, refuse_suppression
from kanon_spark.engine.solving import BLOCK_SIZE, timed
from kanon_spark.errors import ConfigError, GuaranteeError, InternalError, KanonError
from kanon_spark.explore.compare.learning import Learning
from kanon_spark.explore.compare.request import Variant
from kanon_spark.explore.compare.result import Cell
from kanon_spark.measure.metrics import NO_BOUND, bound_share, gap_to, measure
from kanon_spark.measure.published_sizes import PublishedSizes, published_sizes
from kanon_spark.measure.tally import Entries
from kanon_spark.releases.workdir import WorkDir, entries_of
from kanon_spark.risk.sizes import Sizes, class_risk
from kanon_spark.verify.facts import ClassFacts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CELL = "cell_"  # names of what a cell leaves in the work folder begin so
_WARM_UP = 200  # signatures on which kernels are compiled, so that no cell pays for it


@dataclass(frozen=True)
class Bound:
    """What no release at one k can be below, as a share of all detail; None where there is none."""

    share: float | None = None
    kind: str = NO_BOUND


@dataclass(frozen=True)
class Formed:
    """Classes of a cell.

    Attributes:
        entries: The recoding's entries.
        seconds: Wall-clock seconds to form the classes.
        cpu: CPU seconds of the kernels, where one process did the work.
    """

    entries: Entries
    seconds: float
    cpu: float | None


@dataclass(frozen=True)
class Cells:
    """Makes the cells.

    Attributes:
        loaded: The configuration.
        table: The signatures.
        work: The work folder.
        learning: What classifiers learn, where a label is named.
    """

    loaded: LoadedConfig
    table: EncodedTable
    work: WorkDir
    learning: Learning | None = None

    def all(self, variants: Sequence[Variant], ks: Sequence[int]) -> Iterator[Cell]:
        """The cells of each k in turn."""
        tell, number, whole = self.table.ctx.note, 0, len(ks) * len(variants)
        warm: set[str] = set()
        with self._bounding(ks) as bounds:
            for k in ks:
                made = []
                for variant in variants:
                    number += 1
                    tell(f"{number} of {whole}: {variant.name}, k = {k}")
                    made.append(self._cell(variant, k, warm))
                bound = bounds[k].result()
                for cell in made:
                    if cell.gcp is None:
                        yield cell
                        continue
                    gap = gap_to(cell.gcp, bound.share)
                    yield replace(cell, gcp_bound=bound.share, bound_kind=bound.kind, gcp_gap=gap)

    def _cell(self, variant: Variant, k: int, warm: set[str]) -> Cell:
        loaded = self._asking(variant.spec, k)
        try:
            problems = rule_problems(loaded.config)
            if problems:
                raise ConfigError("; ".join(f"{problem.path}: {problem.message}" for problem in problems))
            solver, signatures, _ = self.table.solver(loaded.config)
            if variant.name not in warm:
                self._warm_up(solver, signatures, loaded)
                warm.add(variant.name)
            return self._measured(variant, loaded.config, solver, self._formed(loaded, solver, signatures))
        except InternalError:
            raise
        except KanonError as error:
            return Cell(variant.name, k, reason=error.message, exit_code=error.exit_code)
        finally:
            self._forget()

    def _asking(self, spec: MethodSpec, k: int) -> LoadedConfig:
        """The configuration of a cell. Its bound is found elsewhere."""
        config = self.loaded.config
        changed = {
            "method": spec,
            "privacy": config.privacy.model_copy(update={"k": k}),
            "execution": config.execution.model_copy(update={"bound": NO_BOUND}),
        }
        return replace(self.loaded, config=config.model_copy(update=changed))

    def _formed(self, loaded: LoadedConfig, solver: Solver, signatures: "DataFrame") -> Formed:
        """Classes, formed in the way that a run would take."""
        begin = time.perf_counter()
        alone = self.table.fits_one_process(solver, loaded.config.execution)
        if alone and not self.table.judges(loaded, solver):
            frame = self._collected(loaded, solver, signatures)
            begin = time.perf_counter()  # signatures are collected once, for all cells
            with self.table.ctx.stage("solve"):
                (entries, _), seconds = timed(solver.solve_whole, frame)
            return Formed(entries, time.perf_counter() - begin, seconds)
        solved = self.table.solve(loaded, solver, signatures, folder=self._folder)
        if solved.broken:
            raise GuaranteeError(f"{solved.broken} classes break a demand of the whole release and cannot be united")
        cpu = None if solved.cpu is None else solved.cpu["solve"]
        return Formed(solved.entries, time.perf_counter() - begin, cpu)

    def _measured(self, variant: Variant, config: Config, solver: Solver, formed: Formed) -> Cell:
        entries, count, k = formed.entries, self.table.signatures.count, config.privacy.k
        with self.table.ctx.stage("measure"):
            rows = self.table.signatures.rows
            suppressed = count_suppressed(entries)["rows"]
            refuse_suppression(config, suppressed, rows=rows)
            sizes = published_sizes(entries, solver.codebook, count=count, pairs=self._pairs)
            if min(sizes.persons, default=k) < k:
                raise GuaranteeError(f"the smallest class has {min(sizes.persons)} persons, fewer than k = {k}")
            facts = ClassFacts.of(sizes.rows, k=k, achieved=min(sizes.persons, default=0))
            found = measure(entries, solver.codebook, count=count, facts=facts, k=k)
            tree, bayes = (None, None) if self.learning is None else self._learnt(entries, solver)
        worst, average = self._risks(sizes, rows=rows - suppressed)
        return Cell(
            variant.name,
            k,
            gcp=found["gcp"],
            dm=found["dm"],
            cavg=found["cavg"],
            classes=facts.classes,
            smallest=facts.achieved,
            suppressed=suppressed,
            suppressed_share=suppressed / rows,
            risk=worst,
            average_risk=average,
            tree_accuracy=tree,
            bayes_accuracy=bayes,
            cpu_seconds=formed.cpu,
            seconds=formed.seconds,
        )

    def _learnt(self, entries: Entries, solver: Solver) -> tuple[float, float] | tuple[None, None]:
        assert self.learning is not None
        try:
            return self.learning.accuracies(entries, solver.codebook)
        except KanonError:
            return None, None  # nothing is released of the rows to learn from

    def _risks(self, sizes: PublishedSizes, *, rows: int) -> tuple[float | None, float | None]:
        """The chance to be found, at worst and on average; None where nothing is released."""
        if not sizes.persons:
            return None, None
        counted = "rows" if self.loaded.config.privacy.unit is None else "persons"
        records = sum(size * many for size, many in sizes.persons.items())
        unique = sizes.persons.get(1, 0)
        found = class_risk(Sizes(rows, counted, sizes.persons, unique, records)).prosecutor  # type: ignore[arg-type]
        return found.highest, found.average

    def _collected(self, loaded: LoadedConfig, solver: Solver, signatures: "DataFrame") -> pd.DataFrame:
        """All signatures in the order of their codes; they fit one process."""
        label = loaded.config.method.label or loaded.config.method.target
        if label not in self._frames:
            self._frames[label] = solver.in_order(signatures.toPandas())
        return self._frames[label]

    @cached_property
    def _frames(self) -> dict[str | None, pd.DataFrame]:
        return {}

    @cached_property
    def _pairs(self) -> "DataFrame | None":
        """Who stands in which signature, where there is a unit; written once."""
        unit = self.loaded.config.privacy.unit
        if unit is None:
            return None
        spark, path = self.table.ctx.spark, self.work.path("pairs")
        pairs = self.table.encoding.pairs(self.table.source, unit)
        pairs.write.mode("overwrite").parquet(path)
        return spark.read.schema(pairs.schema).parquet(path)

    def _warm_up(self, solver: Solver, signatures: "DataFrame", loaded: LoadedConfig) -> None:
        """Compile what the method calls: the seconds of its first cell are to be those of its work."""
        if self.table.fits_one_process(solver, loaded.config.execution):
            frame = self._collected(loaded, solver, signatures)
            enough = int(np.searchsorted(frame["persons"].cumsum().to_numpy(), 2 * solver.k)) + 1
            solver.solve_whole(frame.head(max(_WARM_UP, enough)))

    @contextmanager
    def _bounding(self, ks: Sequence[int]) -> "Iterator[dict[int, Future[Bound]]]":
        """The bound of each k: in one process beside the cells, by kernels that let go of Python's lock."""
        with ThreadPoolExecutor(max_workers=1) as pool:
            bounds = {k: self._bounded(k, pool) for k in ks}
            try:
                yield bounds
            finally:
                for bound in bounds.values():
                    bound.cancel()

    def _bounded(self, k: int, pool: ThreadPoolExecutor) -> "Future[Bound]":
        """What depends on Spark is done here, the rest in the pool."""
        asked, count = self.loaded.config.execution, self.table.signatures.count
        done: Future[Bound] = Future()
        loaded = self._asking(MethodSpec(name="lattice"), k)
        try:
            solver, signatures, _ = self.table.solver(loaded.config)
        except KanonError:
            done.set_result(Bound())  # no release at this k can be made, and the cells say why
            return done
        if self.table.fits_one_process(solver, asked):
            frame = self._collected(loaded, solver, signatures)
            return pool.submit(self._bound_here, solver, frame, "dual" if asked.bound == "auto" else asked.bound)
        kind = block_bound_kind(solver, asked.bound)
        share = None
        if kind != NO_BOUND:
            block_size = asked.block_size or BLOCK_SIZE
            bounded = with_block_bounds(
                self.table.ctx, solver, signatures, count=count, block_size=block_size, folder=self._folder
            )
            share = self._share(solver, _sum_of_bounds(bounded))
            self._forget()
        done.set_result(Bound(share, kind))
        return done

    def _bound_here(self, solver: Solver, frame: pd.DataFrame, kind: str) -> Bound:
        values, kind = solver.bound(frame, kind=kind)
        if kind == NO_BOUND:
            return Bound()
        return Bound(self._share(solver, float((frame["rows"].to_numpy(np.int64) * values).sum())), kind)

    def _share(self, solver: Solver, total: float) -> float:
        return bound_share(total, solver.codebook, rows=self.table.signatures.rows)

    def _folder(self, what: str) -> str:
        return self.work.path(_CELL + what)

    def _forget(self) -> None:
        """Nothing of a cell stays."""
        for _, what in entries_of(self.work.store, self.work.root, self.work.run_id):
            if what.startswith(_CELL):
                self.work.store.delete(self.work.path(what))


def _sum_of_bounds(bounded: "DataFrame") -> float:
    from pyspark.sql import functions as F

    row = bounded.agg(F.sum(F.col("rows") * F.col("bound"))).first()
    return float(row[0]) if row is not None and row[0] is not None else 0.0
