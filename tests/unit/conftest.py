"""Fixtures of the lane without Spark."""

import re
from pathlib import Path
from typing import Any

import pytest


def risk_side(unique: float, highest: float, average: float) -> dict[str, Any]:
    """One side of what class sizes tell."""
    above = [{"threshold": 0.05, "share": 0.9}, {"threshold": 0.2, "share": unique}]
    risk = {"highest": highest, "average": average, "above": above}
    return {"counted": "rows", "prosecutor": risk, "journalist": risk, "marketer": average, "uniqueness": unique}


def attack_side(expected: float, worst: float, fewest: float, right: float) -> dict[str, Any]:
    """One side of an attack."""
    guess = {"column": "diagnosis", "right": right, "confidence": 0.5, "base": 0.31}
    return {"expected": expected, "worst": worst, "fewest": fewest, "unmatched": 0, "guesses": [guess]}


def telling_side(distinct: int, unique: float) -> dict[str, Any]:
    """What columns tell on one side."""
    return {
        "columns": [{"name": "zip", "distinct": distinct, "distinction": distinct / 50_000, "separation": 0.75}],
        "combinations": [{"columns": ["age", "zip"], "unique_share": unique, "average_size": 1_234.56}],
    }


SPREAD = {"least": 0.0, "low": 0.1, "median": 0.3, "high": 0.5, "most": 0.8}


@pytest.fixture
def manifest() -> dict[str, Any]:
    """A whole manifest, as a run writes it, with values that no report may trust."""
    return {
        "run_id": "20240101T000000_abcdef01",
        "name": "admissions <b>",
        "outcome": "published",
        "config_sha256": "0" * 64,
        "started": "2024-01-01T00:00:00Z",
        "finished": "2024-01-01T00:00:20Z",
        "method": {"name": "lattice", "effort": "normal"},
        "source": {"path": "/data/admissions.parquet"},
        "sink": {"path": "/out/release", "format": "parquet"},
        "files": {"release": "/out/release", "manifest": "/out/manifest.json", "report": "/out/report.html"},
        "columns": {
            "qi": ["age", "sex", "zip"],
            "sensitive": ["diagnosis"],
            "kept": ["diagnosis", "cost"],
            "dropped": ["name", "patient_id"],
        },
        "rows": {"input": 50000, "released": 49990, "suppressed": 10},
        "persons": 42654,
        "signatures": 46528,
        "blocks": 1,
        "classes": 3000,
        "class_sizes": {"smallest": 10, "largest": 61, "histogram": {"k..2k-1": 2700, "2k..4k-1": 290, "4k..8k-1": 10}},
        "privacy": {
            "unit": "patient_id",
            "k": {"asked": 10, "achieved": 10},
            "l_diversity(diagnosis)": {
                "model": "l_diversity",
                "column": "diagnosis",
                "asked": {"l": 3, "kind": "entropy"},
                "words": "values of an entropy of at least ln 3",
                "achieved": 3.1415926,
                "passed": True,
            },
            "k_map": {
                "model": "k_map",
                "column": None,
                "asked": 20,
                "words": "a tuple that fits at least 20 persons of the population",
                "achieved": 23.0,
                "passed": True,
            },
        },
        "risk": {
            "mode": "full",
            "before": {"sizes": risk_side(0.42, 1.0, 0.7), **telling_side(900, 0.2)},
            "after": {"sizes": risk_side(0.0, 0.1, 0.06), **telling_side(12, 0.0)},
            "attack": {
                "columns": ["age", "sex"],
                "targets": 1000,
                "limit": 0.1,
                "before": attack_side(0.61, 1.0, 1.0, 0.93),
                "after": attack_side(0.055, 0.0909, 11.0, 0.47),
            },
            "notes": ["no population table was given"],
        },
        "details": {
            "quasi_identifiers": {
                "one_in": 1,
                "columns": [
                    {
                        "name": "age",
                        "bars": ["20", "30 <i>"],
                        "before": [0.4, 0.6],
                        "after": [0.5, 0.5],
                        "published": [
                            {"label": "[20, 39]", "share": 0.7, "made": False},
                            {"label": "{20, rare}", "share": 0.2, "made": True},
                        ],
                    }
                ],
                "closings": [{"loss": 0.1, "share": 0.5}, {"loss": 0.3, "share": 0.9998}],
            },
            "sensitive": {
                "one_in": 3,
                "classes": 900,
                "columns": [
                    {
                        "name": "diagnosis",
                        "values": [
                            {"label": "flu", "rows": 40, "persons": 40, "share": 0.4, **SPREAD},
                            {"label": "rare <b>", "rows": 40, "persons": 9, "share": 0.01, **SPREAD},
                        ],
                    }
                ],
            },
            "tree": [{"length": 0.5, "edges": 12}],
            "config": "privacy: {k: 10}\n",
        },
        "trace": [{"levels": {"age": 1}, "rows_left": 7}],
        "metrics": {
            "gcp": 0.1871,
            "gcp_bound": 0.1702,
            "gcp_gap": 0.0993,
            "bound_kind": "dual",
            "dm": 820000,
            "cavg": 1.67,
            "total_il": 28065.0,
            "per_qi": {
                "age": {"ncp": 0.08, "levels": {"0": 100, "1": 49890}},
                "sex": {"ncp": 0.02, "levels": {"0": 49990}},
                "zip": {"ncp": 0.46, "levels": {"0": 49990}},
            },
        },
        "samples": {
            "before": [
                {
                    "age": 31,
                    "sex": "male",
                    "zip": "10407",
                    "diagnosis": "asthma",
                    "cost": "1840.88",
                    "name": "Emil Ulrich",
                },
                {
                    "age": 62,
                    "sex": "female",
                    "zip": None,
                    "diagnosis": "[red]stroke[/red]",
                    "cost": "9.00",
                    "name": "x",
                },
                {
                    "age": 57,
                    "sex": "<script>alert(1)</script>",
                    "zip": "70307\x1b[2J",
                    "diagnosis": "x\ny",
                    "cost": "1.00",
                },
            ],
            "after": [
                {"age": "[30-34]", "sex": "male", "zip": "104**", "diagnosis": "asthma", "cost": "1840.88"},
                {"age": "[60-64]", "sex": "female", "zip": "*", "diagnosis": "[red]stroke[/red]", "cost": "9.00"},
                {"age": "[55-59]", "sex": "*", "zip": "703**", "diagnosis": "x\ny", "cost": "1.00"},
            ],
        },
        "stitch": {"way": "local", "rounds": 0, "graphframes_calls": 0},
        "seconds": {"total": 20.5, "stages": {"signatures": 6.0, "solve": 7.5, "write": 3.0, "verify": 4.0}},
        "checks": [{"name": "k", "passed": True, "detail": "every class has 10 or more"}],
        "warnings": ["the target held a release of other data"],
        "versions": {"kanon_spark": "0.1.0", "spark": "4.0.5"},
    }


@pytest.fixture
def example_environment(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an example in `conf/` takes from the environment."""
    for path in (repo / "conf").rglob("*.yaml"):
        for name in re.findall(r"\$\{(\w+)\}", path.read_text(encoding="utf-8")):
            monkeypatch.setenv(name, "2025-01-02" if name == "DAY" else "any word that is long enough")
