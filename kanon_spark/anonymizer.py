"""The Python door: an `Anonymizer` describes a job, and nothing happens until `run`."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kanon_spark.config.loader import LoadedConfig, config_from_kwargs, load_config
from kanon_spark.config.models import Config

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.config.preflight import Finding
    from kanon_spark.engine.release import Release
    from kanon_spark.engine.stages import Listener
    from kanon_spark.explore.compare import Comparison


class Anonymizer:
    """A job, ready to run on a table.

    Takes a `Config`, a dict of the same form as the YAML file, or keyword arguments: the file's sections
    (`privacy={"k": 10}`) and flat names for what is asked for most (`k`, `quasi_identifiers`, `sensitive`,
    `identifiers`, `other`, `unit`, `max_suppression`, `effort`, `hierarchies`, …).

    >>> job = Anonymizer(
    ...     quasi_identifiers={"age": {"hierarchy": {"interval": {"widths": [5, 10, 20]}}}, "sex": "flat", "zip": None},
    ...     sensitive=["diagnosis"],
    ...     k=10,
    ...     method="lattice",
    ... )
    >>> job.config.privacy.k
    10

    `job.run(df)` then returns a `Release`, whose `.table` is verified to be 10-anonymous.
    """

    def __init__(self, config: Config | Mapping[str, Any] | None = None, /, **kwargs: Any) -> None:
        if config is not None and kwargs:
            raise TypeError("give either a configuration or keyword arguments, not both")
        self._loaded = config_from_kwargs(**kwargs) if config is None else load_config(config)

    @classmethod
    def from_yaml(cls, path: str | Path, *, overrides: Sequence[str] = ()) -> "Anonymizer":
        """Read the job from a YAML file; `overrides` are changes such as `"privacy.k=10"`."""
        return cls._of(load_config(path, overrides=overrides))

    @classmethod
    def from_dict(cls, config: Mapping[str, Any], *, overrides: Sequence[str] = ()) -> "Anonymizer":
        """Take the job from a dict of the same form as the YAML file.

        >>> job = Anonymizer.from_dict({"columns": {"quasi_identifiers": ["age"]}}, overrides=["privacy.k=3"])
        >>> job.config.privacy.k
        3
        """
        return cls._of(load_config(config, overrides=overrides))

    @classmethod
    def _of(cls, loaded: LoadedConfig) -> "Anonymizer":
        job = cls.__new__(cls)
        job._loaded = loaded
        return job

    @property
    def config(self) -> Config:
        """The checked configuration."""
        return self._loaded.config

    def check(self, df: "DataFrame | None" = None, *, spark: "SparkSession | None" = None) -> "list[Finding]":
        """Look at the table (by default the configured source) and say what would go wrong or deserves a thought."""
        from kanon_spark.config.checking import check_job

        return check_job(self._loaded, spark=spark, table=df)

    def run(
        self,
        df: "DataFrame | None" = None,
        *,
        spark: "SparkSession | None" = None,
        listeners: "Sequence[Listener]" = (),
    ) -> "Release":
        """Anonymize `df`, or the configured source, and return the verified release.

        Args:
            df: The table; the configuration's `source` by default.
            spark: The session; the active one by default, else a local one is started.
            listeners: Called with each `StageEvent`, for progress.

        Raises:
            KanonError: Nothing was published; the message says why and what to do.
        """
        from kanon_spark.engine.runner import run

        return run(self._loaded, spark=spark, table=df, listeners=listeners)

    def compare(
        self,
        df: "DataFrame | None" = None,
        *,
        methods: str | Sequence[str] | None = None,
        k: int | Sequence[int] | None = None,
        sample: str | int | float | None = None,
        max_gcp: float | None = None,
        max_risk: float | None = None,
        label: str | None = None,
        spark: "SparkSession | None" = None,
        listeners: "Sequence[Listener]" = (),
    ) -> "Comparison":
        """Solve `df`, or the configured source, by several methods at several k, on the same signatures.

        Nothing is published. What the job asks besides k is asked of every method.

        Args:
            df: The table; the configuration's `source` by default.
            methods: Their names, with options where wanted (`mst:cut=paper`); `all`, or six of them by default.
            k: The values; 2, 5, 10, 20, 50 and 100 by default.
            sample: A number of rows, a share, or "none" for all; by default tables of over a million rows are sampled.
            max_gcp: Most loss that is acceptable: `best` then is a point that fits.
            max_risk: Highest acceptable chance that somebody is found, at worst.
            label: A column that classifiers are to predict: how well they do from each release is measured, too.
            spark: The session; the active one by default, else a local one is started.
            listeners: Called with each `StageEvent`, for progress.

        Raises:
            KanonError: The request or the table is wrong as a whole.
        """
        from kanon_spark.explore.compare import compare

        return compare(
            self._loaded,
            methods=methods,
            k=k,
            sample=sample,
            max_gcp=max_gcp,
            max_risk=max_risk,
            label=label,
            spark=spark,
            table=df,
            listeners=listeners,
        )

    def __repr__(self) -> str:
        return f"Anonymizer({', '.join(f'{name}: {text}' for name, text in self._facts().items())})"

    def _facts(self) -> dict[str, str]:
        columns, privacy = self.config.columns, self.config.privacy
        facts = {
            "name": self.config.name,
            "k": str(privacy.k),
            "counted": f"persons by {privacy.unit}" if privacy.unit else "rows",
            "quasi-identifiers": ", ".join(columns.quasi_identifiers),
            "sensitive": ", ".join(columns.sensitive),
            "identifiers": ", ".join(columns.identifiers),
            "other columns": columns.other,
            "method": f"{self.config.resolved_method}, effort {self.config.method.effort}",
        }
        return {name: text for name, text in facts.items() if text}

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in self._facts().items()
        )
        return f"<table><caption>Anonymizer</caption>{rows}</table>"
