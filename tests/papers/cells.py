"""One cell of an experiment: a method at one setting, anonymized in this process and judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from bench.adult import NUMERIC, ROW_ID
from bench.jobs import hierarchy_of
from bench.judge import judge
from bench.local import Local, anonymize, config_of, kind_of
from bench.methods import TARGET
from bench.places import HIERARCHIES

from kanon_spark.config.models import QiSpec
from kanon_spark.measure.attributes import Attribute, attribute_of
from kanon_spark.measure.features import SUPPRESSED
from kanon_spark.measure.utility import classifier_utility


@dataclass(frozen=True)
class Entrant:
    """A method as a paper's experiment runs it.

    Attributes:
        name: What it is called in tables and charts.
        method: What the configuration says of it.
        hierarchies: Whether it is given hierarchies; else it publishes ranges and sets.
        max_suppression: Share of the rows that it may suppress.
    """

    name: str
    method: Mapping[str, Any]
    hierarchies: bool = False
    max_suppression: float = 0.0


def solve(entrant: Entrant, rows: pd.DataFrame, *, qis: Sequence[str], k: int, seed: int) -> Local:
    """The rows, anonymized."""
    specs = {qi: {"hierarchy": hierarchy_of(qi)} if entrant.hierarchies else {} for qi in qis}
    config = config_of(specs, k=k, method=entrant.method, max_suppression=entrant.max_suppression, seed=seed)
    return anonymize(rows, config)


def cell(entrant: Entrant, rows: pd.DataFrame, *, qis: Sequence[str], k: int, seed: int) -> dict[str, Any]:
    """Loss and class sizes by the neutral judge, the loss as published, and CPU seconds."""
    local = solve(entrant, rows, qis=qis, k=k, seed=seed)
    judged = judge(rows, local.release, qis=qis, k=k, row_id=ROW_ID, hierarchies=HIERARCHIES, numeric=NUMERIC)
    if judged.smallest < k:
        raise SystemExit(f"{entrant.name} at k = {k} made a class of {judged.smallest} rows: this is a bug")
    return {
        "method": entrant.name,
        "k": k,
        "qis": len(qis),
        "rows": len(rows),
        "gcp_hierarchy": judged.gcp_hierarchy,
        "gcp_set": judged.gcp_set,
        "gcp_published": local.gcp,
        "total_il": judged.gcp_set * len(rows) * len(qis),
        "dm": judged.dm,
        "cavg": judged.cavg,
        "classes": judged.classes,
        "signatures": local.signatures,
        "suppressed": judged.suppressed,
        "largest": int(local.release.groupby(list(qis), sort=False, dropna=False).size().max()),
        "off_majority": off_majority(rows, local.release, qis),
        "cpu_seconds": local.cpu_seconds,
    }


def off_majority(rows: pd.DataFrame, release: pd.DataFrame, qis: Sequence[str]) -> float:
    """Share of the rows that are suppressed or whose label is not that of most rows in their class (CM)."""
    if TARGET not in release.columns:
        return float("nan")
    by_label = release.groupby([*qis, TARGET], sort=False, dropna=False).size()
    most = by_label.groupby(level=list(range(len(qis))), sort=False, dropna=False).max().sum()
    return 1.0 - float(most) / len(rows)


def sample(rows: pd.DataFrame, count: int, *, seed: int) -> pd.DataFrame:
    """So many rows, drawn once for a seed, in their own order."""
    if count >= len(rows):
        return rows
    picked = np.random.default_rng(seed).permutation(len(rows))[:count]
    return rows.iloc[np.sort(picked)].reset_index(drop=True)


def split(rows: pd.DataFrame, *, share: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to anonymize and rows to test on."""
    order = np.random.default_rng(seed).permutation(len(rows))
    cut = round(share * len(rows))
    train, test = np.sort(order[cut:]), np.sort(order[:cut])
    return rows.iloc[train].reset_index(drop=True), rows.iloc[test].reset_index(drop=True)


def texts(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Columns as texts, which is what a reader of a release has."""
    return table[list(names)].astype(str)


def attributes(
    rows: pd.DataFrame, *, qis: Sequence[str], hierarchies: bool, others: Sequence[str] = ()
) -> list[Attribute]:
    """What is known of the columns that classifiers learn from."""
    return [
        attribute_of(
            name,
            rows[name].astype(str),
            kind_of(rows[name]),
            QiSpec.model_validate({"hierarchy": hierarchy_of(name)}) if hierarchies and name in qis else None,
        )
        for name in (*qis, *others)
    ]


def learnt(
    entrant: Entrant,
    train: pd.DataFrame,
    test: pd.DataFrame,
    *,
    qis: Sequence[str],
    k: int,
    seed: int,
    others: Sequence[str] = (),
) -> dict[str, Any]:
    """Classifiers trained on the release of `train`, tested on `test`: one row of scores, those of the original too."""
    local = solve(entrant, train, qis=qis, k=k, seed=seed)
    names = [*qis, *others, TARGET]
    found = classifier_utility(
        texts(train, names),
        texts(local.release, names),
        texts(test, names),
        attributes=attributes(train, qis=qis, hierarchies=entrant.hierarchies, others=others),
        target=TARGET,
        seed=seed,
    )
    scores = {
        f"{short}_{source}_{score}": found[classifier][source][score]
        for short, classifier in (("nb", "naive_bayes"), ("tree", "decision_tree"))
        for source in ("original", "release")
        for score in ("accuracy", "balanced_accuracy", "f1")
    }
    return {
        "method": entrant.name,
        "k": k,
        "qis": len(qis),
        "rows": len(train),
        "majority": found["majority"],
        "gcp_published": local.gcp,
        "suppressed": len(train) - len(local.release),
        "suppressed_cells": float(local.release[list(qis)].isin(SUPPRESSED).mean(axis=None)),
        "cpu_seconds": local.cpu_seconds,
        **scores,
    }
