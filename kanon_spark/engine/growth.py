"""A release that grows with its table (`schedule.repeat: incremental`), so that comparing releases tells nothing.

Whoever keeps an older release can take the difference. So a run leaves every published row as it is and anonymizes the
arrivals alone, as a table of their own: what a run adds is k-anonymous by itself and satisfies every model by itself,
and so does the difference of any two releases, also where persons come back. Arrivals that would need a dearer class
than people have accepted before, or would break any of it, wait for company. Rows that are gone from the source, or
have changed, go; where fewer than k persons of what one run added to a tuple are left, or a model no longer holds
there, all of it is withdrawn, and for good: published once more in another class, it could be told by what both
classes share. `releases/README.md` tells the whole story.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from math import inf
from typing import TYPE_CHECKING

from kanon_spark.engine.encoded import EncodedTable
from kanon_spark.engine.population import asked_of
from kanon_spark.engine.verification import found_in_population
from kanon_spark.errors import DataError, GuaranteeError, MissingInputError, RepeatedIdError
from kanon_spark.io.content import content_hash
from kanon_spark.measure.entry_losses import with_losses
from kanon_spark.releases.standing import (
    COHORT,
    CONTENT,
    KEY,
    LOSS,
    MARKS,
    PERSON,
    RETIRED,
    STATE,
    WAITING,
    WISH,
    find_standing,
    save_facts,
)
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.signatures.columns import quoted
from kanon_spark.signatures.encoding import ROW_HASH
from kanon_spark.signatures.sensitive import with_wishes
from kanon_spark.verify.difference import Record, verify_growth
from kanon_spark.verify.groups import TUPLE, tuple_hashes, tuple_parts
from kanon_spark.verify.table import failing_classes
from kanon_spark.verify.unions import failing_alone, judge_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.config.loader import LoadedConfig
    from kanon_spark.engine.opened import Opened
    from kanon_spark.engine.solving import Solved
    from kanon_spark.engine.stages import RunContext
    from kanon_spark.signatures.aggregate import Signatures
    from kanon_spark.verify.asked import Asked
    from kanon_spark.verify.facts import Verdict

_SHARE = 0.9  # a new class may be as dear as what so many rows of the first release lose at most
_ROUNDS = 20  # of withdrawals, each of which can only shrink the release
_PATIENCE = 12  # rounds after which all arrivals of a release that stands wait


class Growth:
    """One incremental run: who stays, who arrives, who waits, and what of it is published.

    Attributes:
        standing: What has been published so far; None for the first release.
        arrivals: Rows of the source that are to be published; all of them in a first run.
        counts: What became of rows, for the manifest.
    """

    def __init__(self, ctx: "RunContext", loaded: "LoadedConfig", opened: "Opened") -> None:
        self.ctx, self.loaded, self.opened = ctx, loaded, opened
        self.work = opened.work
        self.unit = loaded.config.privacy.unit
        self._asked: Asked | None = None
        self._kept: DataFrame | None = None
        self.counts: dict[str, int] = {}
        self.standing = find_standing(
            ctx.spark, loaded, opened.publisher.published(), store=opened.work.store, root=opened.work.root
        )
        self.arrivals = self._split()

    def _split(self) -> "DataFrame":
        """Tell arrivals from rows that are published, and withdraw what can no longer stand."""
        from pyspark.sql import functions as F

        source = self._marked(self.opened.source)
        self._refuse_keys(source)
        if self.standing is None:
            return source
        standing = self.standing
        rows = self._written(source, "rows")
        now = rows.select(F.col(KEY).alias("now"), F.col(CONTENT).alias("is"))
        published = standing.rows.join(now, F.col(KEY) == F.col("now"), "left")
        stays = F.col("now").isNotNull() & (F.col("is") == F.col(CONTENT))
        kept = self._written(published.where(stays).drop("now", "is"), "kept")
        gone = published.where(F.col("now").isNull()).count()
        changed = published.where(F.col("now").isNotNull() & (F.col("is") != F.col(CONTENT))).count()
        self.counts |= {"left": gone, "changed": changed}
        self._kept = kept
        retired = standing.retired.select(F.col(KEY).alias("now"))
        there = kept.select(F.col(KEY).alias("now")).unionByName(retired)
        return self._written(rows.join(there, F.col(KEY) == F.col("now"), "left_anti"), "arrivals")

    def _marked(self, source: "DataFrame") -> "DataFrame":
        """The rows with key, person, a hash of all that is published or counted of them, and what they ask for."""
        from pyspark.sql import functions as F

        config, roles = self.loaded.config, self.opened.roles
        key = str(config.schedule.key)
        if key not in source.columns or key in roles.kept:
            what = "would be published" if key in roles.kept else "is not in the source"
            raise MissingInputError(
                f"the key {key} {what}", where="schedule.key", fix="name an identifier that the source has"
            )
        told = [*roles.quasi_identifiers, *roles.kept, *roles.pseudonyms, *filter(None, [self.unit])]
        person = F.lit(None).cast("string") if self.unit is None else F.col(quoted(self.unit))
        wish = F.lit(None).cast("long") if config.privacy.personal_k is None else F.col(WISH)
        marked = source if config.privacy.personal_k is None else with_wishes(source, config)
        return (
            marked.withColumn(KEY, F.col(quoted(key)))
            .withColumn(PERSON, person)
            .withColumn(CONTENT, content_hash(source, sorted(set(told))))
            .withColumn(WISH, wish)
        )

    def _refuse_keys(self, source: "DataFrame") -> None:
        from pyspark.sql import functions as F

        row = source.agg(F.count(F.lit(1)), F.count(KEY), F.count_distinct(KEY)).first()
        assert row is not None
        rows, named, distinct = (int(part) for part in row)
        if named < rows or distinct < named:
            raise RepeatedIdError(
                f"{rows - named:,} rows have no key, and {named - distinct:,} rows share theirs with another",
                where="schedule.key",
                fix="name a column that has another value in every row, and keeps it",
            )

    def _written(self, table: "DataFrame", what: str) -> "DataFrame":
        path = self.work.path(f"growth_{what}")
        table.write.mode("overwrite").parquet(path)
        return self.ctx.spark.read.schema(table.schema).parquet(path)

    @property
    def limit(self) -> float:
        """The largest loss per row of a new class; infinite for a first release."""
        asked = self.loaded.config.schedule.max_loss
        if self.standing is None:
            return inf
        return self.standing.limit if asked is None else asked

    def within_limit(self, entries: "DataFrame", codebook: Codebook) -> "DataFrame":
        """The recoding with the loss of each entry (`LOSS`), and classes that are too dear left open."""
        from pyspark.sql import functions as F

        costed = with_losses(entries, codebook, name=LOSS)
        fits = F.col(LOSS) <= F.lit(self.limit + 1e-12)
        return costed.withColumn("class_id", F.when(fits, F.col("class_id")).otherwise(F.lit(-1).cast("long")))

    def keep(self, published: "DataFrame | None", entries: "DataFrame | None") -> "DataFrame":
        """Write the record of published rows: those that stay and, of the arrivals, what may join them.

        Args:
            published: The arrivals as they would be published, with their marks and row hash; None if there are none.
            entries: The recoding with losses.

        Returns:
            What is to be published.
        """
        from pyspark.sql import functions as F

        parts = [] if self._kept is None else [self._kept]
        if published is not None and entries is not None:
            losses = entries.select(F.col("h").alias("entry"), F.col(LOSS))
            new = published.join(losses, F.col(ROW_HASH) == F.col("entry")).drop("entry")
            parts.append(self._written(new.withColumn(COHORT, F.lit(self.ctx.run_id)), "new"))
        candidate = parts[0]
        for part in parts[1:]:
            candidate = candidate.unionByName(part, allowMissingColumns=True)
        settled = self._settled(candidate)
        if published is not None:
            self._written(settled.where(F.col(ROW_HASH).isNotNull()).select(ROW_HASH).distinct(), "published")
        columns = [*self.opened.columns, KEY, PERSON, COHORT, CONTENT, LOSS, WISH]
        path = self.work.path(STATE)
        settled.select(*[quoted(name) for name in columns]).write.mode("overwrite").parquet(path)
        self._account()
        return self.rows.select(*[quoted(name) for name in self.opened.columns])

    @property
    def rows(self) -> "DataFrame":
        """The record of published rows."""
        return self.ctx.spark.read.parquet(self.work.path(STATE))

    def _settled(self, candidate: "DataFrame") -> "DataFrame":
        """Take out what cannot stand until everything left can: arrivals wait, older rows are withdrawn.

        Arrivals go first: what fails beside them may stand without them, and what is withdrawn does not come back.
        """
        from pyspark.sql import functions as F

        own = [*self.opened.tuple_columns, COHORT]
        arrived = F.col(COHORT) == self.ctx.run_id
        for number in range(_ROUNDS):
            classes = candidate.select("*", *tuple_hashes(tuple_parts(candidate, own)))
            bad = self._written(self._failing(candidate), f"failing_{number}")
            if not bad.limit(1).count():
                return candidate
            new = classes.where(arrived).select(*TUPLE).distinct()
            if number >= _PATIENCE and self.standing is not None and new.limit(1).count():
                bad = new
            else:
                waiting = bad.join(new, list(TUPLE), "left_semi")
                bad = waiting if waiting.limit(1).count() else bad
            candidate = self._written(classes.join(bad, list(TUPLE), "left_anti").drop(*TUPLE), f"settled_{number}")
        raise GuaranteeError(
            f"after {_ROUNDS} rounds of withdrawals classes still fail; nothing was published",
            where="schedule.repeat",
            fix="ask for less (k, models), or publish to a new target",
        )

    def _failing(self, candidate: "DataFrame") -> "DataFrame":
        """What one run has added to a tuple and cannot stand, as hashes of tuple and cohort."""
        from pyspark.sql import functions as F

        qi, k = self.opened.tuple_columns, self.loaded.config.privacy.k
        person = None if self.unit is None else PERSON
        # What one run has added to a tuple is a class of its own: a reader who kept every release can tell it.
        failing = [
            failing_classes(candidate, qi=[*qi, COHORT], k=k, unit=person),
            self._short_gains(candidate, qi, k=k),
        ]
        if self.asked:
            record = Record(candidate, COHORT, self.ctx.run_id, person)
            judge_parts(record, qi=qi, k=k, asked=self.asked, failing=failing)
            # Once more as the verifier sees them: against each other, without what stands already.
            new = candidate.where(F.col(COHORT) == self.ctx.run_id)
            if ROW_HASH in new.columns:
                failing += failing_alone(new, qi=[*qi, COHORT], entry=ROW_HASH, person=person, asked=self.asked)
        return reduce(lambda left, right: left.unionByName(right), failing).distinct()

    def _short_gains(self, candidate: "DataFrame", qi: list[str], *, k: int) -> "DataFrame":
        """Classes of arrivals that would bring fewer than k new persons to a tuple that is there already."""
        from pyspark.sql import functions as F

        whole = tuple_hashes(tuple_parts(candidate, qi))
        tuples = [hashed.alias(name) for hashed, name in zip(whole, ("q1", "q2"), strict=True)]
        hashed = candidate.select(PERSON, COHORT, *tuples, *tuple_hashes(tuple_parts(candidate, [*qi, COHORT])))
        new = F.col(COHORT) == self.ctx.run_id
        arrived = hashed.where(new)
        if self.unit is None:
            # Every row is a person of its own, and the class has k of them.
            return arrived.select(*TUPLE).limit(0)
        there = hashed.where(~new & F.col(PERSON).isNotNull()).select("q1", "q2", PERSON).distinct()
        fresh = arrived.join(there, ["q1", "q2", PERSON], "left_anti")
        persons = F.count_distinct(PERSON) + F.count(F.when(F.col(PERSON).isNull(), 1))
        gained = fresh.groupBy(*TUPLE).agg(persons.alias("gained"))
        every = arrived.select(*TUPLE).distinct().join(gained, list(TUPLE), "left")
        return every.where(F.coalesce(F.col("gained"), F.lit(0)) < k).select(*TUPLE)

    def _account(self) -> None:
        """Who waits, who is withdrawn, and the numbers of it."""
        from pyspark.sql import functions as F

        spark, run_id, rows = self.ctx.spark, self.ctx.run_id, self.rows
        here = rows.select(F.col(KEY).alias("now"))
        waiting = self.arrivals.select(KEY).join(here, F.col(KEY) == F.col("now"), "left_anti")
        retired = rows.select(KEY).limit(0)
        since = waiting.withColumn("since", F.lit(run_id))
        if self.standing is not None and self._kept is not None:
            withdrawn = self._kept.select(KEY).join(here, F.col(KEY) == F.col("now"), "left_anti")
            still = self.opened.source.select(F.col(quoted(str(self.loaded.config.schedule.key))).alias("now"))
            before = self.standing.retired.join(still, F.col(KEY) == F.col("now"), "left_semi")
            retired = before.select(KEY).unionByName(withdrawn)
            earlier = self.standing.waiting.select(F.col(KEY).alias("now"), F.col("since").alias("earlier"))
            since = waiting.join(earlier, F.col(KEY) == F.col("now"), "left").select(
                KEY, F.coalesce("earlier", F.lit(run_id)).alias("since")
            )
        retired.write.mode("overwrite").parquet(self.work.path(RETIRED))
        since.write.mode("overwrite").parquet(self.work.path(WAITING))
        new = rows.where(F.col(COHORT) == run_id).count()
        self.counts |= {
            "kept": rows.count() - new,
            "joined": new,
            "held_back": spark.read.parquet(self.work.path(WAITING)).count(),
            "withdrawn": spark.read.parquet(self.work.path(RETIRED)).count(),
        }
        first = self.standing is None
        limit = self._first_limit(rows) if first else self.limit
        releases = 1 if self.standing is None else self.standing.releases + 1
        save_facts(self.work, self.loaded, limit=limit, releases=releases, columns=tuple(self.opened.columns))
        self.counts["releases"] = releases

    @staticmethod
    def _first_limit(rows: "DataFrame") -> float:
        """What nine rows in ten lose at most; where that is nothing, what the dearest row loses."""
        from pyspark.sql import functions as F

        row = rows.agg(F.percentile(LOSS, F.lit(_SHARE)), F.max(LOSS)).first()
        assert row is not None
        return float(row[0] or row[1] or 0.0)

    @property
    def asked(self) -> "Asked":
        """What is asked beyond k; wishes stand in the record."""
        if self._asked is None:
            asked = asked_of(self.ctx.spark, self.loaded)
            self._asked = replace(asked, personal_k=WISH if asked.personal_k is not None else None)
        return self._asked

    @property
    def new_rows(self) -> "DataFrame":
        """What this run adds, as it is published."""
        from pyspark.sql import functions as F

        new = self.rows.where(F.col(COHORT) == self.ctx.run_id)
        return new.select(*[quoted(name) for name in self.opened.columns])

    def open_entries(self, entries: "DataFrame") -> "DataFrame":
        """The recoding, with the classes left open that did not make it into the record."""
        from pyspark.sql import functions as F

        made_it = self.ctx.spark.read.parquet(self.work.path("growth_published"))
        joined = entries.join(made_it, F.col("h") == F.col(ROW_HASH), "left")
        class_id = F.when(F.col(ROW_HASH).isNotNull(), F.col("class_id")).otherwise(F.lit(-1).cast("long"))
        return joined.withColumn("class_id", class_id).drop(ROW_HASH)

    def verify(self, written: "DataFrame", *, arrivals: "Verdict | None" = None) -> "Verdict":
        """The release as a whole, in its parts, and against the one that stands; with what was found of arrivals."""
        opened, person = self.opened, None if self.unit is None else PERSON
        previous = None if self.standing is None else opened.publisher.read_published(opened.schema)
        verdict = verify_growth(
            written,
            Record(self.rows, COHORT, self.ctx.run_id, person),
            previous=previous,
            qi=opened.tuple_columns,
            k=self.loaded.config.privacy.k,
            asked=replace(self.asked, population=None) or None,
        )
        found = found_in_population(self.loaded, written, self.asked)
        own = () if arrivals is None else arrivals.checks
        named = tuple(replace(check, name=f"arrivals: {check.name}") for check in own)
        checks = (*verdict.checks, *(each.check for each in found), *named)
        return replace(verdict, checks=checks, models=(*verdict.models, *found))

    def solve(self, expect: "Callable[[Signatures], None]") -> "tuple[EncodedTable, Solved] | None":
        """Form classes of the arrivals; None if there are too few of them, or nothing that is asked can be met."""
        loaded, folder = self.loaded, self.work.path
        if not self.arrivals.limit(1).count():
            return None
        kept = self.opened.roles.kept
        table = EncodedTable.of(self.ctx, loaded, self.arrivals, kept=kept, folder=folder)
        expect(table.signatures)
        try:
            solver, with_labels, _ = table.solver(loaded.config)
        except DataError as error:
            self.ctx.note(f"all arrivals wait: {error.message}")
            return None
        return table, table.solve(loaded, solver, with_labels, folder=folder)

    @property
    def marks(self) -> tuple[str, ...]:
        """Columns that travel with the arrivals into the record."""
        return (*MARKS, ROW_HASH)

    @property
    def unlimited(self) -> "LoadedConfig":
        """The configuration with nothing said of suppression: rows that are not published wait."""
        config = self.loaded.config
        privacy = config.privacy.model_copy(update={"max_suppression": 1.0})
        return replace(self.loaded, config=config.model_copy(update={"privacy": privacy}))

    @property
    def row_facts(self) -> dict[str, int]:
        """What the manifest says of rows."""
        counts = self.counts
        published = counts["kept"] + counts["joined"]
        return {
            "released": published,
            "suppressed": 0,
            "published": published,
            "held_back": counts["held_back"],
            "withdrawn": counts["withdrawn"],
        }
