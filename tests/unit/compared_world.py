"""A comparison made by hand, for pages, tables and commands; hostile names on request."""

from dataclasses import replace
from typing import Any

from kanon_spark.config.loader import LoadedConfig, load_config
from kanon_spark.explore.compare.request import Variant, variants
from kanon_spark.explore.compare.result import Cell, Comparison, Facts, Learnt, Limits

KS = (2, 10, 50)
LOSSES = {"lattice": (0.02, 0.08, 0.15), "mondrian": (0.05, 0.22, 0.4)}


def a_job(**sections: Any) -> LoadedConfig:
    """A configuration without files behind it."""
    columns = {"quasi_identifiers": {"age": "age.csv", "zip": None}, "sensitive": ["ill"], "identifiers": ["who"]}
    usual = {"name": "patients", "source": "data/t.parquet", "columns": columns, "privacy": {"k": 7}, "sink": "out/r"}
    return load_config({**usual, **sections})


def a_cell(method: str, k: int, gcp: float, **more: Any) -> Cell:
    """A measured cell."""
    known: dict[str, Any] = {
        "gcp_bound": gcp / 2,
        "gcp_gap": 1.0,
        "bound_kind": "dual",
        "dm": 1000 * k,
        "cavg": 1.5,
        "classes": 1000 // k,
        "smallest": k,
        "suppressed": 0,
        "suppressed_share": 0.0,
        "risk": 1 / k,
        "average_risk": 0.6 / k,
        "tree_accuracy": 0.8,
        "bayes_accuracy": 0.78,
        "cpu_seconds": 0.5,
        "seconds": 1.5,
    }
    return Cell(method, k, gcp, **{**known, **more})


def a_comparison(limits: Limits | None = None, *, name: str = "patients", reason: str = "no target") -> Comparison:
    """Two methods at three k, and a third that cannot run."""
    loaded = a_job()
    found: tuple[Variant, ...] = variants("lattice,mondrian,kactus", loaded.config)
    cells = []
    for place, k in enumerate(KS):
        cells += [a_cell(method, k, losses[place]) for method, losses in LOSSES.items()]
        cells.append(Cell("kactus", k, reason=reason, exit_code=2))
    facts = Facts(
        name=name,
        rows=1_000,
        persons=900,
        unit="who",
        signatures=321,
        quasi_identifiers=("age", "zip"),
        demands=("l_diversity: 2",),
        learnt=Learnt("ill", 0.84, 0.8, 0.7),
        seconds={"total": 12.0, "aggregation": 1.0},
        versions={"spark": "4.0.5"},
        made="2025-01-02T03:04:05+00:00",
    )
    return Comparison(tuple(cells), limits or Limits(), facts, found, loaded)


def renamed(comparison: Comparison, evil: str) -> Comparison:
    """The same with every text replaced by something hostile."""
    names = {variant.name: f"{variant.name}{evil}" for variant in comparison.variants}
    cells = tuple(
        replace(cell, method=names[cell.method], reason=cell.reason and cell.reason + evil) for cell in comparison.cells
    )
    facts = replace(
        comparison.facts,
        name=evil,
        unit=evil,
        quasi_identifiers=(evil,),
        demands=(evil,),
        notes=(evil,),
        learnt=Learnt(evil, 0.84, 0.8, 0.7),
        versions={evil: evil},
        made=evil,
    )
    found = tuple(replace(variant, name=names[variant.name]) for variant in comparison.variants)
    return replace(comparison, cells=cells, facts=facts, variants=found)
