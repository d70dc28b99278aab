"""What was found and what is suggested: a configuration, its reasons, and both as YAML and JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kanon_spark.explore.suggest.hierarchies import Drafted
from kanon_spark.explore.suggest.profile import TableProfile
from kanon_spark.explore.suggest.roles import Role, Verdict
from kanon_spark.explore.suggest.uniqueness import Uniqueness


@dataclass(frozen=True)
class Places:
    """Where a job reads and writes, as its configuration says it.

    Attributes:
        name: What the job is called.
        source: The section `source`; None for a DataFrame.
        sink: The path of the release; None for a DataFrame.
        reports: The folder of report and manifest.
    """

    name: str
    source: Mapping[str, Any] | None = None
    sink: str | None = None
    reports: str | None = None


@dataclass(frozen=True)
class Suggestion:
    """A draft of a configuration.

    Attributes:
        verdicts: Every column's role and the reason for it.
        drafts: How each quasi-identifier is to be generalized.
        unit: Column of the person; None where k counts rows.
        k: The k that was asked for.
        table: What is known of the table.
        uniqueness: How alone people are by the quasi-identifiers.
        places: Where the job reads and writes.
        show_values: The reasons show values.
    """

    verdicts: tuple[Verdict, ...] = field(repr=False)
    drafts: Mapping[str, Drafted] = field(repr=False)
    unit: str | None
    k: int
    table: TableProfile = field(repr=False)
    uniqueness: Uniqueness
    places: Places
    show_values: bool = False

    @property
    def roles(self) -> dict[str, Role]:
        """Each column's role."""
        return {verdict.column: verdict.role for verdict in self.verdicts}

    def of(self, role: Role) -> list[Verdict]:
        """The columns of one role."""
        return [verdict for verdict in self.verdicts if verdict.role == role]

    @property
    def config(self) -> dict[str, Any]:
        """The configuration as a dict, for `Anonymizer.from_dict`."""
        from kanon_spark.explore.suggest.yaml_draft import config_of

        return config_of(self)

    @property
    def yaml(self) -> str:
        """The configuration as a YAML file, with the reasons as comments."""
        from kanon_spark.explore.suggest.yaml_draft import yaml_of

        return yaml_of(self)

    def write(self, path: str | Path) -> None:
        """Write the YAML file."""
        Path(path).write_text(self.yaml, encoding="utf-8")

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values: what was found of each column, and the configuration."""
        found = self.uniqueness
        ranks = {rank.name: rank for rank in found.columns}
        columns = []
        for verdict in self.verdicts:
            profile, rank = verdict.profile, ranks.get(verdict.column)
            entry: dict[str, Any] = {
                "name": verdict.column,
                "type": profile.type,
                "role": verdict.role,
                "unit": verdict.column == self.unit,
                "rule": verdict.rule,
                "reason": verdict.reason,
                "look": verdict.unsure,
                "filled": profile.filled,
                "distinct": rank.distinct if rank is not None else profile.values,
                "distinction": rank.distinction if rank is not None else profile.distinction,
                "separation": rank.separation if rank is not None else profile.separation,
            }
            if verdict.column in self.drafts:
                entry["hierarchy"] = self.drafts[verdict.column].hierarchy
            if self.show_values:
                entry["values"] = shown_values(verdict)
            columns.append(entry)
        return {
            "rows": self.table.rows,
            "one_in": self.table.one_in,
            "k": self.k,
            "unit": self.unit,
            "uniqueness": {
                "counted": found.counted,
                "records": found.records,
                "unique": found.unique,
                "share": found.share,
                "below_k": found.small,
                "worst": [{"columns": list(each.columns), "share": each.unique_share} for each in found.worst],
            },
            "columns": columns,
            "config": self.config,
        }


_SHOWN = 5


def shown_values(verdict: Verdict) -> list[str]:
    """A few raw values, the most frequent first; the ends of numbers that have many. Only where they were asked for."""
    profile = verdict.profile
    if profile.counts is not None:
        ranked = sorted(profile.counts.items(), key=lambda item: (-item[1], item[0]))
        return [value for value, _ in ranked[:_SHOWN]]
    if profile.spread is not None and profile.kind in {"integer", "real"}:
        return [f"{end:.15g}" for end in (profile.spread.least, profile.spread.largest)]
    return []
